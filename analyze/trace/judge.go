package trace

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// JudgeConfig says when a Judge is sure.
type JudgeConfig struct {
	// Alpha is the most chance that lost mirrors alone explain what a place is
	// blamed for.
	Alpha float64
	// Least is how many packets must be seen last at a place.
	Least uint64
	// Together is how many mirrors share a datagram, and are lost with it: so
	// many count as one observation.
	Together float64
	// Apart is how far apart packets must come by to share no datagram: longer
	// than reports wait for each other. Of such packets each counts.
	Apart time.Duration
	// Flows is how many flows are looked at one by one, of those with packets
	// that ended short; and how many different loops.
	Flows int
}

// DefaultJudgeConfig accuses wrongly once in a million, if mirrors of the usual
// length are lost by the datagram.
func DefaultJudgeConfig() JudgeConfig {
	return JudgeConfig{Alpha: 1e-6, Least: 3, Together: 8, Apart: 30 * time.Microsecond, Flows: 1 << 14}
}

// Check complains about what cannot work.
func (c *JudgeConfig) Check() error {
	switch {
	case !(c.Alpha > 0 && c.Alpha < 1):
		return fmt.Errorf("trace: alpha %v, want it between 0 and 1", c.Alpha)
	case c.Least < 1:
		return fmt.Errorf("trace: at least %d packets, want 1 or more", c.Least)
	case !(c.Together >= 1):
		return fmt.Errorf("trace: %v mirrors together, want 1 or more", c.Together)
	case c.Apart <= 0:
		return fmt.Errorf("trace: packets are %v apart, want more than 0", c.Apart)
	case c.Flows < 0:
		return fmt.Errorf("trace: %d flows, want 0 or more", c.Flows)
	}
	return nil
}

// maxLeft bounds the hops that were still ahead of a packet.
const maxLeft = 7

// place is a switch and the node that it sends to.
type place struct {
	at, next model.NodeID
	known    bool // next is
	stuck    bool // the switch said that there is none
}

// tally counts packets of a place.
type tally struct {
	all   counts
	apart apart
}

// counts are packets by the hops still ahead of them.
type counts struct {
	left  [maxLeft + 1]uint64
	ended uint64
}

// evidence counts mirrors of hops that packets passed for certain.
type evidence struct {
	seen, lost uint64
	apart      apart
}

func (e *evidence) merge(o *evidence) {
	e.seen += o.seen
	e.lost += o.lost
	e.apart.merge(o.apart, apartMirrors)
}

type flowAt struct {
	place
	key model.FlowKey
}

// Judge gathers traces and says where packets are lost. A trace that ends early
// proves nothing: mirrors of all later hops may be lost instead. How often that
// happens is measured on hops that a packet must have passed, because it was
// seen behind them, or because its source is attached there; a place is blamed
// when more packets end at it than that explains. Judges of several analyzers
// merge.
type Judge struct {
	cfg    JudgeConfig
	fabric *topo.Fabric

	places map[place]*tally
	flows  map[flowAt]*tally
	loops  map[string]*Finding
	// By switch: hops that packets passed for certain, mirrored or not, and
	// whether anything was heard of it.
	passed    []evidence
	heard     []bool
	elsewhere evidence // lost, at switches that are not known
	hash      uint64   // of the packet at hand

	// Refused counts flows, and packets in loops, that were not looked at for
	// want of room.
	Refused uint64
}

// NewJudge makes a judge for a fabric.
func NewJudge(cfg JudgeConfig, f *topo.Fabric) (*Judge, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	n := len(f.Nodes())
	return &Judge{
		cfg: cfg, fabric: f, places: map[place]*tally{}, flows: map[flowAt]*tally{}, loops: map[string]*Finding{},
		passed: make([]evidence, n), heard: make([]bool, n),
	}, nil
}

// Add takes a complete trace. Those that ended while routes changed or were
// evicted say nothing, neither do switches that the fabric does not have.
func (j *Judge) Add(t *Trace) {
	if t.End == Unsettled || t.End == Unknown || t.Evicted {
		return
	}
	for i := range t.Hops {
		if !j.fabric.Has(t.Hops[i].Switch) {
			return
		}
		j.heard[t.Hops[i].Switch] = true
	}
	if t.End == Looped {
		j.loop(t)
		return
	}
	j.hash = t.ID.hash()
	j.witness(t)
	last := len(t.Hops) - 1
	left := 0 // hops ahead of the last that was seen
	if t.End == Short {
		left = ahead(t.routes, &t.Hops[last])
		j.count(t, &t.Hops[last], left, true)
	}
	for i := last - 1; i >= 0; i-- {
		a, b := &t.Hops[i], &t.Hops[i+1]
		if a.samePart(b) {
			left += int(a.TTL) - int(b.TTL)
		} else {
			left = 1 // at least the part that follows
		}
		j.count(t, a, left, false)
	}
}

// ahead is how many switches a packet has still to pass.
func ahead(r *topo.Routes, h *Hop) int {
	links, ok := r.Distance(h.Switch, h.To)
	if !ok {
		return 1
	}
	if len(r.ExpectedLastHops(h.To)) > 0 && !r.Owns(r.ExpectedLastHops(h.To)[0], h.To) {
		links-- // the last one leads to a host
	}
	return max(links, 1)
}

// count enters a packet that left a switch.
func (j *Judge) count(t *Trace, h *Hop, left int, ended bool) {
	p := place{at: h.Switch}
	p.next, p.known = next(j.fabric, h)
	p.stuck = t.ports && h.Out == 0 && !t.routes.Owns(h.Switch, h.To)
	c := j.places[p]
	if c == nil {
		c = &tally{}
		j.places[p] = c
	}
	j.enter(c, h.Time, left, ended)
	id := flowAt{p, t.Key}
	if f := j.flows[id]; f != nil {
		j.enter(f, h.Time, left, ended)
	} else if ended && len(j.flows) < j.cfg.Flows {
		// The packet that drew attention does not count: it was chosen for how
		// it ended.
		j.flows[id] = &tally{}
	} else if ended {
		j.Refused++
	}
}

// enter counts the packet at hand, which left a switch at a time of its clock:
// the next one's mirrors share datagrams by it.
func (j *Judge) enter(c *tally, at model.Time, left int, ended bool) {
	left = min(max(left, 1), maxLeft)
	c.all.add(left, ended)
	if slot, counts := slotOf(at, j.cfg.Apart); counts {
		c.apart.add(one{slot, j.hash, uint8(left), ended}, apartPackets)
	}
}

// mirrored counts a mirror of the packet at hand, there or not. The time of one
// that is not is that of the hop nearest to it: clocks may differ, and some that
// were lost together count more than once, which excuses more.
func (j *Judge) mirrored(e *evidence, at model.Time, lost bool) {
	if lost {
		e.lost++
	} else {
		e.seen++
	}
	if slot, counts := slotOf(at, j.cfg.Apart); counts {
		e.apart.add(one{slot, j.hash, 0, lost}, apartMirrors)
	}
}

func (c *counts) add(left int, ended bool) {
	c.left[left]++
	if ended {
		c.ended++
	}
}

func (c *counts) packets() (n uint64) {
	for _, k := range c.left {
		n += k
	}
	return n
}

// witness counts the mirrors that are there and those that should be. The last
// hop was seen or it would not be the last: it says nothing.
func (j *Judge) witness(t *Trace) {
	for i := range t.Hops[:len(t.Hops)-1] {
		a, b := &t.Hops[i], &t.Hops[i+1]
		j.mirrored(&j.passed[a.Switch], a.Time, false)
		if n := gap(a, b); n > 0 {
			if id, ok := next(j.fabric, a); ok {
				j.mirrored(&j.passed[id], a.Time, true)
				n--
			}
			for range n {
				j.mirrored(&j.elsewhere, a.Time, true)
			}
		}
	}
	if t.firstMissing() {
		if first := t.routes.ExpectedLastHops(t.Key.Src); len(first) == 1 {
			j.mirrored(&j.passed[first[0]], t.Hops[0].Time, true)
		} else {
			j.mirrored(&j.elsewhere, t.Hops[0].Time, true)
		}
	}
}

// loop enters a packet that went round.
func (j *Judge) loop(t *Trace) {
	var round []model.NodeID
	for i := t.Loop[0]; i < t.Loop[1]; i++ {
		round = append(round, t.Hops[i].Switch)
	}
	slices.Sort(round)
	round = slices.Compact(round)
	name := fmt.Sprint(round)
	f := j.loops[name]
	if f == nil {
		if len(j.loops) >= max(j.cfg.Flows, 1) {
			j.Refused++
			return
		}
		key := t.Key
		f = &Finding{Kind: Loop, Switch: t.Hops[t.Loop[0]].Switch, Flow: &key, Round: round}
		j.loops[name] = f
	}
	if f.Flow != nil && *f.Flow != t.Key {
		f.Flow = nil
	}
	f.Ended++
	f.Packets++
	if t.arrives(t.routes, &t.Hops[len(t.Hops)-1]) {
		f.Through++
	}
}

// Merge adds what another judge of the same fabric has gathered. Flows beyond
// the room for them are counted as refused.
func (j *Judge) Merge(o *Judge) {
	for p, c := range o.places {
		if j.places[p] == nil {
			j.places[p] = &tally{}
		}
		j.places[p].merge(c)
	}
	for p, c := range o.flows {
		if j.flows[p] == nil {
			if len(j.flows) >= j.cfg.Flows {
				j.Refused++
				continue
			}
			j.flows[p] = &tally{}
		}
		j.flows[p].merge(c)
	}
	for name, f := range o.loops {
		if mine := j.loops[name]; mine != nil {
			mine.Ended += f.Ended
			mine.Packets += f.Packets
			mine.Through += f.Through
			if mine.Flow != nil && (f.Flow == nil || *f.Flow != *mine.Flow) {
				mine.Flow = nil
			}
			continue
		}
		c := *f
		j.loops[name] = &c
	}
	for i := range j.passed {
		j.passed[i].merge(&o.passed[i])
		j.heard[i] = j.heard[i] || o.heard[i]
	}
	j.elsewhere.merge(&o.elsewhere)
	j.Refused += o.Refused
}

func (c *tally) merge(o *tally) {
	c.all.merge(&o.all)
	c.apart.merge(o.apart, apartPackets)
}

func (c *counts) merge(o *counts) {
	for i, n := range o.left {
		c.left[i] += n
	}
	c.ended += o.ended
}

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
	// MinPackets is how many packets must be seen last at a place.
	MinPackets uint64
	// MirrorsPerDatagram is how many mirrors share a datagram, and are lost with it: so
	// many count as one observation.
	MirrorsPerDatagram float64
	// MinSeparation is how far apart packets must come by to share no datagram: longer
	// than reports wait for each other. Of such packets each counts.
	MinSeparation time.Duration
	// MaxFlows is how many flows are looked at one by one, of those with packets
	// that ended short; and how many different loops.
	MaxFlows int
}

// DefaultJudgeConfig accuses wrongly once in a million, if mirrors of the usual
// length are lost by the datagram.
func DefaultJudgeConfig() JudgeConfig {
	return JudgeConfig{Alpha: 1e-6, MinPackets: 3, MirrorsPerDatagram: 8, MinSeparation: 30 * time.Microsecond, MaxFlows: 1 << 14}
}

// Check complains about what cannot work.
func (c *JudgeConfig) Check() error {
	switch {
	case !(c.Alpha > 0 && c.Alpha < 1):
		return fmt.Errorf("trace: alpha %v, want it between 0 and 1", c.Alpha)
	case c.MinPackets < 1:
		return fmt.Errorf("trace: at least %d packets, want 1 or more", c.MinPackets)
	case !(c.MirrorsPerDatagram >= 1):
		return fmt.Errorf("trace: %v mirrors together, want 1 or more", c.MirrorsPerDatagram)
	case c.MinSeparation <= 0:
		return fmt.Errorf("trace: packets are %v apart, want more than 0", c.MinSeparation)
	case c.MaxFlows < 0:
		return fmt.Errorf("trace: %d flows, want 0 or more", c.MaxFlows)
	}
	return nil
}

// maxHopsAhead bounds the hops that were still ahead of a packet.
const maxHopsAhead = 7

// location is a switch and the node that it sends to.
type location struct {
	at, next model.NodeID
	known    bool // nextNode is
	stuck    bool // the switch said that there is none
}

// tally counts packets of a place.
type tally struct {
	all   packetCounts
	samples independentSamples
}

// packetCounts are packets by the hops still ahead of them.
type packetCounts struct {
	byHopsAhead  [maxHopsAhead + 1]uint64
	ended uint64
}

// mirrorCounts counts mirrors of hops that packets passed for certain.
type mirrorCounts struct {
	seen, lost uint64
	samples      independentSamples
}

func (e *mirrorCounts) merge(o *mirrorCounts) {
	e.seen += o.seen
	e.lost += o.lost
	e.samples.merge(o.samples, maxMirrorSamples)
}

type flowLocation struct {
	location
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

	locations map[location]*tally
	flows  map[flowLocation]*tally
	loops  map[string]*Finding
	// By switch: hops that packets passed for certain, mirrored or not, and
	// whether anything was heard of it.
	passed    []mirrorCounts
	reported     []bool
	unknownSwitches mirrorCounts // lost, at switches that are not known
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
		cfg: cfg, fabric: f, locations: map[location]*tally{}, flows: map[flowLocation]*tally{}, loops: map[string]*Finding{},
		passed: make([]mirrorCounts, n), reported: make([]bool, n),
	}, nil
}

// AddTrace takes a complete trace. Those that ended while routes changed or were
// evicted say nothing, neither do switches that the fabric does not have.
func (j *Judge) AddTrace(t *Trace) {
	if t.End == Unsettled || t.End == Unknown || t.Evicted {
		return
	}
	for i := range t.Hops {
		if !j.fabric.HasNode(t.Hops[i].Switch) {
			return
		}
		j.reported[t.Hops[i].Switch] = true
	}
	if t.End == Looped {
		j.addLoop(t)
		return
	}
	j.hash = t.ID.hash()
	j.countMirrors(t)
	last := len(t.Hops) - 1
	left := 0 // hops ahead of the last that was seen
	if t.End == Incomplete {
		left = hopsAhead(t.routes, &t.Hops[last])
		j.countDeparture(t, &t.Hops[last], left, true)
	}
	for i := last - 1; i >= 0; i-- {
		a, b := &t.Hops[i], &t.Hops[i+1]
		if a.sameSegment(b) {
			left += int(a.TTL) - int(b.TTL)
		} else {
			left = 1 // counterFor least the part that follows
		}
		j.countDeparture(t, a, left, false)
	}
}

// hopsAhead is how many switches a packet has still to pass.
func hopsAhead(r *topo.Routes, h *Hop) int {
	links, ok := r.Distance(h.Switch, h.To)
	if !ok {
		return 1
	}
	if len(r.ExpectedLastHops(h.To)) > 0 && !r.Owns(r.ExpectedLastHops(h.To)[0], h.To) {
		links-- // the last one leads to a host
	}
	return max(links, 1)
}

// countDeparture enters a packet that left a switch.
func (j *Judge) countDeparture(t *Trace, h *Hop, left int, ended bool) {
	p := location{at: h.Switch}
	p.next, p.known = nextNode(j.fabric, h)
	p.stuck = t.outPorts && h.Out == 0 && !t.routes.Owns(h.Switch, h.To)
	c := j.locations[p]
	if c == nil {
		c = &tally{}
		j.locations[p] = c
	}
	j.countPacket(c, h.Time, left, ended)
	id := flowLocation{p, t.Key}
	if f := j.flows[id]; f != nil {
		j.countPacket(f, h.Time, left, ended)
	} else if ended && len(j.flows) < j.cfg.MaxFlows {
		// The packet that drew attention does not count: it was chosen for how
		// it ended.
		j.flows[id] = &tally{}
	} else if ended {
		j.Refused++
	}
}

// countPacket counts the packet at hand, which left a switch at a time of its clock:
// the next one's mirrors share datagrams by it.
func (j *Judge) countPacket(c *tally, at model.Time, left int, ended bool) {
	left = min(max(left, 1), maxHopsAhead)
	c.all.add(left, ended)
	if slot, counts := sampleSlot(at, j.cfg.MinSeparation); counts {
		c.samples.addSample(sample{slot, j.hash, uint8(left), ended}, maxPacketSamples)
	}
}

// countMirror counts a mirror of the packet at hand, there or not. The time of one
// that is not is that of the hop nearest to it: clocks may differ, and some that
// were lost together count more than once, which excuses more.
func (j *Judge) countMirror(e *mirrorCounts, at model.Time, lost bool) {
	if lost {
		e.lost++
	} else {
		e.seen++
	}
	if slot, counts := sampleSlot(at, j.cfg.MinSeparation); counts {
		e.samples.addSample(sample{slot, j.hash, 0, lost}, maxMirrorSamples)
	}
}

func (c *packetCounts) add(left int, ended bool) {
	c.byHopsAhead[left]++
	if ended {
		c.ended++
	}
}

func (c *packetCounts) packets() (n uint64) {
	for _, k := range c.byHopsAhead {
		n += k
	}
	return n
}

// countMirrors counts the mirrors that are there and those that should be. The last
// hop was seen or it would not be the last: it says nothing.
func (j *Judge) countMirrors(t *Trace) {
	for i := range t.Hops[:len(t.Hops)-1] {
		a, b := &t.Hops[i], &t.Hops[i+1]
		j.countMirror(&j.passed[a.Switch], a.Time, false)
		if n := missingBetween(a, b); n > 0 {
			if id, ok := nextNode(j.fabric, a); ok {
				j.countMirror(&j.passed[id], a.Time, true)
				n--
			}
			for range n {
				j.countMirror(&j.unknownSwitches, a.Time, true)
			}
		}
	}
	if t.firstMissing() {
		if first := t.routes.ExpectedLastHops(t.Key.Src); len(first) == 1 {
			j.countMirror(&j.passed[first[0]], t.Hops[0].Time, true)
		} else {
			j.countMirror(&j.unknownSwitches, t.Hops[0].Time, true)
		}
	}
}

// addLoop enters a packet that went round.
func (j *Judge) addLoop(t *Trace) {
	var round []model.NodeID
	for i := t.Loop[0]; i < t.Loop[1]; i++ {
		round = append(round, t.Hops[i].Switch)
	}
	slices.Sort(round)
	round = slices.Compact(round)
	name := fmt.Sprint(round)
	f := j.loops[name]
	if f == nil {
		if len(j.loops) >= max(j.cfg.MaxFlows, 1) {
			j.Refused++
			return
		}
		key := t.Key
		f = &Finding{Kind: Loop, Switch: t.Hops[t.Loop[0]].Switch, Flow: &key, Switches: round}
		j.loops[name] = f
	}
	if f.Flow != nil && *f.Flow != t.Key {
		f.Flow = nil
	}
	f.Ended++
	f.Packets++
	if t.mayEndAt(t.routes, &t.Hops[len(t.Hops)-1]) {
		f.Escaped++
	}
}

// Merge adds what another judge of the same fabric has gathered. Flows beyond
// the room for them are counted as refused.
func (j *Judge) Merge(o *Judge) {
	for p, c := range o.locations {
		if j.locations[p] == nil {
			j.locations[p] = &tally{}
		}
		j.locations[p].merge(c)
	}
	for p, c := range o.flows {
		if j.flows[p] == nil {
			if len(j.flows) >= j.cfg.MaxFlows {
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
			mine.Escaped += f.Escaped
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
		j.reported[i] = j.reported[i] || o.reported[i]
	}
	j.unknownSwitches.merge(&o.unknownSwitches)
	j.Refused += o.Refused
}

func (c *tally) merge(o *tally) {
	c.all.merge(&o.all)
	c.samples.merge(o.samples, maxPacketSamples)
}

func (c *packetCounts) merge(o *packetCounts) {
	for i, n := range o.byHopsAhead {
		c.byHopsAhead[i] += n
	}
	c.ended += o.ended
}

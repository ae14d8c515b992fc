package trace

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// JudgeConfig says when a Judge is certain.
type JudgeConfig struct {
	// Alpha is the largest probability, that lost mirrors alone explain the
	// packets that end at a location, at which it is reported.
	Alpha float64
	// MinPackets is how many packets must be last seen at a location.
	MinPackets uint64
	// MirrorsPerDatagram is how many mirrors share a datagram and are lost with
	// it: together they count as one observation.
	MirrorsPerDatagram float64
	// MinSeparation is the time between packets that share no datagram: longer
	// than reports wait for each other. Each such packet counts.
	MinSeparation time.Duration
	// MaxFlows is how many flows with incomplete traces are evaluated one by
	// one; and how many different loops.
	MaxFlows int
}

// DefaultJudgeConfig reports a false fault once in a million, if mirrors of the
// usual length are lost by the datagram.
func DefaultJudgeConfig() JudgeConfig {
	return JudgeConfig{
		Alpha: 1e-6, MinPackets: 3, MirrorsPerDatagram: 8, MinSeparation: 30 * time.Microsecond,
		MaxFlows: 1 << 14,
	}
}

// Check returns an error for values that cannot work.
func (c *JudgeConfig) Check() error {
	switch {
	case !(c.Alpha > 0 && c.Alpha < 1):
		return fmt.Errorf("trace: alpha %v, want it between 0 and 1", c.Alpha)
	case c.MinPackets < 1:
		return fmt.Errorf("trace: min packets %d, want 1 or more", c.MinPackets)
	case !(c.MirrorsPerDatagram >= 1):
		return fmt.Errorf("trace: %v mirrors per datagram, want 1 or more", c.MirrorsPerDatagram)
	case c.MinSeparation <= 0:
		return fmt.Errorf("trace: min separation %v, want more than 0", c.MinSeparation)
	case c.MaxFlows < 0:
		return fmt.Errorf("trace: max flows %d, want 0 or more", c.MaxFlows)
	}
	return nil
}

// maxHopsAhead limits the hops that were still ahead of a packet.
const maxHopsAhead = 7

// location is a switch and the node that it sends to.
type location struct {
	at, next model.NodeID
	known    bool // next is known
	stuck    bool // the switch reported that it has no out port for the packet
}

// tally counts packets of a location.
type tally struct {
	all        packetCounts
	samples    independentSamples
	firstEnded model.Time // when the first packet that ended was mirrored; 0: none
}

// packetCounts counts packets by the hops still ahead of them.
type packetCounts struct {
	byHopsAhead [maxHopsAhead + 1]uint64
	ended       uint64
}

// mirrorCounts counts mirrors of hops that packets passed for certain.
type mirrorCounts struct {
	seen, lost uint64
	samples    independentSamples
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

// Judge gathers traces and finds where packets are lost. A trace that ends early
// proves nothing: mirrors of all later hops may be lost instead. How often that
// happens is measured on hops that a packet must have passed, because it was
// seen after them, or because its source is attached there; a location is
// reported when more packets end at it than that explains. Judges of several
// analyzers merge.
type Judge struct {
	cfg    JudgeConfig
	fabric *topo.Fabric

	locations map[location]*tally
	flows     map[flowLocation]*tally
	loops     map[string]*Finding
	// By switch: hops that packets passed for certain, mirrored or not, and
	// whether it ever reported.
	passed          []mirrorCounts
	reported        []bool
	unknownSwitches mirrorCounts // lost, at switches that are not known
	hash            uint64       // of the current packet

	// Refused counts flows, and packets in loops, that were not evaluated
	// because of JudgeConfig.MaxFlows.
	Refused uint64
}

// NewJudge returns a judge for a fabric.
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

// AddTrace adds a complete trace. Traces that ended while routes changed or were
// evicted are ignored, and so are those with switches that the fabric does not
// have.
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
	left := 0 // hops ahead of the last one seen
	if t.End == Lost {
		left = hopsAhead(t.routes, &t.Hops[last])
		j.countDeparture(t, &t.Hops[last], left, true)
	}
	for i := last - 1; i >= 0; i-- {
		a, b := &t.Hops[i], &t.Hops[i+1]
		if a.sameSegment(b) {
			left += int(a.TTL) - int(b.TTL)
		} else {
			left = 1 // at least the segment that follows
		}
		j.countDeparture(t, a, left, false)
	}
}

// hopsAhead returns how many switches a packet has still to pass.
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

// countDeparture counts a packet that left a switch.
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
	if ended {
		c.firstEnded = earlier(c.firstEnded, t.First)
	}
	id := flowLocation{p, t.Key}
	if f := j.flows[id]; f != nil {
		j.countPacket(f, h.Time, left, ended)
		if ended {
			f.firstEnded = earlier(f.firstEnded, t.First)
		}
	} else if ended && len(j.flows) < j.cfg.MaxFlows {
		// The first packet does not count: it was selected for how it ended.
		j.flows[id] = &tally{}
	} else if ended {
		j.Refused++
	}
}

// earlier returns the earlier of two times, of which 0 is none.
func earlier(a, b model.Time) model.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// countPacket counts the current packet, which left a switch at a time of its
// clock: the next one's mirrors share datagrams by it.
func (j *Judge) countPacket(c *tally, at model.Time, left int, ended bool) {
	left = min(max(left, 1), maxHopsAhead)
	c.all.add(left, ended)
	if slot, counts := sampleSlot(at, j.cfg.MinSeparation); counts {
		c.samples.addSample(sample{slot, j.hash, uint8(left), ended}, maxPacketSamples)
	}
}

// countMirror counts a mirror of the current packet, received or lost. The time
// of a lost one is that of the nearest hop: clocks may differ, and some that
// were lost together count more than once, which raises the mirror loss.
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

// countMirrors counts the mirrors received and those that should have been. The
// last hop was seen or it would not be the last: it is no evidence.
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

// addLoop adds a packet that looped.
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
	f.First = earlier(f.First, t.First)
	if t.mayEndAt(t.routes, &t.Hops[len(t.Hops)-1]) || t.leaves(round) {
		f.Escaped++
	}
}

// leaves reports whether the last switch sends the packet to a node that is not one
// of a loop, or is itself none.
func (t *Trace) leaves(loop []model.NodeID) bool {
	last := &t.Hops[len(t.Hops)-1]
	if !slices.Contains(loop, last.Switch) {
		return true
	}
	to, ok := nextNode(t.routes.Fabric(), last)
	return t.outPorts && ok && !slices.Contains(loop, to)
}

// Merge adds the counts of another judge of the same fabric. Flows beyond
// JudgeConfig.MaxFlows are counted as refused.
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
			mine.First = earlier(mine.First, f.First)
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
	c.firstEnded = earlier(c.firstEnded, o.firstEnded)
	c.all.merge(&o.all)
	c.samples.merge(o.samples, maxPacketSamples)
}

func (c *packetCounts) merge(o *packetCounts) {
	for i, n := range o.byHopsAhead {
		c.byHopsAhead[i] += n
	}
	c.ended += o.ended
}

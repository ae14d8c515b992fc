package trace

import (
	"cmp"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Kind is the kind of a Finding.
type Kind uint8

// Kinds of finding.
const (
	Drop   Kind = iota // packets are lost in Switch or on its link to Next
	Silent             // packets go to Next, which never reported: it is dead, or its mirrors are lost
	Loop               // packets loop
)

// String prints the kind's name.
func (k Kind) String() string { return [...]string{"drop", "silent", "loop"}[k] }

// Finding is a location where packets are lost or loop.
type Finding struct {
	Kind        Kind           `json:"kind"`
	Switch      model.NodeID   `json:"switch"`
	Next        model.NodeID   `json:"next"` // where Known; not for Loop
	Known       bool           `json:"known"`
	Flow        *model.FlowKey `json:"flow,omitempty"`     // set if only this one is affected for certain
	Switches    []model.NodeID `json:"switches,omitempty"` // Loop: the devices, in ascending order
	Ended       uint64         `json:"ended"`              // packets last seen here, or that looped
	Escaped     uint64         `json:"escaped"`            // Loop: packets among Ended that left it
	Packets     uint64         `json:"packets"`            // packets that passed here
	MirrorShare float64        `json:"mirror_share"`       // share of them that lost mirrors alone would make look ended
	Chance      float64        `json:"chance"`             // probability that lost mirrors explain it all
	First       model.Time     `json:"-"`                  // when the first packet of Ended was mirrored, by the analyzer's clock
}

// Detour reports whether all packets that looped left the loop, as
// packets in flight do while wrong routes are repaired: the loop is not
// persistent.
func (f *Finding) Detour() bool { return f.Kind == Loop && f.Escaped == f.Ended }

// MirrorLoss returns the measured share of a switch's mirrors that are lost, and
// the number of packets through it on which the share is based.
func (j *Judge) MirrorLoss(id model.NodeID) (share float64, packets uint64) {
	if int(id) >= len(j.passed) {
		return 0, 0
	}
	e := &j.passed[id]
	n := e.seen + e.lost
	return float64(e.lost) / float64(max(n, 1)), n
}

// Findings returns the faulty locations, the most certain first.
func (j *Judge) Findings() (list []Finding) {
	all := j.overallMirrorLoss()
	ends := map[model.NodeID]float64{} // largest share of packets that end at a switch, by next node
	for p, c := range j.locations {
		if c.all.ended >= j.cfg.MinPackets {
			ends[p.at] = max(ends[p.at], float64(c.all.ended)/float64(c.all.packets()))
		}
	}
	for p, c := range j.locations {
		if f, sure := j.evaluate(p, c, all, ends); sure {
			list = append(list, f)
		}
	}
	located := len(list)
	for id, c := range j.flows {
		if slices.ContainsFunc(list[:located],
			func(f Finding) bool { return f.Switch == id.at && f.Next == id.next && f.Known == id.known }) {
			continue
		}
		if f, sure := j.evaluate(id.location, c, all, ends); sure {
			key := id.key
			f.Flow = &key
			list = append(list, f)
		}
	}
	for _, f := range j.loops {
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Chance, b.Chance), cmp.Compare(b.Ended, a.Ended), cmp.Compare(a.Switch, b.Switch),
			cmp.Compare(a.Next, b.Next), compareFlows(a.Flow, b.Flow))
	})
	return list
}

func compareFlows(a, b *model.FlowKey) int {
	if a == nil || b == nil {
		return 0
	}
	return a.Compare(*b)
}

// evaluate tests one location against the loss of mirrors.
func (j *Judge) evaluate(p location, c *tally, all float64, ends map[model.NodeID]float64) (f Finding, sure bool) {
	if c.all.ended < j.cfg.MinPackets {
		return f, false
	}
	f = Finding{Switch: p.at, Next: p.next, Known: p.known, Ended: c.all.ended, Packets: c.all.packets(), First: c.firstEnded}
	first := all  // probability that the next hop's mirror is lost
	beyond := 0.0 // and that the packet was lost there, before another could see it
	if p.known {
		beyond = ends[p.next]
		switch role := j.fabric.Node(p.next).Role; {
		case role == topo.Host:
			first = 0 // it mirrors nothing, and forwards nothing
		case role == topo.Mux: // a switch sees again what it forwards
		case !j.reported[p.next]:
			f.Kind = Silent
		case j.losesMoreMirrors(p.next, all):
			first = max(all, j.mirrorLossBound(&j.passed[p.next]))
		}
	}
	if p.stuck {
		return f, true // no later switch can have mirrored it
	}
	f.MirrorShare, f.Chance = c.all.mirrorLossChance(first, all, beyond, j.cfg.MirrorsPerDatagram)
	few := packetCounts{}
	for _, x := range c.samples {
		few.add(int(x.hopsAhead), x.bad)
	}
	if excused, chance := few.mirrorLossChance(first, all, beyond, 1); chance < f.Chance {
		f.MirrorShare, f.Chance = excused, chance
	}
	return f, f.Chance < j.cfg.Alpha
}

// mirrorLossChance returns the share of packets that lost mirrors make look
// ended, and the probability of at least the measured share; together is how
// many packets are one observation.
func (c *packetCounts) mirrorLossChance(first, all, beyond, together float64) (excused, chance float64) {
	n := float64(c.packets())
	if n == 0 {
		return 0, 1
	}
	for left, k := range c.byHopsAhead {
		if k > 0 {
			excused += float64(k) / n * first * min(math.Pow(all, float64(left-1))+beyond, 1)
		}
	}
	return excused, chernoffTail(float64(c.ended)/n, excused, n/together)
}

// losesMoreMirrors reports whether a switch seems to lose more mirrors than
// others do. A switch with few packets is taken to be like the others, unless
// most of those few are missing.
func (j *Judge) losesMoreMirrors(id model.NodeID, all float64) bool {
	share, n := j.MirrorLoss(id)
	return share > 0.5 || chernoffTail(share, all, float64(n)/j.cfg.MirrorsPerDatagram) < 0.2
}

// overallMirrorLoss returns an upper bound on the share of lost mirrors of all
// switches, which the true share hardly exceeds.
func (j *Judge) overallMirrorLoss() float64 {
	var seen, lost, few, fewLost uint64
	add := func(e *mirrorCounts) {
		seen, lost = seen+e.seen, lost+e.lost
		few, fewLost = few+uint64(len(e.samples)), fewLost+e.samples.countBad()
	}
	add(&j.unknownSwitches)
	for i := range j.passed {
		add(&j.passed[i])
	}
	return min(upperBound(seen, lost, j.cfg.MirrorsPerDatagram), upperBound(few-fewLost, fewLost, 1))
}

// mirrorLossBound is overallMirrorLoss of one switch.
func (j *Judge) mirrorLossBound(e *mirrorCounts) float64 {
	lost := e.samples.countBad()
	return min(upperBound(e.seen, e.lost, j.cfg.MirrorsPerDatagram), upperBound(uint64(len(e.samples))-lost, lost, 1))
}

// upperBound is three observations and two standard deviations above the
// measured share, if together mirrors are one observation.
func upperBound(seen, lost uint64, together float64) float64 {
	k, n := float64(lost)/together, float64(seen+lost)/together
	return min((k+2*math.Sqrt(k)+3)/(n+3), 1)
}

// chernoffTail bounds the probability that of n packets, each of which ends early
// with probability p, a share of x or more does (Chernoff).
func chernoffTail(x, p, n float64) float64 {
	p = max(p, 1e-6)
	if x <= p {
		return 1
	}
	distance := x * math.Log(x/p)
	if x < 1 {
		distance += (1 - x) * math.Log((1-x)/(1-p))
	}
	return math.Exp(-n * distance)
}

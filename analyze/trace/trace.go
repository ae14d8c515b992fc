package trace

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// Trace is a packet's way, as far as it was seen. It is the Assembler's and
// used again when the function that was given it returns; Clone keeps one.
type Trace struct {
	ID
	Why         mirror.Why // of all hops
	Length      uint16     // of the frame where it was seen first
	First, Last model.Time // mirrors, by the analyzer's clock
	Hops        []Hop      // in the order of the way
	Frame       []byte     // as captured first

	End  End
	Loop [2]int // Looped: hops at which a device was met, and met again

	// MirrorsLost counts mirrors that are known to be missing: of hops between two that
	// were seen, and of the first switch.
	MirrorsLost int
	// Reordered counts mirrors that came after those of later hops, Duplicates
	// those that came twice, Repeats hops that the packet came by again in the
	// same state: sent again, or doubled on the way.
	Reordered, Duplicates, Repeats int
	Evicted                        bool // closed early, for want of room

	routes *topo.Routes // of its time
	outPorts  bool         // out ports are known
}

// End says what became of a packet.
type End uint8

// Ends.
const (
	Unknown   End = iota // not IP, or nothing is known about its destination
	Arrived              // seen last where its destination is attached
	Incomplete                // seen last elsewhere: the packet is lost, or mirrors are
	Looped               // passed a device twice
	Unsettled            // Incomplete or Looped while routes were changing, or evicted
)

// String prints the end's name.
func (e End) String() string {
	return [...]string{"unknown", "arrived", "short", "looped", "unsettled"}[e]
}

// WorthKeeping reports whether a trace is worth keeping whole: abnormal ones, those of
// marked packets and of protocols.
func (t *Trace) WorthKeeping() bool {
	return t.End == Incomplete || t.End == Looped || t.Why.Has(mirror.Debug|mirror.Protocol)
}

// Clone returns a copy to keep.
func (t *Trace) Clone() *Trace {
	c := *t
	c.Hops, c.Frame = slices.Clone(t.Hops), slices.Clone(t.Frame)
	return &c
}

// Latency is the time from the first hop to the last, by their clocks. It is false
// of a packet seen once.
func (t *Trace) Latency() (time.Duration, bool) {
	n := len(t.Hops)
	if n < 2 {
		return 0, false
	}
	return t.Hops[n-1].Time.Sub(t.Hops[0].Time), true
}

// HopDelay is the time from one hop to the next, by the clocks of both. It is
// false where no next was seen, or not the next.
func (t *Trace) HopDelay(i int) (time.Duration, bool) {
	if i+1 >= len(t.Hops) || !t.Hops[i].sameSegment(&t.Hops[i+1]) || missingBetween(&t.Hops[i], &t.Hops[i+1]) > 0 {
		return 0, false
	}
	return t.Hops[i+1].Time.Sub(t.Hops[i].Time), true
}

// MuxDelay is the time that a packet spent in a load balancer between two hops:
// it has a tunnel at the second and none at the first.
func (t *Trace) MuxDelay(i int) (time.Duration, bool) {
	if i+1 >= len(t.Hops) || t.Hops[i].Depth != 1 || t.Hops[i+1].Depth < 2 {
		return 0, false
	}
	return t.Hops[i+1].Time.Sub(t.Hops[i].Time), true
}

// sortHops brings hops into the order of the way. Most come so.
func sortHops(hops []Hop) {
	for i := 1; i < len(hops); i++ {
		if isLater(&hops[i-1], &hops[i]) {
			slices.SortFunc(hops, func(a, b Hop) int {
				return cmp.Or(cmp.Compare(b.rank(), a.rank()), cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Time, b.Time))
			})
			return
		}
	}
}

// isLater reports whether a must stand behind b.
func isLater(a, b *Hop) bool {
	if x, y := a.rank(), b.rank(); x != y {
		return x < y
	}
	return a.Switch > b.Switch || a.Switch == b.Switch && a.Time > b.Time
}

// classify says what became of the packet, from its hops and the routes of its
// time.
func (t *Trace) classify(intent *topo.Intent, settle time.Duration) {
	sortHops(t.Hops)
	t.routes = intent.At(t.Last)
	if t.Key.IsZero() {
		return
	}
	settled := !t.Evicted && intent.At(t.First.Add(-settle)) == t.routes
	t.MirrorsLost = t.missingMirrors()
	at := &t.Hops[len(t.Hops)-1]
	switch {
	case t.findLoop():
		t.End = Looped
	case len(t.routes.Owners(at.To)) == 0:
		return
	case t.mayEndAt(t.routes, at) || !settled && t.mayEndAt(intent.At(t.First.Add(-settle)), at):
		t.End = Arrived
		return
	default:
		t.End = Incomplete
	}
	if !settled {
		t.End = Unsettled
	}
}

// mayEndAt reports whether a packet may rightly be seen last at a hop. One to an
// address that muxes answer for has still to come back from the mux.
func (t *Trace) mayEndAt(r *topo.Routes, at *Hop) bool {
	if !slices.Contains(r.ExpectedLastHops(at.To), at.Switch) {
		return false
	}
	if r.Owns(at.Switch, at.To) {
		// The tunnel ends here, and what is inside goes on: to a host of this
		// switch no other sees it.
		return at.Depth == 1 || at.Depth == 2 && !isVirtual(r, t.Key.Dst) && slices.Contains(r.ExpectedLastHops(t.Key.Dst), at.Switch)
	}
	if to, ok := nextNode(r.Fabric(), at); t.outPorts && (!ok || !r.Owns(to, at.To)) {
		return false // the switch sends it elsewhere, or has no route
	}
	return at.Depth > 1 || !isVirtual(r, at.To)
}

// isVirtual reports whether muxes answer for an address: packets to it do not end
// there, and packets from it do not begin there.
func isVirtual(r *topo.Routes, a model.Addr) bool {
	for _, id := range r.Owners(a) {
		if n := r.Fabric().Node(id); n.Role == topo.Mux && n.IPv4 != a && n.IPv6 != a {
			return true
		}
	}
	return false
}

// findLoop looks for a device that the packet met twice in one part of its
// way, with a smaller TTL. In a tunnel it may pass by again with right: from
// its mux back into the rack, or as a probe that was sent there and back.
func (t *Trace) findLoop() bool {
	for i := range t.Hops {
		for j := i - 1; j >= 0; j-- {
			a, b := &t.Hops[j], &t.Hops[i]
			if a.Switch == b.Switch && a.sameSegment(b) && a.TTL > b.TTL {
				t.Loop = [2]int{j, i}
				return true
			}
		}
	}
	return false
}

// missingMirrors counts the hops whose mirrors are lost for certain.
func (t *Trace) missingMirrors() (n int) {
	for i := 1; i < len(t.Hops); i++ {
		n += missingBetween(&t.Hops[i-1], &t.Hops[i])
	}
	if t.firstMissing() {
		n++
	}
	return n
}

// missingBetween is how many hops lie between two of one part of the way.
func missingBetween(a, b *Hop) int {
	if !a.sameSegment(b) {
		return 0
	}
	return max(int(a.TTL)-int(b.TTL)-1, 0)
}

// firstMissing reports whether the packet was seen first where its source is not
// attached. A probe may be let loose anywhere, and answers from a virtual
// address come from its backends.
func (t *Trace) firstMissing() bool {
	if t.Hops[0].Depth > 1 || t.Why.Has(mirror.Debug) || isVirtual(t.routes, t.Key.Src) {
		return false
	}
	first := t.routes.ExpectedLastHops(t.Key.Src)
	return len(first) > 0 && !slices.Contains(first, t.Hops[0].Switch)
}

// nextNode is the node behind a hop's out port.
func nextNode(f *topo.Fabric, h *Hop) (model.NodeID, bool) {
	if !f.HasNode(h.Switch) {
		return 0, false
	}
	p := f.Node(h.Switch).Port(h.Out)
	if p == nil {
		return 0, false
	}
	return p.Peer.Node, true
}

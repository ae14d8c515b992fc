package trace

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// Trace is a packet's path, as far as it was seen. It belongs to the Assembler
// and is reused when the function that received it returns; Clone keeps one.
type Trace struct {
	ID
	Why         mirror.Reasons // of all hops
	Length      uint16         // of the frame at the first hop
	First, Last model.Time     // mirrors, by the analyzer's clock
	Hops        []Hop          // in path order
	Frame       []byte         // as first captured

	End  End
	Loop [2]int // Looped: the hops of a device's first and second visit

	// MirrorsLost counts mirrors that are known to be missing: of hops between
	// two that were seen, and of the first switch.
	MirrorsLost int
	// Reordered counts mirrors that arrived after those of later hops,
	// Duplicates those that arrived twice, Repeats hops that the packet passed
	// again in the same state: retransmitted, or duplicated on the path.
	Reordered, Duplicates, Repeats int
	Evicted                        bool // closed early, by Config.MaxTraces or Stop
	Paused                         bool // Unsettled: last seen in a queue that PFC still paused

	routes   *topo.Routes // of its time
	outPorts bool         // out ports are known
}

// End is the fate of a packet.
type End uint8

// Ends.
const (
	Unknown   End = iota // not IP, or nothing is known about its destination
	Arrived              // last seen where its destination is attached
	Lost                 // last seen elsewhere: the packet was dropped, or mirrors are lost
	Looped               // passed a device twice
	Unsettled            // Lost or Looped while routes were changing, or evicted, or Paused
)

// String prints the end's name.
func (e End) String() string {
	return [...]string{"unknown", "arrived", "lost", "looped", "unsettled"}[e]
}

// WorthKeeping reports whether a trace should be stored: abnormal ones, those of packets
// that are stuck, of marked packets and of control protocols.
func (t *Trace) WorthKeeping() bool {
	return t.End == Lost || t.End == Looped || t.Paused || t.Why.Has(mirror.Debug|mirror.Protocol)
}

// Clone returns a copy to keep.
func (t *Trace) Clone() *Trace {
	c := *t
	c.Hops, c.Frame = slices.Clone(t.Hops), slices.Clone(t.Frame)
	return &c
}

// Latency returns the time from the first hop to the last, by their clocks. It
// returns false for a packet seen once.
func (t *Trace) Latency() (time.Duration, bool) {
	n := len(t.Hops)
	if n < 2 {
		return 0, false
	}
	return t.Hops[n-1].Time.Sub(t.Hops[0].Time), true
}

// HopDelay returns the time from one hop to the next, by the clocks of both. It
// returns false where the next switch's mirror is missing.
func (t *Trace) HopDelay(i int) (time.Duration, bool) {
	if i+1 >= len(t.Hops) || !t.Hops[i].sameSegment(&t.Hops[i+1]) || missingBetween(&t.Hops[i], &t.Hops[i+1]) > 0 {
		return 0, false
	}
	return t.Hops[i+1].Time.Sub(t.Hops[i].Time), true
}

// MuxDelay returns the time that a packet spent in a load balancer between two
// hops: it has a tunnel at the second and none at the first.
func (t *Trace) MuxDelay(i int) (time.Duration, bool) {
	if i+1 >= len(t.Hops) || t.Hops[i].Depth != 1 || t.Hops[i+1].Depth < 2 {
		return 0, false
	}
	return t.Hops[i+1].Time.Sub(t.Hops[i].Time), true
}

// sortHops sorts hops into path order. Most arrive so.
func sortHops(hops []Hop) {
	for i := 1; i < len(hops); i++ {
		if isLater(&hops[i-1], &hops[i]) {
			slices.SortFunc(hops, func(a, b Hop) int {
				return cmp.Or(cmp.Compare(b.rank(), a.rank()), cmp.Compare(a.Switch, b.Switch),
					cmp.Compare(a.Time, b.Time))
			})
			return
		}
	}
}

// isLater reports whether a is after b on the path.
func isLater(a, b *Hop) bool {
	if x, y := a.rank(), b.rank(); x != y {
		return x < y
	}
	return a.Switch > b.Switch || a.Switch == b.Switch && a.Time > b.Time
}

// classify determines the packet's fate, from its hops and the routes of its
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
		t.End = Lost
	}
	if !settled {
		t.End = Unsettled
	}
}

// mayEndAt reports whether a packet may rightly be last seen at a hop. A packet
// to a virtual address of muxes has still to come back from the mux.
func (t *Trace) mayEndAt(r *topo.Routes, at *Hop) bool {
	if !slices.Contains(r.ExpectedLastHops(at.To), at.Switch) {
		return false
	}
	if r.Owns(at.Switch, at.To) {
		// The tunnel ends here, and the inner packet continues: to a host of
		// this switch no other switch sees it.
		return at.Depth == 1 || at.Depth == 2 && !isVirtual(r, t.Key.Dst) &&
			slices.Contains(r.ExpectedLastHops(t.Key.Dst), at.Switch)
	}
	if to, ok := nextNode(r.Fabric(), at); t.outPorts && (!ok || !r.Owns(to, at.To)) {
		return false // the switch sends it elsewhere, or has no route
	}
	return at.Depth > 1 || !isVirtual(r, at.To)
}

// isVirtual reports whether muxes own an address: packets to it do not end
// there, and packets from it do not start there.
func isVirtual(r *topo.Routes, a model.Addr) bool {
	for _, id := range r.Owners(a) {
		if n := r.Fabric().Node(id); n.Role == topo.Mux && n.IPv4 != a && n.IPv6 != a {
			return true
		}
	}
	return false
}

// findLoop finds a device that the packet passed twice in one segment of its
// path, with a smaller TTL. In a tunnel it may rightly pass again: from its mux
// back into the rack, or as a probe on its round trip. Hosts forward nothing: what a
// switch sees of a packet after it gave that to a host is a retransmission.
func (t *Trace) findLoop() bool {
	for i := range t.Hops {
		for j := i - 1; j >= 0; j-- {
			a, b := &t.Hops[j], &t.Hops[i]
			if a.Switch == b.Switch && a.sameSegment(b) && a.TTL > b.TTL && !t.goesToHost(a) {
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

// missingBetween returns how many hops are missing between two of one segment.
func missingBetween(a, b *Hop) int {
	if !a.sameSegment(b) {
		return 0
	}
	return max(int(a.TTL)-int(b.TTL)-1, 0)
}

// firstMissing reports whether the packet was first seen where its source is not
// attached. A probe may be injected anywhere, and answers from a virtual address
// come from its backends.
func (t *Trace) firstMissing() bool {
	if t.Hops[0].Depth > 1 || t.Why.Has(mirror.Debug) || isVirtual(t.routes, t.Key.Src) {
		return false
	}
	first := t.routes.ExpectedLastHops(t.Key.Src)
	return len(first) > 0 && !slices.Contains(first, t.Hops[0].Switch)
}

// goesToHost reports whether a switch gave the packet to a host.
func (t *Trace) goesToHost(h *Hop) bool {
	to, ok := nextNode(t.routes.Fabric(), h)
	return ok && t.routes.Fabric().Node(to).Role == topo.Host
}

// nextNode returns the node that a hop's out port leads to.
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

package load

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/weft-telemetry/weft/analyze/internal/flowtable"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// Size is the traffic of one flow in a window.
type Size struct {
	Flow    model.FlowKey
	Packets uint64
	Bytes   uint64
	Exact   bool // every counter of it is
}

// Sizes sums up flows over a window of slots, each flow once however many
// switches saw it.
type Sizes struct {
	max   int
	flows flowtable.Table
	sizes []flowSize // by number
	// Untracked counts sightings of flows beyond the limit.
	Untracked uint64
}

// flowSize is the sums of a flow.
type flowSize struct {
	packets, bytes uint64
	exact          bool
}

// NewSizes returns an empty window for at most max flows.
func NewSizes(max int) *Sizes { return &Sizes{max: max} }

// Observe adds a slot. The largest count of all switches that saw a flow is
// used: others lost packets, or receive them later.
func (s *Sizes) Observe(m *paths.Map) {
	end := uint32(math.MaxUint32)
	if room := s.max - s.flows.Len(); room < m.Flows() {
		if places := s.NewFlows(m); len(places) > room {
			end = places[room]
		}
	}
	s.ObservePart(m, end)
}

// NewFlows returns the places of the flows of a map that the window does not have yet,
// ascending.
func (s *Sizes) NewFlows(m *paths.Map) (places []uint32) {
	for i := range m.Flows() {
		if _, known := s.flows.Find(m.Key(i), m.Hash(i)); !known {
			places = append(places, m.Place(i))
		}
	}
	return places
}

// Tracked returns the number of flows of the window.
func (s *Sizes) Tracked() int { return s.flows.Len() }

// ObservePart is Observe of a part of the flows, of which new ones are added if their
// place is before end.
func (s *Sizes) ObservePart(m *paths.Map, end uint32) {
	for i := range m.Flows() {
		best := m.Largest(i)
		n, known := s.flows.FindHinted(m.Key(i), m.Hash(i), m.ID(i))
		if !known {
			if m.Place(i) >= end {
				s.Untracked++
				continue
			}
			n, _ = s.flows.FindOrAdd(m.Key(i), m.Hash(i)) // numbers are given in turn
			s.sizes = append(s.sizes, flowSize{exact: true})
		}
		f := &s.sizes[n]
		f.packets += best.Packets
		f.bytes += best.Bytes
		f.exact = f.exact && best.Exact
	}
}

// Top returns the n largest flows by packets, the largest first.
func (s *Sizes) Top(n int) []Size {
	list := make([]Size, 0, s.flows.Len())
	for i, f := range s.sizes {
		list = append(list, Size{Flow: *s.flows.Key(uint32(i)), Packets: f.packets, Bytes: f.bytes, Exact: f.exact})
	}
	return Largest(list, n)
}

// Largest returns the n largest of a list, the largest first.
func Largest(list []Size, n int) []Size {
	slices.SortFunc(list, func(a, b Size) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets),
			a.Flow.Compare(b.Flow))
	})
	return list[:min(n, len(list))]
}

// Distribution counts flows by size: element i those of 2^(i-1) to 2^i-1
// packets. The last element is not zero.
func (s *Sizes) Distribution() (count []int) {
	for _, f := range s.sizes {
		i := bits.Len64(f.packets)
		for len(count) <= i {
			count = append(count, 0)
		}
		count[i]++
	}
	return count
}

// Reset starts a new window.
func (s *Sizes) Reset() {
	s.flows.Clear()
	s.sizes = s.sizes[:0]
	s.Untracked = 0
}

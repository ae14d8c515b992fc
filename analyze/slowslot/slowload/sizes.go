package slowload

import (
	"cmp"
	"math/bits"
	"slices"

	paths "github.com/weft-telemetry/weft/analyze/slowslot/slowpaths"
	"github.com/weft-telemetry/weft/model"
)

// Sizes sums up flows over a window of slots, each flow once however many
// switches saw it.
type Sizes struct {
	max   int
	flows map[model.FlowKey]*Size
	// Untracked counts sightings of flows beyond the limit.
	Untracked uint64
}

// NewSizes returns an empty window for at most max flows.
func NewSizes(max int) *Sizes { return &Sizes{max: max, flows: map[model.FlowKey]*Size{}} }

// Observe adds a slot. The largest count of all switches that saw a flow is
// used: others lost packets, or receive them later.
func (s *Sizes) Observe(m *paths.Map) {
	for key, sightings := range m.All() {
		best := slices.MaxFunc(sightings, func(a, b paths.Sighting) int { return cmp.Compare(a.Packets, b.Packets) })
		f := s.flows[key]
		if f == nil {
			if len(s.flows) >= s.max {
				s.Untracked++
				continue
			}
			f = &Size{Flow: key, Exact: true}
			s.flows[key] = f
		}
		f.Packets += best.Packets
		f.Bytes += best.Bytes
		f.Exact = f.Exact && best.Exact
	}
}

// Top returns the n largest flows by packets, the largest first.
func (s *Sizes) Top(n int) []Size {
	list := make([]Size, 0, len(s.flows))
	for _, f := range s.flows {
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b Size) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets),
			a.Flow.Compare(b.Flow))
	})
	return list[:min(n, len(list))]
}

// Distribution counts flows by size: element i those of 2^(i-1) to 2^i-1
// packets. The last element is not zero.
func (s *Sizes) Distribution() (count []int) {
	for _, f := range s.flows {
		i := bits.Len64(f.Packets)
		for len(count) <= i {
			count = append(count, 0)
		}
		count[i]++
	}
	return count
}

// Reset starts a new window.
func (s *Sizes) Reset() {
	clear(s.flows)
	s.Untracked = 0
}

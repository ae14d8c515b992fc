package sketch

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

// TestPeelFindsWhatWasEncoded checks every flow that peeling finds against the
// truth, below and above the threshold, and that what it leaves is the rest.
func TestPeelFindsWhatWasEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := Geometry{FilterHashes: 20, FilterBits: 1 << 14, Tables: 3, TableCells: 50}
		s, err := NewSet[Key6](g, rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "flows"), 0))
		truth := map[Key6]Cell[Key6]{}
		for range rapid.IntRange(0, 200).Draw(t, "count") {
			k := Key6{1, r.Uint64(), 2, r.Uint64(), 6 << 24}
			c := Cell[Key6]{Key: k, Flows: 1, In: model.PortID(r.Uint64N(64)), Out: model.PortID(r.Uint64N(64))}
			for range 1 + r.Uint64N(5) {
				size := uint32(r.Uint64N(1500))
				c.Packets++
				c.Bytes += uint64(size)
				if h, isNew := s.AddPacket(&k, size); isNew {
					s.InsertFlow(&k, h, c.In, c.Out)
				}
			}
			truth[k] = c
		}
		cells := s.AppendCells(nil)
		var p Peeler[Key6]
		found := p.Peel(s.Family(), s.Filter(), cells, func(flow *Cell[Key6]) {
			if want := truth[flow.Key]; *flow != want {
				t.Fatalf("Peel found %+v; want %+v", *flow, want)
			}
			delete(truth, flow.Key)
		})
		left := 0
		for _, c := range cells {
			left += int(c.Flows)
		}
		if int(s.Inserted()) != found+len(truth) || left != len(truth)*int(g.Tables) {
			t.Fatalf("of %d flows Peel found %d and left %d in %d cells; want %d left", s.Inserted(), found, len(truth), left, len(truth))
		}
	})
}

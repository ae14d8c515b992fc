package sketch

import (
	"math/rand/v2"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

// BenchmarkAdd counts packets of 100K flows in a table sized for them, which
// is what a busy switch does; map is what one writes without a sketch.
func BenchmarkAdd(b *testing.B) {
	const flows = 100_000
	g := Geometry{FilterHashes: 20, FilterBits: 57_000 * 64, Tables: 3, TableCells: 124_000 / 3}
	r := rand.New(rand.NewPCG(1, 2))
	stream := make([]model.FlowKey, 1<<18)
	keys := make([]model.FlowKey, flows)
	for i := range keys {
		keys[i] = model.FlowKey{Src: model.Addr4(r.Uint32()), Dst: model.Addr4(r.Uint32()), SrcPort: uint16(r.Uint32()), DstPort: 80, Proto: model.TCP}
	}
	for i := range stream {
		stream[i] = keys[r.IntN(flows)]
	}
	b.Run("set", func(b *testing.B) {
		s, err := NewSet[Key4](g, 1)
		if err != nil {
			b.Fatal(err)
		}
		for i := 0; b.Loop(); i++ {
			k := Pack4(&stream[i&(1<<18-1)])
			if h, isNew := s.AddPacket(&k, 1000); isNew {
				s.InsertFlow(&k, h, 1, 2)
			}
		}
	})
	b.Run("map", func(b *testing.B) {
		type counters struct{ packets, bytes uint64 }
		m := map[model.FlowKey]*counters{}
		for i := 0; b.Loop(); i++ {
			k := &stream[i&(1<<18-1)]
			c := m[*k]
			if c == nil {
				c = new(counters)
				m[*k] = c
			}
			c.packets++
			c.bytes += 1000
		}
	})
}

package trace

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// TestLostMirrorsAreNoLostPackets: packets whose other mirrors were overwritten or
// dropped while their traces were open, or shortly before, do not look lost; others still
// do.
func TestLostMirrorsAreNoLostPackets(t *testing.T) {
	first := pathTo(t, 15)[0]
	list, stats := gather(t, noPorts(), func(a *Assembler) {
		at := model.Time(time.Second)
		for id := range uint16(10) {
			a.AddMirror(at, seen(first, 15, 64, id, at))
		}
		at = at.Add(time.Millisecond)
		a.MirrorsLost(at)
		at = at.Add(time.Millisecond)
		for id := range uint16(3) { // the last switch's mirror was lost, and came first
			a.AddMirror(at, seen(first, 15, 64, 50+id, at))
		}
		a.Advance(at.Add(time.Minute))
		at = at.Add(2 * time.Minute)
		for id := range uint16(5) {
			a.AddMirror(at, seen(first, 15, 64, 100+id, at))
		}
		a.Advance(at.Add(time.Minute))
	})
	ends := map[End]int{}
	for _, tr := range list {
		ends[tr.End]++
	}
	if ends[Unknown] != 13 || ends[Lost] != 5 || stats.Unproven != 13 {
		t.Errorf("ends %v, %d unproven; want 13 that prove nothing, and 5 lost", ends, stats.Unproven)
	}
}

// TestOpenTracesAreBoundedInBytes floods packets of many hops.
func TestOpenTracesAreBoundedInBytes(t *testing.T) {
	cfg := noPorts()
	cfg.Memory = model.MiB
	a, err := NewAssembler(cfg, intent, func(*Trace) {})
	if err != nil {
		t.Fatal(err)
	}
	for id := range uint16(5000) {
		var m *mirror.Mirror
		for hop := range uint8(20) {
			at := model.Time(id)*1000 + model.Time(hop)
			m = seen(16+model.NodeID(hop%8), 15, 64-hop, id, at)
			a.AddMirror(at, m)
		}
	}
	if a.isFull(len(a.traces), len(a.more)) || a.Stats().Evicted == 0 {
		t.Errorf("%d entries and %d blocks in %v, %+v; want them within it, and some evicted", len(a.traces), len(a.more), cfg.Memory, a.Stats())
	}
}

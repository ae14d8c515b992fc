package portstat

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
)

// codes writes a value and reads it back.
func codes[T comparable](t *rapid.T, v T, code func(*T, *fieldcodec.Coder)) {
	w := fieldcodec.NewWriter(nil)
	code(&v, w)
	var got T
	r := fieldcodec.NewReader(w.Written())
	if code(&got, r); r.End() != nil || got != v {
		t.Fatalf("%+v is read as %+v, %v", v, got, r.End())
	}
}

// TestEverythingIsCoded: what other processes read is what was written.
func TestEverythingIsCoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Reading{Port: model.Port{Node: 3, Port: 4}, From: 5, To: model.Time(rapid.Int64().Draw(t, "to")), Source: GNMI, Counters: anyTotals(t, "totals")}
		for i := range r.Class {
			if r.Class[i].Has == 0 {
				r.Class[i] = ClassCounters{} // fields that a class does not have are not coded
			}
		}
		codes(t, r, (*Reading).Code)
		flow := model.FlowKey{Src: model.Addr{Lo: rapid.Uint64().Draw(t, "source")}, Dst: model.Addr{Hi: 1}, SrcPort: 7, DstPort: 4791, Proto: model.UDP, V6: true}
		codes(t, Sample{
			Node: 1, In: 2, Out: 3, At: -4, Source: SFlow, Has: HasDrop, Flow: flow, Priority: 5, Bytes: 6, Rate: rapid.Uint32().Draw(t, "rate"), Pool: rapid.Uint64().Draw(t, "pool"),
			QueueDepth: 7, Delay: 8, Drop: NoRoute,
		}, (*Sample).Code)
		codes(t, FlowRecord{Node: 1, From: 2, To: 3, Source: IPFIX, Flow: flow, Packets: 4, Bytes: rapid.Uint64().Draw(t, "bytes"), Sampling: 6}, (*FlowRecord).Code)
	})
}

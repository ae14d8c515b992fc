package flows

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
)

// TestRecordsAreReadAsWritten: records of any keys and counts, compact or not.
func TestRecordsAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Uint64()
		var list []Record
		var compact []CompactRecord
		for range rapid.IntRange(0, 40).Draw(t, "records") {
			key := model.FlowKey{
				Src: model.Addr4(rapid.Uint32().Draw(t, "src")), Dst: model.Addr4(rapid.Uint32().Draw(t, "dst")),
				SrcPort: rapid.Uint16().Draw(t, "source port"), DstPort: rapid.Uint16().Draw(t, "port"),
				Proto: model.Proto(rapid.Uint8().Draw(t, "protocol")),
			}
			r := Record{
				Key: key, Packets: number.Draw(t, "packets"), Bytes: number.Draw(t, "bytes"),
				In: model.PortID(rapid.Uint16().Draw(t, "in")), Out: model.PortID(rapid.Uint16().Draw(t, "out")),
				Grade: Grade(rapid.IntRange(0, int(Exact)).Draw(t, "grade")),
			}
			compact = append(compact, CompactRecord{
				key: sketch.Pack4(&key), counts: r.Packets<<32 | uint64(r.In)<<16 | uint64(r.Out), bytes: r.Bytes,
			})
			if rapid.Bool().Draw(t, "IPv6") {
				src := model.Addr{Hi: number.Draw(t, "high"), Lo: number.Draw(t, "low")}
				r.Key.Src, r.Key.Dst, r.Key.V6 = src, model.Addr{Lo: 1}, true
			}
			list = append(list, r)
		}
		w := fieldcodec.NewWriter(nil)
		CodeRecords(w, &list)
		CodeCompact(w, &compact)
		r := fieldcodec.NewReader(w.Written())
		var gotList []Record
		var gotCompact []CompactRecord
		CodeRecords(r, &gotList)
		CodeCompact(r, &gotCompact)
		if err := r.End(); err != nil || !slices.Equal(gotList, list) || !slices.Equal(gotCompact, compact) {
			t.Fatalf("%+v and %+v are read as %+v and %+v, %v", list, compact, gotList, gotCompact, err)
		}
	})
}

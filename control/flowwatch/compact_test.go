package flowwatch

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
)

// TestCompactRecordsChangeNoResult: the same run, with a link that drops packets, has the same
// flows, findings and losses in every slot whether the decoder gives compact records or
// others.
func TestCompactRecordsChangeNoResult(t *testing.T) {
	sizing, err := flowset.Plan(1000, 0.99, flowset.Single)
	check(t, err)
	if sizing.Geometry.Tables != 3 {
		t.Fatalf("flowsets of %d sub-tables; the test needs 3, or no record is compact", sizing.Geometry.Tables)
	}
	analysed := func(compact bool) (lines []string) {
		l := newSizedLab(t, 3, &sizing, nil)
		l.watch.decode.Compact = compact
		l.each = func(s *Slot) {
			used := 0
			for i := range s.Decoded {
				used += len(s.Decoded[i].Compact)
			}
			if (used > 0) != (compact && s.Len() > 0) {
				t.Fatalf("slot %d of %d flows: %d compact records, with compact %v", s.Index, s.Len(), used, compact)
			}
			for f := range s.Flows() {
				lines = append(lines, fmt.Sprintf("%d %v %+v %+v", s.Index, *f.Key, f.Hops, f.Totals))
			}
			lines = append(lines, fmt.Sprintf("%d %+v %+v", s.Index, s.Paths, s.Losses))
		}
		l.inject(20*ms, 20*ms, sim.Lossy{Port: model.Port{Node: l.node("leaf0"), Port: 1}, Share: 0.1})
		l.run(60 * ms)
		return lines
	}
	got, want := analysed(true), analysed(false)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("with compact records\n%q\nwant\n%q", got, want)
	}
}

package flowradar

import (
	"testing"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sketch"
)

// A table that is large enough decodes to what was encoded, and the checks see
// every difference.
func TestSlotIsJudged(t *testing.T) {
	l, err := newLoad(4, 600, claim.Rand(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.encode(t.Context(), sketch.Geometry{FilterHashes: 24, FilterBits: 64 * 400, Tables: 4, TableCells: 300}, 1)
	if err != nil {
		t.Fatal(err)
	}
	differ := 0
	for i, fs := range s.sets {
		d, want := flows.SingleDecode(fs), &s.want[i]
		if want.hidden > 0 || !want.allFlows(&d) || !want.allCounts(&d) {
			t.Fatalf("switch %d: %d of %d flows decoded, %d hidden by the filter", i, len(d.Records), want.flows, want.hidden)
		}
		d.Records[0].Packets++
		if want.allCounts(&d) || !want.allFlows(&d) {
			t.Errorf("switch %d: a packet too many was not noticed, or taken for another flow", i)
		}
		d.Records[0].Key.SrcPort++
		if want.allFlows(&d) {
			t.Errorf("switch %d: a wrong flow was not noticed", i)
		}
		d.Records = d.Records[1:]
		if want.allFlows(&d) {
			t.Errorf("switch %d: a missing flow was not noticed", i)
		}
	}
	for i := range l.flows {
		f := &l.flows[i]
		for _, sw := range f.path {
			if l.packetsAt(f, int(sw)) != f.packets {
				differ++
			}
		}
	}
	if share := float64(differ) / float64(hops*len(l.flows)); share < 0.01 || share > 0.03 {
		t.Errorf("%v of counts differ from hop to hop; want about 0.02", share)
	}
}

package flowradar

import (
	"math/rand/v2"
	"testing"

	"github.com/weft-telemetry/weft/analyze/flows"
	switchflowset "github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
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

// TestFullNarrowCellsAreSaid counts a flow of more packets than a narrow cell holds:
// it is found, its count is not called exact, and no other count is wrong.
func TestFullNarrowCellsAreSaid(t *testing.T) {
	const flowsOfSlot, heavy = 1000, 70_000
	plan, err := switchflowset.Plan(flowsOfSlot, 0.999, switchflowset.Single)
	if err != nil {
		t.Fatal(err)
	}
	keys := randomKeys(rand.New(rand.NewPCG(5, 0)), flowsOfSlot)
	fs, _, err := countedFlowset(1, plan.Geometry, 3, func(yield func(*model.FlowKey, uint32) bool) {
		for i := range keys {
			packets := uint32(3)
			if i == 0 {
				packets = heavy
			}
			if !yield(&keys[i], packets) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	d := flows.SingleDecode(fs)
	if len(d.Records) != flowsOfSlot || d.Complete() {
		t.Fatalf("%d flows, complete %v; want %d and not complete", len(d.Records), d.Complete(), flowsOfSlot)
	}
	for _, r := range d.Records {
		switch {
		case r.Key == keys[0] && r.Grade == flows.Exact:
			t.Errorf("%d packets of %d are called exact", r.Packets, heavy)
		case r.Key != keys[0] && r.Grade == flows.Exact && r.Packets != 3:
			t.Errorf("%v: %d packets; want 3", r.Key, r.Packets)
		}
	}
}

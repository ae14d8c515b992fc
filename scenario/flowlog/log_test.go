package flowlog

import (
	"context"
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/scenario"
)

// TestFlowsetsTellWhatWentWrong plays the example with three faults: what the
// reports say is what happened, to the packet.
func TestFlowsetsTellWhatWentWrong(t *testing.T) {
	s, err := scenario.Read("../../examples/flow-faults.yaml")
	if err != nil {
		t.Fatal(err)
	}
	log, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := scenario.Run(context.Background(), s, scenario.Options{Sink: log.Take}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, slots, err := log.Play(r.Intent)
	if err != nil {
		t.Fatal(err)
	}
	sum := Summarize(w, slots, r.Intent, 3)
	var kinds []string
	for _, f := range sum.Findings {
		if f.Sure {
			kinds = append(kinds, f.Kind)
		}
	}
	slices.Sort(kinds)
	if want := []string{"black hole", "loop", "wrong route"}; !slices.Equal(kinds, want) || !sum.Faulty() {
		t.Errorf("found %q; want %q", kinds, want)
	}
	lost := uint64(0)
	for _, l := range sum.Losses {
		lost += l.Packets
	}
	want := uint64(0)
	for _, d := range r.Summary.Drops {
		if d.Reason == "silent" || d.Reason == "blackhole" { // what dies of its TTL in the loop is not seen
			want += d.Packets
		}
	}
	if lost != want || want == 0 {
		t.Errorf("%d packets lost by the reports; %d were, and more than none", lost, want)
	}
	if len(sum.Top) != 3 || sum.Flows != 19 || sum.Complete < sum.Flowsets*9/10 {
		t.Errorf("%d of %d flowsets complete, %d flows, %d of the largest; want nearly all, 19 and 3", sum.Complete, sum.Flowsets, sum.Flows, len(sum.Top))
	}
	ways := Ways(slots, sum.Top[0].Flow, r.Intent)
	if !slices.ContainsFunc(ways, func(w Way) bool { return len(w.Loop) == 2 }) {
		t.Errorf("the largest flow's ways %+v; want it in the loop of two switches", ways)
	}
}

package bench

import "testing"

// TestSourcesBenchRuns: both sides of sFlow do work, and a few targets' counters all
// become updates. How fast is not judged here.
func TestSourcesBenchRuns(t *testing.T) {
	list, err := benchTogether(t.Context(), 1000, 3, 4, 3)
	if err != nil {
		t.Fatal(err)
	}
	if r := list[0]; r.Value != 3*4*3 || r.PeerValue != r.Value {
		t.Errorf("%+v; want the %d tables that were sent", r, 3*4*3)
	}
	if r := list[1]; r.Value == 0 || r.PeerValue != r.Value {
		t.Errorf("%+v; want all samples that were sent", r)
	}
	r, err := benchSFlow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Value <= 0 || r.PeerValue <= 0 {
		t.Errorf("%+v; want times of both", r)
	}
}

package proof

import (
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/control/api"
)

// TestTogether: what else the account names is removed with the verdict's culprits, once
// each, and the packet is in time where the verdict alone does not bring it there.
func TestTogether(t *testing.T) {
	c := storm(t)
	var flows []api.Participant
	for i := range c.Diagnosis.Account.Timeline.Senders {
		if s := &c.Diagnosis.Account.Timeline.Senders[i]; s.Dst == "h15" {
			flows = append(flows, api.Participant{Flow: &s.FlowRef, Weight: 0.3})
		}
	}
	c.Diagnosis.Account.Terms = append(slices.Clone(c.Diagnosis.Account.Terms), api.AccountTerm{Kind: "contention", Culprits: append(flows, flows[0])})
	r, err := Prove(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Together == nil || r.Together.Slowdown > inTime || r.Together.LateNs > r.Without.LateNs {
		t.Fatalf("together %+v; want it in time, as the flows to h15 are gone with the pauses of the host", r.Together)
	}
	if !slices.ContainsFunc(r.Trials(), func(x Trial) bool { return x.Name == "together" }) {
		t.Error("the trial is not listed")
	}
	// The verdict names all.
	for _, f := range flows {
		c.Named.Flows = append(c.Named.Flows, f.Flow.Flow)
	}
	if all, more := (&prover{c: c}).together(); more || len(all.Flows) != len(flows) {
		t.Errorf("together() = %v, %v; want no more than the verdict names", all, more)
	}
}

package live

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/dataplane/sonic"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/sflow"
)

// TestSONiCSwitchesSpeakSFlowAlone: every switch sends sFlow datagrams of its own
// address within the run's time, and no host sends anything.
func TestSONiCSwitchesSpeakSFlowAlone(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	export := sonic.Config{Interval: 20 * time.Millisecond, Sampling: 256, Seed: 1}
	sent := map[model.NodeID]int{}
	var r *Reporters
	r, err := NewScenarioSONiC(recordingScenario(t), export, start, sonic.Outlets{SFlow: func(at model.Time, from model.NodeID, datagram []byte) error {
		sent[from]++
		var in sflow.Reader
		if err := in.Reset(datagram); err != nil {
			t.Fatal(err)
		}
		if in.Header.Agent != r.Topology().Fabric.Node(from).IPv4.Netip() || at < model.TimeOf(start) || at > model.TimeOf(start.Add(time.Second)) ||
			in.Header.Uptime > time.Second {
			t.Fatalf("datagram of %d at %v: %+v", from, at, in.Header)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Record(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for i := range r.Topology().Fabric.Nodes() {
		n := r.Topology().Fabric.Node(model.NodeID(i))
		if n.Role.IsSwitch() != (sent[n.ID] > 0) {
			t.Errorf("%s sent %d datagrams", n.Name, sent[n.ID])
		}
	}
	if _, err := NewSONiC(DefaultConfig(), sonic.Config{}, start, sonic.Outlets{}); err == nil {
		t.Error("NewSONiC without an interval = nil error; want one")
	}
}

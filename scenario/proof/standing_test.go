package proof

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

// deadlocked is what a controller answered about the deadlock of examples/incidents: a ring
// of four switches that send clockwise.
func deadlocked(t *testing.T) *DeliveryCase {
	t.Helper()
	c := delivered(t, "deadlock")
	links := topo.DefaultLinks()
	links.Host.Rate, links.Fabric.Rate = model.Gbps, model.Gbps
	f, err := topo.Ring(4, 1, links)
	if err != nil {
		t.Fatal(err)
	}
	c.Fabric = scenario.FromTopology("ring", &file.Document{Fabric: f, Seed: 1})
	c.Fabric.Sim.Buffer = model.MB
	c.Named = PlacesOf(c.Incident)
	return c
}

func TestDeadlockIsProven(t *testing.T) {
	c := deadlocked(t)
	if !OfDelivery(&c.Incident.Incident) || len(c.Named) != 4 {
		t.Fatalf("cause %s names %v; want the four ports of its cycle", c.Incident.Cause, c.Named)
	}
	runs := 0
	c.Progress = func(n int) { runs = n }
	r, err := ProveDelivery(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != Proven || r.Error > tolerance || r.Without.Harm != 0 || r.Rebuilt.Harm < 0.5 {
		t.Errorf("%s: %s, deviates by %.2f; want it proven, half of the packets standing", r.Verdict, r.Text, r.Error)
	}
	if r.Control != nil {
		t.Errorf("control %+v; want none, as all flows pass the cycle", r.Control)
	}
	if r.Runs != runs || runs < len(speeds)+2 {
		t.Errorf("%d simulations, told of %d; want the same, one for each speed at least", r.Runs, runs)
	}
	if len(r.Remedies) != 1 || r.Remedies[0].Name != "limited" || r.Remedies[0].Harm != 0 {
		t.Errorf("%d remedies; want slower senders, which do not fill the cycle", len(r.Remedies))
	}
	if s := r.Files()["without.yaml"]; strings.Contains(s, "from: h1, to: h3") || !strings.Contains(s, "from: h0, to: h2") {
		t.Errorf("the scenario of without has\n%s\nwant all flows but the one that closes the cycle", s)
	}
}

// Ports that no flow holds one after the other are no cycle.
func TestWrongDeadlockIsRefuted(t *testing.T) {
	c := deadlocked(t)
	c.Named[0], c.Named[2] = c.Named[2], c.Named[0] // against the direction of the packets
	r, err := ProveDelivery(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != Refuted || r.Without.Gain != 0 {
		t.Errorf("%s: %s; want it refuted", r.Verdict, r.Text)
	}
}

func TestDeadlockWithoutRecords(t *testing.T) {
	c := deadlocked(t)
	c.Flows = nil
	if _, err := ProveDelivery(t.Context(), c); !IsMissing(err) {
		t.Errorf("without flow records: %v; want what is missing", err)
	}
	c = deadlocked(t)
	for i := range c.Flows {
		f := &c.Flows[i]
		for j := range f.Series {
			f.Series[j].Path = f.Series[j].Path[:1]
			f.Series[j].Path[0].Switch = "elsewhere"
		}
	}
	if _, err := ProveDelivery(t.Context(), c); !IsMissing(err) {
		t.Errorf("with records of unknown switches: %v; want what is missing", err)
	}
}

// A flow that is removed does not arrive, either: one alone proves nothing.
func TestDeadlockOfOneVictim(t *testing.T) {
	c := deadlocked(t)
	c.Incident.Victims = slices.DeleteFunc(c.Incident.Victims, func(p api.Participant) bool { return p.Flow.Src != "h1" })
	if _, err := ProveDelivery(t.Context(), c); !IsMissing(err) {
		t.Errorf("with the flow that closes the cycle as the only victim: %v; want what is missing", err)
	}
}

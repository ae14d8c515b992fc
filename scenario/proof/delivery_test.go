package proof

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

// delivered reads what a controller answered about a recording of examples/incidents: the
// incident, and flow records from before it and of its time.
func delivered(t *testing.T, name string) *DeliveryCase {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	c := new(DeliveryCase)
	if err := json.Unmarshal(data, c); err != nil {
		t.Fatal(err)
	}
	links := topo.DefaultLinks()
	links.Host.Rate, links.Fabric.Rate = model.Gbps, model.Gbps
	f, err := topo.LeafSpine(4, 2, 2, links)
	if err != nil {
		t.Fatal(err)
	}
	c.Fabric = scenario.FromTopology("delivery", &file.Document{Fabric: f, Seed: 1})
	c.Named = PlacesOf(c.Incident)
	return c
}

// recordings are of faults that lose or divert packets, with a switch that has no part in
// them and that victims pass.
var recordings = map[string]string{
	"loop": "leaf1", "loop-remote": "leaf0", "blackhole-spine": "leaf0", "blackhole-of-some": "spine0",
	"silent-loss-leaf": "spine0", "silent-loss-spine": "leaf0", "wrong-route": "leaf0", "link-down": "leaf1",
}

func TestDeliveryIsProven(t *testing.T) {
	for name := range recordings {
		t.Run(name, func(t *testing.T) {
			c := delivered(t, name)
			if !OfDelivery(&c.Incident.Incident) {
				t.Fatalf("cause %s is not about delivery; want it to be", c.Incident.Cause)
			}
			r, err := ProveDelivery(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict != Proven || r.Error > tolerance || r.Without.Harm > 0.2*r.Rebuilt.Harm {
				t.Errorf("%s: %s, counts deviate by %.2f; want it proven", r.Verdict, r.Text, r.Error)
			}
			if d := r.Rebuilt.Harm - r.Recorded; d > 0.2*r.Recorded || d < -0.2*r.Recorded {
				t.Errorf("%.3f of the victims' packets are harmed, recorded %.3f; want within 20 %%", r.Rebuilt.Harm, r.Recorded)
			}
			for _, x := range r.Trials() {
				t.Logf("%s: %.3f, gain %.2f, others %.3f", x.Name, x.Harm, x.Gain, x.Others)
			}
		})
	}
}

func TestWrongPlacesAreRefuted(t *testing.T) {
	for name, node := range recordings {
		c := delivered(t, name)
		c.Named = []Place{{Node: node}}
		r, err := ProveDelivery(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != Refuted {
			t.Errorf("%s at %s: %s: %s; want it refuted", name, node, r.Verdict, r.Text)
		}
	}
}

func TestDeliveryNeedsCounts(t *testing.T) {
	c := delivered(t, "blackhole-spine")
	c.Flows = nil
	if _, err := ProveDelivery(t.Context(), c); !IsMissing(err) {
		t.Errorf("without flow records: %v; want what is missing", err)
	}
	c = delivered(t, "blackhole-spine")
	for i := range c.Flows {
		for j := range c.Flows[i].Series {
			p := &c.Flows[i].Series[j]
			p.Path = p.Path[1:] // the first switch does not report
		}
	}
	if _, err := ProveDelivery(t.Context(), c); !IsMissing(err) {
		t.Errorf("without the first switch: %v; want what is missing", err)
	}
}

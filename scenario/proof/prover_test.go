package proof

import (
	"context"
	"errors"
	"testing"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// topologyOf is a fabric as a controller answers it.
func topologyOf(f *topo.Fabric) *api.Topology {
	top := &api.Topology{Name: "fabric"}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		top.Nodes = append(top.Nodes, api.Node{Name: n.Name, Role: n.Role.String(), IPv4: n.IPv4.String(), IPv6: n.IPv6.String()})
	}
	end := func(p model.Port) api.PortRef {
		return api.PortRef{Node: f.Node(p.Node).Name, Port: p.Port, Interface: f.Port(p).Name}
	}
	for _, l := range f.Links() {
		top.Links = append(top.Links, api.Link{A: end(l.A), B: end(l.B), RateBps: int64(l.Rate), DelayNs: int64(l.Delay)})
	}
	return top
}

// TestProver makes a proof for a controller, says how far it is, and stops when it is told.
func TestProver(t *testing.T) {
	c := storm(t)
	last := 0
	p := &Prover{Settings: c.Fabric}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	in := &api.ProofCase{Topology: topologyOf(c.Fabric.Topology.Fabric), Incident: &api.IncidentDetail{}, Diagnoses: []api.DiagnosisDetail{*c.Diagnosis}}
	got, err := p.ProveVerdict(ctx, in, func(runs int) {
		if runs != last+1 {
			t.Errorf("progress %d after %d", runs, last)
		}
		last = runs
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Outcome == "" || got.Runs != last || got.Diagnosis != c.Diagnosis.ID || len(got.Trials) < 3 || got.Trials[0].Name != "rebuilt" || got.Text == "" {
		t.Errorf("proof %+v; want an outcome after %d simulations, and the trials", got, last)
	}
	_, err = p.ProveVerdict(ctx, in, func(int) { stop() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a proof that is cancelled after its first simulation: %v; want that", err)
	}
	in.Diagnoses = nil
	if _, err := p.ProveVerdict(t.Context(), in, func(int) {}); !IsMissing(err) {
		t.Errorf("an incident without a diagnosis: %v; want what is missing", err)
	}
}

// answers are the flow records of a test.
type answers []api.FlowDetail

func (a answers) Flows(context.Context, api.FlowsQuery) (page api.FlowPage, err error) {
	for i := range a {
		page.Items = append(page.Items, a[i].Flow)
	}
	return page, nil
}

func (a answers) Flow(_ context.Context, key model.FlowKey, _ api.Range) (d api.FlowDetail, err error) {
	for i := range a {
		if a[i].Flow.Flow == key {
			d = a[i]
		}
	}
	return d, nil
}

// A controller's proof of packets that do not arrive rests on its flow records.
func TestProverOfDelivery(t *testing.T) {
	c := delivered(t, "blackhole-spine")
	p := &Prover{Settings: c.Fabric}
	in := &api.ProofCase{Topology: topologyOf(c.Fabric.Topology.Fabric), Incident: c.Incident, Flows: answers(c.Flows)}
	runs := 0
	got, err := p.ProveVerdict(t.Context(), in, func(n int) { runs = n })
	if err != nil {
		t.Fatal(err)
	}
	if got.Outcome != string(Proven) || got.Runs != runs || len(got.Trials) < 3 || got.Trials[0].Harm == nil || *got.Trials[0].Harm != 1 || *got.Trials[1].Harm != 0 {
		t.Errorf("proof %+v; want it proven after %d simulations, with the harm of each", got, runs)
	}
	in.Flows = answers(nil)
	if _, err := p.ProveVerdict(t.Context(), in, func(int) {}); !IsMissing(err) {
		t.Errorf("without flow records: %v; want what is missing", err)
	}
}

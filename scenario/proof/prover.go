package proof

import (
	"context"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/served"
)

// Prover makes proofs for a controller, on one core: it has other work.
type Prover struct {
	// Settings has the settings of the switches, and static routes; nil: they are not known.
	Settings *scenario.Scenario
}

// ProveVerdict is part of api.VerdictProver.
func (p *Prover) ProveVerdict(ctx context.Context, c *api.ProofCase, progress func(runs int)) (api.Proof, error) {
	fabric, err := served.Fabric(c.Topology)
	if err != nil {
		return api.Proof{}, err
	}
	if p.Settings != nil {
		served.Configure(fabric, p.Settings)
	}
	noSettings := p.Settings == nil || !p.Settings.HasSettings()
	if OfDelivery(&c.Incident.Incident) {
		return proveDelivery(ctx, c, &DeliveryCase{Fabric: fabric, DefaultSettings: noSettings, Progress: progress, Cores: 1})
	}
	return proveLateness(ctx, c, &Case{Fabric: fabric, DefaultSettings: noSettings, Progress: progress, Cores: 1})
}

func proveLateness(ctx context.Context, from *api.ProofCase, c *Case) (out api.Proof, err error) {
	if c.Diagnosis, err = Choose(from.Diagnoses); err != nil {
		return out, err
	}
	c.Named = NamedBy(c.Diagnosis)
	r, err := Prove(ctx, c)
	if err != nil {
		return out, err
	}
	out = api.Proof{Outcome: string(r.Verdict), Text: r.Text, Runs: r.Runs, Diagnosis: c.Diagnosis.ID, Trials: []api.ProofTrial{}, Notes: r.Notes}
	for _, x := range r.Trials() {
		out.Trials = append(out.Trials, api.ProofTrial{Name: x.Name, What: x.What, LateNs: x.LateNs, Slowdown: x.Slowdown, Gain: x.Gain})
	}
	return out, nil
}

func proveDelivery(ctx context.Context, from *api.ProofCase, c *DeliveryCase) (out api.Proof, err error) {
	c.Incident, c.Named = from.Incident, PlacesOf(from.Incident)
	if c.Flows, err = ReadFlows(ctx, from.Flows, c.Incident); err != nil {
		return out, err
	}
	r, err := ProveDelivery(ctx, c)
	if err != nil {
		return out, err
	}
	out = api.Proof{Outcome: string(r.Verdict), Text: r.Text, Runs: r.Runs, Trials: []api.ProofTrial{}, Notes: r.Notes}
	for _, x := range r.Trials() {
		out.Trials = append(out.Trials, api.ProofTrial{Name: x.Name, What: x.What, Harm: &x.Harm, Gain: x.Gain})
	}
	return out, nil
}

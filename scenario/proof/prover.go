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
func (p *Prover) ProveVerdict(ctx context.Context, t *api.Topology, diagnoses []api.DiagnosisDetail, progress func(runs int)) (out api.Proof, err error) {
	c := &Case{DefaultSettings: p.Settings == nil || !p.Settings.HasSettings(), Progress: progress, Cores: 1}
	if c.Fabric, err = served.Fabric(t); err != nil {
		return out, err
	}
	if p.Settings != nil {
		served.Configure(c.Fabric, p.Settings)
	}
	if c.Diagnosis, err = Choose(diagnoses); err != nil {
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

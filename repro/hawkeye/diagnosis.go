package hawkeye

import (
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// method is a diagnosis system: which reports of switches it uses, and what it
// reads of them.
type method struct {
	name    string
	collect func(r *run, c *detection) *provenance.Evidence
	// infer returns verdicts on evidence; nil: Weft's diagnosis.
	infer func(r *run, c *detection, e *provenance.Evidence) []diagnose.Verdict
}

// hawkeyeMethod is the method under test: all reports that polls brought.
var hawkeyeMethod = method{name: "Hawkeye", collect: polled}

// polled is what polls brought.
func polled(r *run, c *detection) *provenance.Evidence {
	if r.lab.removed.selection {
		return r.evidence(c.fullPoll)
	}
	return r.evidence(c.event)
}

// diagnosis is a detection with its verdicts.
type diagnosis struct {
	*detection
	evidence *provenance.Evidence
	verdicts []diagnose.Verdict
}

// answer returns the first verdict, or nil if it names no root cause.
func (d *diagnosis) answer() *diagnose.Verdict {
	if len(d.verdicts) == 0 || !namesCause(d.verdicts[0].Anomaly, d.verdicts[0].Cause) {
		return nil
	}
	return &d.verdicts[0]
}

// telemetryBytes returns the size of the reports.
func (d *diagnosis) telemetryBytes() (sum model.Bytes) {
	for _, r := range d.evidence.Reports {
		sum += r.Bytes
	}
	return sum
}

// diagnose diagnoses all detections of one variant, in their order: what
// earlier ones found is remembered, as in the controller.
func (r *run) diagnose(m method, variant int) (list []diagnosis, err error) {
	diagnoser, err := diagnose.New(diagnose.DefaultConfig(topo.NewIntent(r.routes)))
	if err != nil {
		return nil, err
	}
	var triggers diagnose.TriggerCache
	for i := range r.detections {
		c := &r.detections[i]
		if c.variant != variant {
			continue
		}
		d := diagnosis{detection: c, evidence: m.collect(r, c)}
		if m.infer != nil {
			d.verdicts = m.infer(r, c, d.evidence)
			list = append(list, d)
			continue
		}
		g := provenance.Build(d.evidence, c.key, r.net.Fabric())
		d.verdicts = diagnoser.Diagnose(c.forAnalysis(), d.evidence, g)
		for j := range d.verdicts {
			triggers.Observe(&d.verdicts[j])
		}
		list = append(list, d)
	}
	return list, nil
}

// forAnalysis returns the detection as the analysis receives it.
func (c *detection) forAnalysis() diagnose.Detection {
	d := diagnose.Detection{Event: c.event, Victim: c.key, HostPaused: c.hostPaused}
	if c.detectedBy.OfPacket() {
		d.Latency, d.InFlight = c.latency, c.detectedBy == agent.Age
	} else {
		d.Window = c.latency
	}
	return d
}

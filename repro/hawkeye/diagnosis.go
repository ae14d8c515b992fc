package hawkeye

import (
	"github.com/weft-telemetry/weft/analyze/anomaly"
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
}

// hawkeyeMethod is the method under test: all reports that polls brought.
var hawkeyeMethod = method{"Hawkeye", func(r *run, c *detection) *provenance.Evidence { return r.evidence(c.event) }}

// diagnosis is a detection with its verdicts and its true causes.
type diagnosis struct {
	*detection
	evidence *provenance.Evidence
	verdicts []diagnose.Verdict
	truth    []trueCause
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
		d := diagnosis{detection: c, evidence: m.collect(r, c), truth: r.cachedTrueCauses(c)}
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
	return diagnose.Detection{
		Event: c.event, Victim: c.key, HostPaused: c.hostPaused, Latency: c.latency,
		InFlight: c.detectedBy == agent.Age,
	}
}

// cachedTrueCauses returns trueCauses, computed once for all epoch lengths.
func (r *run) cachedTrueCauses(c *detection) []trueCause {
	id := r.truthKey(c)
	known, ok := r.truths[id]
	if !ok {
		known = r.trueCauses(*c)
		r.truths[id] = known
	}
	return known
}

// truthKey names a detection, the same for all epoch lengths.
type truthKey struct {
	host   model.NodeID
	number uint32
}

func (r *run) truthKey(c *detection) truthKey {
	return truthKey{c.event.Host, c.event.Number - uint32(c.variant%len(r.lab.lengths))}
}

// score counts the verdicts under one variant.
func (r *run) score(list []diagnosis, variant int) outcome {
	o := outcome{detections: len(list), found: make([]bool, len(r.trace.causes))}
	said := make([]coverage, len(r.trace.causes))
	for k := range said {
		said[k] = coverage{culprits: map[int]bool{}, present: map[int]bool{}}
	}
	for i := range list {
		d := &list[i]
		for j := range d.verdicts {
			v := &d.verdicts[j]
			if v.Anomaly == anomaly.None || isPartlyTrue(v, d.truth) {
				o.none++
				continue
			}
			a := r.confirmed(d.detection, v, d.truth)
			if a == nil {
				o.wrong++
				continue
			}
			o.right++
			for k := range said {
				said[k].observe(r, d.at, v, a, &r.trace.causes[k])
				said[k].observeCycle(a, d.truth, &r.trace.causes[k])
			}
		}
	}
	for k := range said {
		c := &r.trace.causes[k]
		o.found[k] = said[k].complete(c, requirement{true, true}) ||
			said[k].complete(c, r.requirementFor(c, variant/len(r.lab.lengths)))
	}
	return o
}

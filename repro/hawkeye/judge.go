package hawkeye

import (
	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// method is a way to diagnose: which answers of switches it uses, and what it
// reads of them.
type method struct {
	name string
	see  func(r *run, c *complaint) *provenance.Evidence
}

// weft is the method that is measured: all that polls brought.
var weft = method{"Hawkeye", func(r *run, c *complaint) *provenance.Evidence { return r.evidence(c.event) }}

// diagnosed is a complaint with what was said about it and what is true.
type diagnosed struct {
	*complaint
	evidence *provenance.Evidence
	verdicts []diagnose.Verdict
	answers  []answer
}

// bytes is what the switches told.
func (d *diagnosed) bytes() (sum model.Bytes) {
	for _, r := range d.evidence.Reports {
		sum += r.Bytes
	}
	return sum
}

// judge diagnoses all complaints of one variant, in their order: what earlier ones
// found is remembered, as the controller does.
func (r *run) judge(m method, variant int) (list []diagnosed, err error) {
	doctor, err := diagnose.New(diagnose.DefaultConfig(topo.NewIntent(r.routes)))
	if err != nil {
		return nil, err
	}
	var origins diagnose.TriggerCache
	for i := range r.complaints {
		c := &r.complaints[i]
		if c.variant != variant {
			continue
		}
		d := diagnosed{complaint: c, evidence: m.see(r, c), answers: r.truth(c)}
		g := provenance.Build(d.evidence, c.key, r.net.Fabric())
		d.verdicts = doctor.Diagnose(c.told(), d.evidence, g)
		for j := range d.verdicts {
			origins.Observe(&d.verdicts[j])
		}
		list = append(list, d)
	}
	return list, nil
}

// told is the complaint as the analysis hears it.
func (c *complaint) told() diagnose.Detection {
	return diagnose.Detection{Event: c.event, Victim: c.key, HostPaused: c.stopped, Latency: c.took, InFlight: c.reason == agent.Age}
}

// truth is answers, looked up once for all lengths of the epoch.
func (r *run) truth(c *complaint) []answer {
	id := r.truthOf(c)
	known, ok := r.known[id]
	if !ok {
		known = r.answers(*c)
		r.known[id] = known
	}
	return known
}

// truthOf names a complaint, the same for all lengths of the epoch.
type truthOf struct {
	host   model.NodeID
	number uint32
}

func (r *run) truthOf(c *complaint) truthOf {
	return truthOf{c.event.Host, c.event.Number - uint32(c.variant%len(r.lab.lengths))}
}

// score counts what was said under one variant.
func (r *run) score(list []diagnosed, variant int) outcome {
	o := outcome{complaints: len(list), found: make([]bool, len(r.trace.causes))}
	said := make([]naming, len(r.trace.causes))
	for k := range said {
		said[k] = naming{blamed: map[int]bool{}, present: map[int]bool{}}
	}
	for i := range list {
		d := &list[i]
		for j := range d.verdicts {
			v := &d.verdicts[j]
			if v.Anomaly == anomaly.None || partly(v, d.answers) {
				o.none++
				continue
			}
			a := r.confirmed(d.complaint, v, d.answers)
			if a == nil {
				o.wrong++
				continue
			}
			o.right++
			for k := range said {
				said[k].hear(r, d.at, v, a, &r.trace.causes[k])
				said[k].circle(a, d.answers, &r.trace.causes[k])
			}
		}
	}
	for k := range said {
		c := &r.trace.causes[k]
		o.found[k] = said[k].all(c, due{true, true}) || said[k].all(c, r.due(c, variant/len(r.lab.lengths)))
	}
	return o
}

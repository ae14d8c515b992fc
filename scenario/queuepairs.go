package scenario

import (
	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo/fairshare"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// JobFlows are the queue pairs of a traffic item that send at the same time: its
// different 5-tuples.
type JobFlows struct {
	Name  string
	Flows []fairshare.Flow
}

// QueuePairs returns the queue pairs of each traffic item that is a job: a
// collective, a permutation, or flows that are listed. Others come and go, so that
// what shares a link is a matter of time.
func (s *Scenario) QueuePairs() (jobs []JobFlows, err error) {
	if len(s.Traffic) == 0 {
		return nil, nil
	}
	session, err := Open(s, nil)
	if err != nil {
		return nil, err
	}
	for i, t := range s.Traffic {
		switch t.Generator.(type) {
		case traffic.RingAllReduce, traffic.AllToAll, traffic.Permutation, traffic.Persistent, traffic.List:
		default:
			continue
		}
		job := JobFlows{Name: t.Name}
		seen := make(map[model.FlowKey]bool)
		for id := session.x.parts[i].first; id < session.x.parts[i].end; id++ {
			key, spec := session.Network.FlowKey(id)
			if !seen[key] {
				seen[key] = true
				job.Flows = append(job.Flows, fairshare.Flow{Key: key, Src: spec.Src, Demand: spec.Rate})
			}
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// AddTraffic returns a copy of the scenario with the traffic of a file besides its
// own. The file has the section traffic alone. Every error is a *file.Error.
func (s *Scenario) AddTraffic(path string) (*Scenario, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fileerror.FromOS(path, err)
	}
	root, err := tree.Parse(path, data, "a job")
	if err != nil {
		return nil, err
	}
	var job struct {
		sourcePos
		Traffic []trafficItem `yaml:"traffic"`
	}
	if err := decode(root, &job, "the file"); err != nil {
		return nil, err
	}
	if len(job.Traffic) == 0 {
		return nil, job.errorf("traffic", "file has no traffic, want a list as in scenarios")
	}
	out := *s
	out.Traffic = append([]Traffic(nil), s.Traffic...)
	sc := schema{Traffic: job.Traffic}
	return &out, sc.resolveTraffic(&out, &env{names: names{s.fabric()}, load: readFile})
}

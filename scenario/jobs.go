package scenario

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// Jobs are the groups of one traffic item: rounds of an incast, queries,
// iterations of a collective. A job lasts from its first start to its last
// finish.
type Jobs struct {
	Name     string        `json:"name"`
	Total    int           `json:"total"`
	Finished int           `json:"finished"`
	Mean     time.Duration `json:"mean_ns"` // of the finished ones
	P50      time.Duration `json:"p50_ns"`
	P99      time.Duration `json:"p99_ns"`
	Max      time.Duration `json:"max_ns"`
}

// jobs sums up the groups of each traffic item that has some.
func (x *session) jobs() []Jobs {
	type job struct {
		begin, end model.Time
		left       int // flows
	}
	var out []Jobs
	records := make(map[int]*sim.FlowRecord)
	list := append(x.net.Records(), x.net.Computations()...)
	for i := range list {
		records[list[i].ID] = &list[i]
	}
	for i, p := range x.parts {
		groups := make(map[int]*job)
		for id := p.first; id < p.end; id++ {
			_, spec := x.net.FlowKey(id)
			if spec.Group == 0 {
				continue
			}
			g := groups[spec.Group]
			if g == nil {
				g = &job{begin: traffic.MaxTime}
				groups[spec.Group] = g
			}
			if rec := records[id]; rec != nil && rec.Finished {
				g.begin, g.end = min(g.begin, rec.Start.Model()), max(g.end, rec.Finish.Model())
			} else {
				g.left++
			}
		}
		if len(groups) == 0 {
			continue
		}
		j := Jobs{Name: x.s.Traffic[i].Name, Total: len(groups)}
		var took []time.Duration
		for _, g := range groups {
			if g.left == 0 {
				took = append(took, g.end.Sub(g.begin))
			}
		}
		j.measure(took)
		out = append(out, j)
	}
	return out
}

func (j *Jobs) measure(took []time.Duration) {
	if j.Finished = len(took); j.Finished == 0 {
		return
	}
	slices.Sort(took)
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	rank := func(percent int) time.Duration { return took[max((len(took)*percent+99)/100, 1)-1] }
	j.Mean, j.P50, j.P99, j.Max = sum/time.Duration(len(took)), rank(50), rank(99), took[len(took)-1]
}

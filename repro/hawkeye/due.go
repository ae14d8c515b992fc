package hawkeye

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/truth"
)

// due says whether a cause must be named. Of two anomalies at one time, one may
// leave the other without traffic, or hold it up so that it holds up nobody:
// only what somebody waited for is asked for.
type due struct {
	of bool // that it is there
	is bool // that it is this anomaly; else contention of the same flows will do
}

// felt is how long a flow must wait for a cause without a break for somebody to
// have had to complain: about four base round-trip times.
const felt = 100 * time.Microsecond

// due tells what must be said of a cause: it is where the waiting of a complaint
// ends in at least half of the looks at which its flow waited; or a flow waited
// for it so long that a complaint was due.
func (r *run) due(number int, list []diagnosed) (d due) {
	for i := range list {
		got := r.dueOf(number, list[i].complaint)
		d.of, d.is = d.of || got.of, d.is || got.is
	}
	if !d.of {
		d.of = r.isFelt(number)
	}
	return d
}

// dueOf is what one complaint asks for, worked out once for all lengths of the
// epoch.
func (r *run) dueOf(number int, c *complaint) due {
	id := r.truthOf(c)
	known, ok := r.dues[id]
	if !ok {
		known = r.share(c)
		r.dues[id] = known
	}
	return known[number]
}

// share finds the causes that make up at least half of a complaint's waiting.
func (r *run) share(c *complaint) []due {
	type sum struct{ of, is int }
	sums := make([]sum, len(r.trace.causes))
	waited := 0
	graphs, first := r.history.between(c.at-engine.Of(c.back()), c.at+engine.Of(polling))
	for i := range graphs {
		reasons := r.reasons(first+i, c.flow)
		if len(reasons) > 0 {
			waited++
		}
		for k := range sums {
			cause := &r.trace.causes[k]
			if slices.ContainsFunc(reasons, func(a answer) bool { return a.whole(cause) }) {
				sums[k].of++
			}
			if slices.ContainsFunc(reasons, func(a answer) bool { return a.whole(cause) && a.anomaly == cause.anomaly }) {
				sums[k].is++
			}
		}
	}
	dues := make([]due, len(sums))
	for k, s := range sums {
		dues[k] = due{waited > 0 && 2*s.of >= waited, waited > 0 && 2*s.is >= waited}
	}
	return dues
}

// whole tells whether an answer is what was injected, as a whole: at its port,
// or most flows of its burst at another. Two flows of a burst that share a link
// elsewhere are contention there, and no part of what all of them do.
func (a *answer) whole(c *cause) bool {
	if a.root != c.root {
		return false
	}
	there := 0
	for _, f := range c.flows {
		if a.flows[f] > 0 {
			there++
		}
	}
	return slices.Contains(c.ports, a.port) && there >= min(2, len(c.flows)) || there > 0 && 2*there >= len(c.flows)
}

// back is how far back what a complaint is about is looked at: while the packet
// was underway; of one that still is, in the last moments.
func (c *complaint) back() time.Duration {
	if c.reason == agent.Age {
		return min(c.took, longest, echo)
	}
	return min(c.took, longest)
}

// reasons is where the waiting of a flow ends in one look.
func (r *run) reasons(i, flow int) (list []answer) {
	g := r.history.graphs[i]
	for _, e := range g.From(truth.FlowNode(flow, false)) {
		if s, _ := g.Of(e.To); !s.Paused {
			list = contends(list, g.Graph, e.To, diagnose.Contention, nil)
			continue
		}
		for _, root := range g.rootsOf(e.To) {
			switch root.Kind {
			case truth.RootContention:
				list = contends(list, g.Graph, root.Nodes[0], diagnose.Backpressure, nil)
			case truth.RootHost:
				list = note(list, answer{anomaly: diagnose.Storm, root: diagnose.Host, port: r.paused(root.Nodes[0])}, nil)
			case truth.RootLoop:
				list = r.locked(list, i, root.Nodes)
			}
		}
	}
	return list
}

// isFelt tells whether any flow waited for a cause for long, whoever complained.
func (r *run) isFelt(number int) bool {
	known, ok := r.felts[number]
	if !ok {
		for flow := range r.trace.flows {
			known = known || r.waits(flow, &r.trace.causes[number])
		}
		r.felts[number] = known
	}
	return known
}

// waits tells whether a flow waited for a cause for long.
func (r *run) waits(flow int, c *cause) bool {
	looks := 0
	for i := range r.history.graphs {
		if !slices.ContainsFunc(r.reasons(i, flow), func(a answer) bool { return a.whole(c) }) {
			looks = 0
		} else if looks++; looks >= int(felt/step) {
			return true
		}
	}
	return false
}

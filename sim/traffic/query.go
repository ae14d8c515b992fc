package traffic

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Query is partition and aggregate: a host sends a request to many workers at
// once, each responds after a think time, and the responses collide at the
// requester's link. Queries arrive as one Poisson process. Every query is a
// Group, complete with its last response.
type Query struct {
	Class
	Hosts    []model.NodeID // requesters and workers; empty: all
	Fanout   int            // workers per query
	Request  model.Bytes    // to each worker
	Response model.Bytes    // from each worker
	Think    time.Duration  // from a request's arrival to its response
	Gap      time.Duration  // mean time between two queries of the whole fabric
	Start    model.Time
	Duration time.Duration // queries start before Start + Duration
}

// DefaultQuery returns 10 ms of queries, one in 100 µs, of 2 KB to 8 workers
// that each respond with 20 KB at once.
func DefaultQuery() Query {
	return Query{
		Class: DefaultClass(), Fanout: 8, Request: 2 * model.KB, Response: 20 * model.KB,
		Gap: 100 * time.Microsecond, Duration: 10 * time.Millisecond,
	}
}

func (g Query) kind() string { return "query" }

func (g Query) flows(e *env) ([]Flow, error) {
	hosts, err := g.check(e)
	if err != nil {
		return nil, err
	}
	if n := float64(g.Duration) / float64(g.Gap) * 2 * float64(g.Fanout); n > MaxFlows {
		return nil, fmt.Errorf("gap %v for %v makes about %.0f flows, want at most %d", g.Gap, g.Duration, n, MaxFlows)
	}
	var out []Flow
	pool := slices.Clone(hosts)
	group := 0
	gap := float64(g.Gap)
	for at := e.rng.ExpFloat64() * gap; at < float64(g.Duration); at += e.rng.ExpFloat64() * gap {
		if len(out)+2*g.Fanout > MaxFlows { // more than expected, by chance
			return nil, fmt.Errorf("gap %v for %v makes more than %d flows, want fewer", g.Gap, g.Duration, MaxFlows)
		}
		group++
		start := g.Start + model.Time(at)
		asker := hosts[e.rng.IntN(len(hosts))].ID
		for _, worker := range draw(e, pool, g.Fanout, asker) {
			ask := g.flow(asker, worker.ID, start, g.Request)
			answer := g.flow(worker.ID, asker, start, g.Response)
			answer.After, answer.Delay = []int{len(out)}, g.Think
			ask.Group, answer.Group = group, group
			out = append(out, ask, answer)
		}
	}
	return out, nil
}

func (g Query) check(e *env) ([]Host, error) {
	if err := g.Class.check(); err != nil {
		return nil, err
	}
	if err := checkBytes("request", g.Request); err != nil {
		return nil, err
	}
	if err := checkBytes("response", g.Response); err != nil {
		return nil, err
	}
	if err := checkStart(g.Start); err != nil {
		return nil, err
	}
	if err := checkSpan("duration", g.Duration, 1, g.Start); err != nil {
		return nil, err
	}
	if err := checkSpan("think", g.Think, 0, 0); err != nil {
		return nil, err
	}
	if err := checkSpan("gap", g.Gap, 1, 0); err != nil {
		return nil, err
	}
	hosts, err := e.choose("hosts", g.Hosts, 2)
	if err != nil {
		return nil, err
	}
	if g.Fanout < 1 || g.Fanout > len(hosts)-1 {
		return nil, fmt.Errorf("fan-out %d, want from 1 to %d, the number of hosts without the requester", g.Fanout,
			len(hosts)-1)
	}
	return hosts, nil
}

package hawkeye

import (
	"context"
	"fmt"
	"slices"

	weft "github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/analyze/attribution/fromgraph"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim/lateness"
)

// accounts is the account of a late packet beside the exact one.
var accounts = claim.Claim{
	ID: "hawkeye-accounts", Where: "beyond the paper: section 3.4 names causes without saying how much each contributed",
	Says:      "a late packet's time is accounted for: how long it waited for which cause, at which port",
	Published: "not measured",
	Mutations: []claim.Mutation{intervals},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		fine := method{name: "intervals", collect: polled}
		if o.Without(intervals) {
			fine.collect = withoutIntervals.collect
		}
		s := study{lab: best(o), sets: single(rows), traces: o.Pick(12, 2)}
		scores, err := scoreAccounts(ctx, o, s,
			accounting{fine, accountOf},
			accounting{withoutIntervals, accountOf},
			accounting{method{name: "first verdict", collect: polled}, firstVerdict})
		if err != nil {
			return claim.Result{}, err
		}
		places := func(s accountScore) float64 { return s.places }
		all := slices.Concat(scores[0]...)
		median, tail := all.quantile(0.5, places), all.quantile(0.95, places)
		coarse := slices.Concat(scores[1]...).quantile(0.5, places)
		return claim.Result{
			Measured: fmt.Sprintf("error of an account: median %s, 95 %% of packets below %s; largest cause right in %s of %d; median %s from summaries",
				percent(median), percent(tail), percent(all.topShare()), len(all), percent(coarse)),
			Pass: median <= maxMedianError && tail <= maxTailError && coarse > median,
			Notes: []string{
				setting,
				"the exact account is the simulator's log of every queue and pause; an error is the share of the lateness that is " +
					"attributed to another location or kind",
				fmt.Sprintf("passes when the median error is at most %s, that of 95 %% of the packets at most %s, and summaries in place "+
					"of the switches' intervals give a larger median", percent(maxMedianError), percent(maxTailError)),
			},
			Tables: []claim.Table{
				accountTable("accounts from intervals of pauses and congestion", rowNames(), scores[0]),
				accountTable("from summaries alone, as of switches without rings", rowNames(), scores[1]),
				accountTable("all of the lateness to the first verdict", rowNames(), scores[2]),
			},
		}, nil
	},
}

// What the errors of accounts may be.
const (
	maxMedianError = 0.05
	maxTailError   = 0.20
)

// withoutIntervals is Hawkeye with the summaries of pauses and of congestion that
// switches without rings report.
var withoutIntervals = method{name: "summaries", collect: func(r *run, c *detection) *provenance.Evidence {
	return rewrite(r.evidence(c.event), func(p *provenance.Report) { p.Intervals, p.BacklogHistories = nil, nil })
}}

// accountOf is the account that Weft makes of a detection, out of the reports on it.
func accountOf(r *run, d *diagnosis, _ float64) (list []attribution) {
	g := provenance.Build(d.evidence, d.key, r.net.Fabric())
	evidence, victim := fromgraph.Build(fromgraph.Detection{
		Victim: d.key, Class: class, Latency: d.latency, InFlight: d.detectedBy == agent.Age,
	}, d.evidence, g, r.routes)
	a := weft.Attribute(evidence, victim)
	for i := range a.Terms {
		list = append(list, r.neutral(a, &a.Terms[i])...)
	}
	return list
}

// neutral returns a term of an account in neutral terms.
func (r *run) neutral(a *weft.Account, t *weft.Term) (list []attribution) {
	part := attribution{ns: float64(t.Time)}
	switch t.Kind {
	case weft.Contention:
		part.place, part.kind = t.Place.Port, lateness.Contention
		rest := part
		for _, c := range t.Culprits {
			one := part
			one.flow, one.ns = c.Flow, part.ns*c.Share
			rest.ns -= one.ns
			list = append(list, one)
		}
		if rest.ns > 0 {
			list = append(list, rest)
		}
		return list
	case weft.HostInjection:
		part.place, part.kind, part.host = t.Place.Port, lateness.HostInjection, t.Place.Peer.Node
	case weft.Deadlock:
		ports := make([]model.Port, 0, 4)
		for _, p := range a.Deadlocks[t.Deadlock].Cycle {
			ports = append(ports, p.Port)
		}
		part.place, part.kind = slices.MinFunc(ports, model.Port.Compare), lateness.DeadlockCycle
	default:
		part.kind = lateness.Unexplained
	}
	return []attribution{part}
}

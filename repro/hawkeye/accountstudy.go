package hawkeye

import (
	"context"
	"slices"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim/lateness"
)

// accountant makes an account of a detection's late packet out of telemetry. Of
// the exact account it may read the lateness alone, which the host measures, too.
type accountant func(r *run, d *diagnosis, lateNs float64) []attribution

// accounting is how accounts are made, from which evidence.
type accounting struct {
	method
	of accountant
}

// scoreAccounts scores accounts of all detections of a study, by accounting and
// set. Detections that no single late packet made have none.
func scoreAccounts(ctx context.Context, o claim.Options, s study, kinds ...accounting) ([][]accountScores, error) {
	s.methods = nil
	all := make([][]accountScores, len(kinds))
	for i := range kinds {
		all[i] = make([]accountScores, len(s.sets))
		s.methods = append(s.methods, kinds[i].method)
	}
	s.more = func(set int, r *run, m method, list []diagnosis) {
		at := slices.IndexFunc(kinds, func(w accounting) bool { return w.name == m.name })
		for i := range list {
			d := &list[i]
			if d.account != nil && d.account.Late > 0 {
				all[at][set] = append(all[at][set], scoreAccount(d.account, kinds[at].of(r, d, nanoseconds(d.account.Late))))
			}
		}
	}
	_, err := s.run(ctx, o)
	return all, err
}

// firstVerdict attributes all of the lateness to what the first verdict of a
// diagnosis names.
func firstVerdict(r *run, d *diagnosis, lateNs float64) (list []attribution) {
	if len(d.verdicts) == 0 {
		return nil
	}
	v := &d.verdicts[0]
	part := attribution{place: v.Initial, kind: lateness.Contention, ns: lateNs}
	switch {
	case len(v.DeadlockCycle) > 0:
		part.place, part.kind = slices.MinFunc(v.DeadlockCycle, model.Port.Compare), lateness.DeadlockCycle
	case v.Cause == anomaly.HostInjection:
		part.kind, part.host = lateness.HostInjection, r.net.Fabric().Port(v.Initial).Peer.Node
	case v.Initial == model.Port{}:
		return nil
	case len(v.Culprits) > 0:
		all := 0.0
		for _, c := range v.Culprits {
			all += c.Weight
		}
		for _, c := range v.Culprits {
			part.flow, part.ns = c.Flow, lateNs*c.Weight/all
			list = append(list, part)
		}
		return list
	}
	return []attribution{part}
}

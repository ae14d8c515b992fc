package rootcause

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/model"
)

// burstHistory remembers contention at ports, to distinguish recurring bursts
// from a single one. A switch's memory of a few epochs is too short for that;
// detections over time are not.
type burstHistory struct {
	series []burstSeries
}

type burstSeries struct {
	at      model.Port
	last    model.Time
	count   int
	longest time.Duration // gap between two bursts
	sources map[model.Addr]bool
}

// Limits of a burstHistory.
const (
	maxSeries = 256
	// maxGapRatio is how many times longer than all before it a gap may be: bursts after
	// a longer one are another series.
	maxGapRatio = 10
)

// observe counts a verdict, and corrects its detail from the third burst on. A
// burst is new if it starts long after the one before had to be over, so that its senders
// were silent between them, and if it delayed a packet that was sent after that.
func (r *burstHistory) observe(v *diagnose.Verdict) {
	if len(v.DeadlockCycle) > 0 || v.Cause != anomaly.ContendingFlows || !v.Detail.MayRecur() || len(v.Culprits) == 0 {
		return
	}
	sources := map[model.Addr]bool{}
	for _, c := range v.Culprits {
		sources[c.Flow.Src] = true
	}
	i := slices.IndexFunc(r.series, func(x burstSeries) bool {
		return x.at == v.Initial &&
			shareSenders(x.sources, sources)
	})
	if i < 0 || r.series[i].longest > 0 && v.At.Sub(r.series[i].last) > maxGapRatio*r.series[i].longest {
		if i >= 0 {
			r.series = slices.Delete(r.series, i, i+1)
		}
		if len(r.series) == maxSeries {
			r.series = r.series[1:]
		}
		r.series = append(r.series, burstSeries{at: v.Initial, last: v.At, count: 1, sources: sources})
		return
	}
	x := &r.series[i]
	gap := v.At.Sub(x.last)
	if gap > 2*v.BurstDuration && gap > latenessOf(v) {
		x.count++
		x.longest = max(x.longest, gap)
	}
	if gap > 0 {
		x.last = v.At
	}
	if x.count >= 3 {
		v.Detail = anomaly.PeriodicBurst
		v.Evidence = append(v.Evidence,
			fmt.Sprintf("the same senders congested that port %d times, with silence in between", x.count))
		v.Remedy = v.Detail.Remedy()
	}
}

// latenessOf returns how late the packet of a verdict was; 0 if none was measured.
func latenessOf(v *diagnose.Verdict) time.Duration {
	if v.Account == nil {
		return 0
	}
	return v.Account.Late
}

// shareSenders reports whether two sets share half of the smaller one.
func shareSenders(a, b map[model.Addr]bool) bool {
	both := 0
	for x := range a {
		if b[x] {
			both++
		}
	}
	return 2*both >= min(len(a), len(b))
}

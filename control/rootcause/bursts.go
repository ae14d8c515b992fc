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
	sources map[model.Addr]bool
}

// Limits of a burstHistory.
const (
	maxSeries    = 256
	maxSeriesGap = 200 * time.Millisecond
)

// observe counts a verdict, and corrects its detail from the third burst on. A
// burst is new if it starts long after the one before had to be over: between
// them its senders were silent.
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
	if i < 0 || v.At.Sub(r.series[i].last) > maxSeriesGap {
		if i >= 0 {
			r.series = slices.Delete(r.series, i, i+1)
		}
		if len(r.series) == maxSeries {
			r.series = r.series[1:]
		}
		r.series = append(r.series, burstSeries{v.Initial, v.At, 1, sources})
		return
	}
	x := &r.series[i]
	gap := v.At.Sub(x.last)
	if gap > 2*v.BurstDuration && gap > 200*time.Microsecond {
		x.count++
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

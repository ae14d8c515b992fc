package rootcause

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/model"
)

// rounds remembers contention at ports, to tell bursts that come again and
// again from one burst. One switch's memory of a few epochs is too short for
// that; complaints over time are not.
type rounds struct {
	list []round
}

type round struct {
	at      model.Port
	last    model.Time
	count   int
	sources map[model.Addr]bool
}

// Bounds of what is remembered.
const (
	maxRounds = 256
	forget    = 200 * time.Millisecond
)

// note counts a verdict, and corrects its detail from the third round on. A new
// round is one that begins long after the burst before had to be over: between
// them its senders were silent.
func (r *rounds) note(v *diagnose.Verdict) {
	if len(v.DeadlockCycle) > 0 || v.Cause != anomaly.ContendingFlows || v.Detail != anomaly.MicroBurst && v.Detail != anomaly.UnknownDetail || len(v.Culprits) == 0 {
		return
	}
	sources := map[model.Addr]bool{}
	for _, c := range v.Culprits {
		sources[c.Flow.Src] = true
	}
	i := slices.IndexFunc(r.list, func(x round) bool { return x.at == v.Initial && overlap(x.sources, sources) })
	if i < 0 || v.At.Sub(r.list[i].last) > forget {
		if i >= 0 {
			r.list = slices.Delete(r.list, i, i+1)
		}
		if len(r.list) == maxRounds {
			r.list = r.list[1:]
		}
		r.list = append(r.list, round{v.Initial, v.At, 1, sources})
		return
	}
	x := &r.list[i]
	gap := v.At.Sub(x.last)
	if gap > 2*v.BurstDuration && gap > 200*time.Microsecond {
		x.count++
	}
	if gap > 0 {
		x.last = v.At
	}
	if x.count >= 3 {
		v.Detail = anomaly.PeriodicBurst
		v.Evidence = append(v.Evidence, fmt.Sprintf("the same senders overfilled that port %d times, with silence between", x.count))
		v.Remedy = "limit the senders of the bursts; ask who they are, an attack of low rate looks like this"
	}
}

// overlap tells whether two sets share half of the smaller one.
func overlap(a, b map[model.Addr]bool) bool {
	both := 0
	for x := range a {
		if b[x] {
			both++
		}
	}
	return 2*both >= min(len(a), len(b))
}

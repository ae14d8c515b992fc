package diagnose

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// TriggerCache remembers where pauses lately began. A loop that locks outlives what
// locked it: who looks later finds the loop alone, and who complained earlier
// has seen the pauses that ran into it. The zero value remembers nothing.
type TriggerCache struct {
	verdicts []Verdict
}

// Bounds of what is remembered.
const (
	maxTriggers   = 1024
	maxTriggerAge = 20 * time.Millisecond
)

// Observe remembers a verdict, or gives one about a loop without a cause that of
// another whose pauses spread through the loop.
func (o *TriggerCache) Observe(v *Verdict) {
	switch {
	case v.Cause != anomaly.NoRootCause && v.Anomaly > anomaly.FlowContention:
		o.verdicts = slices.DeleteFunc(o.verdicts, func(x Verdict) bool { return v.At.Sub(x.At) > maxTriggerAge })
		if len(o.verdicts) == maxTriggers {
			o.verdicts = slices.Delete(o.verdicts, 0, 1)
		}
		o.verdicts = append(o.verdicts, *v)
	case v.Cause == anomaly.NoRootCause && len(v.DeadlockCycle) > 0:
		if x := o.earlierTrigger(v); x != nil {
			v.inheritCause(x)
		}
	}
}

// addPrePauseContention finds the newest verdict from before a loop closed whose pauses spread
// through it; if there is none, the oldest since.
func (o *TriggerCache) earlierTrigger(v *Verdict) (best *Verdict) {
	for i := range slices.Backward(o.verdicts) {
		x := &o.verdicts[i]
		ran := slices.ContainsFunc(v.DeadlockCycle, func(p model.Port) bool { return slices.Contains(x.Path, p) || slices.Contains(x.DeadlockCycle, p) })
		if age := v.At.Sub(x.At); !ran || age > maxTriggerAge || age < -maxTriggerAge {
			continue
		}
		if best = x; x.At <= v.CycleClosed {
			break
		}
	}
	return best
}

// inheritCause takes the cause of another verdict, and its flows if they were seen shortly
// addPrePauseContention the loop closed: they come and go faster than the reason to wait.
func (v *Verdict) inheritCause(x *Verdict) {
	v.Cause, v.Detail, v.Initial = x.Cause, x.Detail, x.Initial
	if lead := v.CycleClosed.Sub(x.At); lead >= 0 && lead <= leadUp {
		v.Culprits = x.Culprits
	}
	v.Anomaly = anomaly.DeadlockOutOfLoop
	if slices.Contains(v.DeadlockCycle, x.Initial) {
		v.Anomaly = anomaly.DeadlockInLoop
	}
	v.Confidence *= inheritedFactor
	v.Evidence = append(v.Evidence, fmt.Sprintf("%v before, a complaint found pauses that spread from there into the circle", v.At.Sub(x.At)))
}

// inheritedFactor makes up for what a verdict without a cause was marked down by, and
// leaves some doubt.
const inheritedFactor = 1.5

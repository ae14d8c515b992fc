package diagnose

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// TriggerCache remembers where recent pauses were triggered. A deadlock cycle
// outlives its trigger: a later detection finds the cycle alone, while an
// earlier one saw the pauses that spread into it. The zero value is empty.
type TriggerCache struct {
	verdicts []Verdict
}

// Limits of a TriggerCache.
const (
	maxTriggers   = 1024
	maxTriggerAge = 20 * time.Millisecond
)

// Observe remembers a verdict. A verdict on a cycle without a root cause
// inherits that of a remembered verdict whose pauses spread through the cycle.
func (o *TriggerCache) Observe(v *Verdict) {
	switch {
	case v.Cause != anomaly.NoRootCause && v.Anomaly.SpreadsByPFC():
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

// earlierTrigger returns the newest verdict from before a cycle closed whose
// pauses spread through it; if there is none, the oldest since.
func (o *TriggerCache) earlierTrigger(v *Verdict) (best *Verdict) {
	for i := range slices.Backward(o.verdicts) {
		x := &o.verdicts[i]
		shared := slices.ContainsFunc(v.DeadlockCycle, func(p model.Port) bool {
			return slices.Contains(x.Path, p) || slices.Contains(x.DeadlockCycle, p)
		})
		if age := v.At.Sub(x.At); !shared || age > maxTriggerAge || age < -maxTriggerAge {
			continue
		}
		if best = x; x.At <= v.CycleClosed {
			break
		}
	}
	return best
}

// inheritCause takes over the cause of another verdict, and its culprits if
// they were seen within leadUp before the cycle closed: flows change faster
// than causes.
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
	v.Evidence = append(v.Evidence, fmt.Sprintf(
		"a detection %s earlier found PFC that spread from there into the cycle", model.FormatDuration(v.At.Sub(x.At))))
}

// inheritedFactor makes up for what a verdict without a cause was marked down
// by, and leaves some doubt.
const inheritedFactor = 1.5

package diagnose

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
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

// Observe remembers a verdict. One on a deadlock that an earlier detection saw,
// too, inherits the root cause that was found then; one on a new cycle without a
// root cause inherits that of a verdict whose pauses spread through the cycle.
func (o *TriggerCache) Observe(v *Verdict) {
	if x := o.sameDeadlock(v); x != nil {
		v.inheritTrigger(x)
	}
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

// sameDeadlock returns the first verdict with a root cause on the deadlock of v by
// another detection: the same cycle, closed at the same time as far as the clocks
// of switches agree.
func (o *TriggerCache) sameDeadlock(v *Verdict) *Verdict {
	if len(v.DeadlockCycle) == 0 {
		return nil
	}
	for i := range o.verdicts {
		x := &o.verdicts[i]
		apart := v.CycleClosed.Sub(x.CycleClosed)
		if x.Event != v.Event && samePorts(x.DeadlockCycle, v.DeadlockCycle) && max(apart, -apart) <= epoch.PauseBurstGap &&
			v.At.Sub(x.At) <= maxTriggerAge {
			return x
		}
	}
	return nil
}

// inheritTrigger takes over what an earlier verdict on the same deadlock found to
// have triggered it: what the trigger left behind fades while the deadlock stands.
func (v *Verdict) inheritTrigger(x *Verdict) {
	if v.Cause == x.Cause && v.Initial == x.Initial && (len(v.Culprits) > 0 || len(x.Culprits) == 0) {
		return
	}
	v.Anomaly, v.Cause, v.Detail, v.Initial, v.Culprits = x.Anomaly, x.Cause, x.Detail, x.Initial, x.Culprits
	v.Evidence = append(v.Evidence, fmt.Sprintf("a detection %s earlier saw the same deadlock and what triggered it",
		model.FormatDuration(v.At.Sub(x.At))))
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

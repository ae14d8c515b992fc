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
// earlier one saw what it began with. The zero value is empty.
type TriggerCache struct {
	verdicts []Verdict
}

// A TriggerCache remembers maxTriggers verdicts, each for keptReaches times as long as
// the reports on it go back: detections of a flow that stays slow follow each other
// within a few epochs.
const (
	maxTriggers = 1024
	keptReaches = 16
)

// Observe remembers a verdict, unless reports are missing. One on a deadlock that an earlier detection saw,
// too, inherits the root cause that was found then; one on a new cycle without a
// root cause, or without the flows of it, inherits that of a verdict whose pauses
// spread through the cycle.
func (o *TriggerCache) Observe(v *Verdict) {
	o.verdicts = slices.DeleteFunc(o.verdicts, func(x Verdict) bool { return v.At.Sub(x.At) > keptReaches*x.Reach })
	if len(v.DeadlockCycle) > 0 {
		if x := o.sameDeadlock(v); x != nil {
			v.inheritTrigger(x)
		} else if x := o.earlierTrigger(v); x != nil {
			v.inheritCause(x)
		}
	}
	if v.hasTrigger() && v.Anomaly.SpreadsByPFC() && !v.Incomplete {
		if len(o.verdicts) == maxTriggers {
			o.verdicts = slices.Delete(o.verdicts, 0, 1)
		}
		o.verdicts = append(o.verdicts, Verdict{
			Event: v.Event, Anomaly: v.Anomaly, Cause: v.Cause, Detail: v.Detail, Initial: v.Initial, Culprits: v.Culprits,
			Path: v.Path, DeadlockCycle: v.DeadlockCycle, CycleClosed: v.CycleClosed, At: v.At, Reach: v.Reach,
		})
	}
}

// hasTrigger reports whether a verdict names culprits: a host, or flows.
func (v *Verdict) hasTrigger() bool {
	return v.Cause == anomaly.HostInjection || v.Cause == anomaly.ContendingFlows && len(v.Culprits) > 0
}

// sameDeadlock returns the first verdict with a trigger on the deadlock of v by
// another detection: the same cycle, closed at the same time. Both say when by the
// clock of the switch that took the last snapshot; while a deadlock stands, nothing
// else closes its cycle, so an epoch of doubt is no risk.
func (o *TriggerCache) sameDeadlock(v *Verdict) *Verdict {
	for i := range o.verdicts {
		x := &o.verdicts[i]
		apart := v.CycleClosed.Sub(x.CycleClosed)
		if x.Event != v.Event && samePorts(x.DeadlockCycle, v.DeadlockCycle) && 2*max(apart, -apart) <= v.Reach {
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

// earlierTrigger returns the verdict of which a deadlock without a trigger inherits:
// the newest from before its cycle closed whose pauses spread through it, if the reports
// on it reach to when the other verdict's do. If there is none, the oldest since. A
// deadlock that lacks only the flows of its trigger inherits from a verdict on that port.
func (o *TriggerCache) earlierTrigger(v *Verdict) (best *Verdict) {
	if v.hasTrigger() {
		return nil
	}
	for i := range slices.Backward(o.verdicts) {
		x := &o.verdicts[i]
		shared := slices.ContainsFunc(v.DeadlockCycle, func(p model.Port) bool {
			return slices.Contains(x.Path, p) || slices.Contains(x.DeadlockCycle, p)
		})
		if v.Cause != anomaly.NoRootCause {
			shared = x.Cause == v.Cause && x.Initial == v.Initial
		}
		if lead := v.CycleClosed.Sub(x.At); !shared || lead > v.Reach+x.Reach || -lead > v.Reach+x.Reach {
			continue
		}
		if best = x; x.At <= v.CycleClosed {
			break
		}
	}
	return best
}

// inheritCause takes over the cause of another verdict.
func (v *Verdict) inheritCause(x *Verdict) {
	v.Cause, v.Detail, v.Initial, v.Culprits = x.Cause, x.Detail, x.Initial, x.Culprits
	v.Anomaly = anomaly.DeadlockOutOfLoop
	if x.Cause == anomaly.ContendingFlows && slices.Contains(v.DeadlockCycle, x.Initial) {
		v.Anomaly = anomaly.DeadlockInLoop
	}
	apart, when := v.At.Sub(x.At), "earlier"
	if apart < 0 {
		apart, when = -apart, "later"
	}
	v.Evidence = append(v.Evidence, fmt.Sprintf(
		"a detection %s %s found PFC that spread from there into the cycle", model.FormatDuration(apart.Round(time.Nanosecond)), when))
}

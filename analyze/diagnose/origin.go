package diagnose

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// Origins remembers where pauses lately began. A loop that locks outlives what
// locked it: who looks later finds the loop alone, and who complained earlier
// has seen the pauses that ran into it. The zero value remembers nothing.
type Origins struct {
	list []Verdict
}

// Bounds of what is remembered.
const (
	maxOrigins = 1024
	fresh      = 20 * time.Millisecond
)

// Note remembers a verdict, or gives one about a loop without a cause that of
// another whose pauses spread through the loop.
func (o *Origins) Note(v *Verdict) {
	switch {
	case v.Cause != anomaly.NoRootCause && v.Anomaly > anomaly.FlowContention:
		o.list = slices.DeleteFunc(o.list, func(x Verdict) bool { return v.At.Sub(x.At) > fresh })
		if len(o.list) == maxOrigins {
			o.list = slices.Delete(o.list, 0, 1)
		}
		o.list = append(o.list, *v)
	case v.Cause == anomaly.NoRootCause && len(v.Loop) > 0:
		if x := o.before(v); x != nil {
			v.adopt(x)
		}
	}
}

// before finds the newest verdict from before a loop closed whose pauses spread
// through it; if there is none, the oldest since.
func (o *Origins) before(v *Verdict) (best *Verdict) {
	for i := range slices.Backward(o.list) {
		x := &o.list[i]
		ran := slices.ContainsFunc(v.Loop, func(p model.Port) bool { return slices.Contains(x.Path, p) || slices.Contains(x.Loop, p) })
		if age := v.At.Sub(x.At); !ran || age > fresh || age < -fresh {
			continue
		}
		if best = x; x.At <= v.Closed {
			break
		}
	}
	return best
}

// adopt takes the cause of another verdict, and its flows if they were seen shortly
// before the loop closed: they come and go faster than the reason to wait.
func (v *Verdict) adopt(x *Verdict) {
	v.Cause, v.Detail, v.Initial = x.Cause, x.Detail, x.Initial
	if lead := v.Closed.Sub(x.At); lead >= 0 && lead <= leadUp {
		v.Culprits = x.Culprits
	}
	v.Anomaly = anomaly.DeadlockOutOfLoop
	if slices.Contains(v.Loop, x.Initial) {
		v.Anomaly = anomaly.DeadlockInLoop
	}
	v.Confidence *= adopted
	v.Evidence = append(v.Evidence, fmt.Sprintf("%v before, a complaint found pauses that spread from there into the circle", v.At.Sub(x.At)))
}

// adopted makes up for what a verdict without a cause was marked down by, and
// leaves some doubt.
const adopted = 1.5

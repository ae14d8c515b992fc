package rootcause

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/model"
)

// origins remembers where pauses lately began. A loop that locks outlives what
// locked it: who looks later finds the loop alone, and who complained earlier
// has seen the pauses that ran into it.
type origins struct {
	list []diagnose.Verdict
}

// Bounds of what is remembered.
const (
	maxOrigins = 1024
	fresh      = 20 * time.Millisecond
)

// note remembers a verdict, or gives one about a loop without a cause that of
// the newest one whose pauses spread through the loop.
func (o *origins) note(v *diagnose.Verdict) {
	if v.Cause != diagnose.NoCause {
		if v.Anomaly > diagnose.Contention {
			if len(o.list) == maxOrigins {
				o.list = o.list[1:]
			}
			o.list = append(o.list, *v)
		}
		return
	}
	if len(v.Loop) == 0 {
		return
	}
	for _, x := range slices.Backward(o.list) {
		ran := slices.ContainsFunc(v.Loop, func(p model.Port) bool { return slices.Contains(x.Path, p) || slices.Contains(x.Loop, p) })
		inside := slices.Contains(v.Loop, x.Initial)
		if age := v.At.Sub(x.At); !ran || age > fresh || age < -fresh {
			continue
		}
		v.Cause, v.Detail, v.Initial, v.Culprits = x.Cause, x.Detail, x.Initial, x.Culprits
		v.Anomaly = diagnose.OutOfLoop
		if inside {
			v.Anomaly = diagnose.InLoop
		}
		v.Confidence *= adopted
		v.Evidence = append(v.Evidence, fmt.Sprintf("%v before, a complaint found pauses that spread from there into the circle", v.At.Sub(x.At)))
		return
	}
}

// adopted makes up for what a verdict without a cause was marked down by, and
// leaves some doubt.
const adopted = 1.5

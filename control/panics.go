package control

import (
	"runtime/debug"

	"github.com/weft-telemetry/weft/wire/dta"
)

// Panic is one that was recovered. It cost the report, or the step of the analyses,
// in which it happened.
type Panic struct {
	Where string // a kind of report, or a step of Tick
	Value any
	List  dta.ListID
	Data  []byte // the start of the report; nil: there is none
	Stack []byte
}

// Bounds of what is kept of a panic.
const (
	maxPanicData  = 256
	maxPanicStack = 4096
)

// NewPanic describes a panic in the goroutine that recovered it.
func NewPanic(where string, value any, list dta.ListID, data []byte) *Panic {
	stack := debug.Stack()
	return &Panic{
		Where: where, Value: value, List: list, Data: append([]byte(nil), data[:min(len(data), maxPanicData)]...),
		Stack: stack[:min(len(stack), maxPanicStack)],
	}
}

// recoverReport is deferred while a report is analysed: our own fault in the
// handling of one report must cost neither the others nor the process.
func (c *Controller) recoverReport(k Kind, list dta.ListID, data []byte) {
	if v := recover(); v != nil {
		c.stats.Panicked[k]++
		c.publishPanic(NewPanic(k.String(), v, list, data))
	}
}

// protect runs one step of the analyses. If it panics, the others go on: what it
// had taken out of its tables is dropped.
func (c *Controller) protect(step string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			c.stats.PanickedSteps++
			c.publishPanic(NewPanic(step, v, 0, nil))
		}
	}()
	f()
}

func (c *Controller) publishPanic(p *Panic) {
	if c.out.Panic != nil {
		c.out.Panic(p)
	}
}

package attribution

import (
	"runtime"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

// TestMemoryIsWhatIsTaken compares Memory with the heap, for an account and a timeline of
// many queues.
func TestMemoryIsWhatIsTaken(t *testing.T) {
	live := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	a, l := &Account{Terms: make([]Term, 1000), Deadlocks: make([]DeadlockCycle, 100), Stays: make([]Stay, 500)}, &Timeline{Rows: make([]TimelineRow, 1000)}
	for i := range a.Terms {
		a.Terms[i] = Term{Place: &Place{}, Via: make([]PausedQueue, 20), Culprits: make([]Culprit, 30)}
		l.Rows[i] = TimelineRow{Paused: make([]Span, 16), Congested: make([]Span, 8), Packet: make([]Span, 1)}
	}
	for i := range a.Deadlocks {
		a.Deadlocks[i].Cycle = make([]Place, 8)
	}
	taken, counted := model.Bytes(live()-before), a.Memory()+l.Memory()
	if counted < taken*8/10 || counted > taken*12/10 {
		t.Errorf("counted %v of %v that the account takes", counted, taken)
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(l)
	if (*Account)(nil).Memory() != 0 {
		t.Error("no account takes memory")
	}
}

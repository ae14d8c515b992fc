package live

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// TestNoTraceOfAStormIsLost has a host pause its port: packets wait in the fabric's queues,
// up to longer than a trace is open, and none is lost.
func TestNoTraceOfAStormIsLost(t *testing.T) {
	race.LeaveToPlainRun(t)
	for _, seed := range []uint64{21, 22} {
		ends := map[string]int{}
		l, err := NewDemo(slow(seed), control.Output{Records: func(b *record.Batch) {
			for i := range b.Traces {
				if tr := &b.Traces[i]; tr.Flow.Proto == model.UDP {
					ends[tr.End]++
				}
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		d := NewDirector(l)
		pass(t, l, 40*time.Millisecond)
		if _, err := d.Inject("storm", Anywhere, faultDuration); err != nil {
			t.Fatal(err)
		}
		pass(t, l, faultDuration+reportDelay)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		t.Log(ends)
		if ends["lost"] > 0 {
			t.Errorf("seed %d: traces ended %v; want none that is lost", seed, ends)
		}
	}
}

package epoch

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

func TestObserveAllocatesNothing(t *testing.T) {
	r := newRig(t, DefaultConfig())
	n := 0
	step := func() {
		n++
		r.packet(time.Duration(n)*10*time.Microsecond, model.PortID(1+n%3), model.PortID(1+n%4), 3, flowKey(n%50), 5)
	}
	for range 1000 {
		step()
	}
	key := flowKey(7)
	if a := testing.AllocsPerRun(1000, func() {
		n++
		r.pkt.Key = &key
		r.ev.Now = model.Time(n * 10000)
		r.show()
	}); a != 0 {
		t.Errorf("Observe allocates %v times; want 0", a)
	}
}

func BenchmarkEnqueue(b *testing.B) {
	r := newRig(b, DefaultConfig())
	keys := make([]model.FlowKey, 1000)
	for i := range keys {
		keys[i] = flowKey(i)
	}
	r.packet(0, 1, 2, 3, keys[0], 5)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.pkt.Key = &keys[i%len(keys)]
		r.ev.Now += 80
		r.act.Reset()
		r.Observe(&r.ev, &r.act)
	}
}

package flowset

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
)

// TestOutgoingPacketsAreOfTheirArrival shows packets that waited for random times, and
// compares every flowset with the flows of the packets that arrived in its slot. Those
// that waited longer than the program lingers are missed.
func TestOutgoingPacketsAreOfTheirArrival(t *testing.T) {
	late, missed := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		cfg := tiny()
		cfg.Outgoing, cfg.Linger, cfg.IPv6 = true, 500*time.Microsecond, Table{}
		cfg.PerPort = rapid.Bool().Draw(rt, "per port")
		r, w := newRig(rt, cfg, 0), newReference()
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "packets"), 0))
		unsaid := map[name]uint32{}
		for range rapid.IntRange(0, 400).Draw(rt, "count") {
			r.until(r.now + model.Time(random.Int64N(int64(200*time.Microsecond))))
			in, key, size := model.PortID(1+random.IntN(4)), flow4(random.IntN(30)), int32(60+random.IntN(1400))
			out := model.PortID(1 + random.IntN(4))
			r.routes[key], r.keyID = out, 0
			if random.IntN(2) == 0 {
				r.keyID = 1 + uint32(key.SrcPort)
			}
			waited := min(time.Duration(random.Int64N(int64(700*time.Microsecond))), time.Duration(r.now))
			at, now := name{}, uint32(0)
			at.slot, _ = slotOf(r.now.Add(-waited), cfg.Slot)
			if cfg.PerPort {
				at.scope = in
			}
			now, end := slotOf(r.now, cfg.Slot)
			r.observe(&inswitch.Event{
				Stage: inswitch.Dequeue, Now: r.now, In: in, Out: out, Latency: waited,
				Packet: &inswitch.Packet{Key: &key, Outer: &key, KeyID: r.keyID, Size: size},
			})
			switch {
			case at.slot == now:
			case r.now.Sub(end.Add(-cfg.Slot)) < cfg.Linger:
				late++
			default:
				at.slot = now
				unsaid[at]++
				missed++
				continue
			}
			w.count(at, key, size, in, out)
		}
		_, end := slotOf(r.now, cfg.Slot)
		r.until(end + model.Time(cfg.Slot) - 1)
		sets := r.collect()
		for at := range w.flows {
			if sets[at] == nil {
				rt.Fatalf("flowset %+v was not exported", at)
			}
		}
		for at, f := range sets {
			if f.Counts.Missed != unsaid[at] {
				rt.Fatalf("flowset %+v missed %d packets; want %d", at, f.Counts.Missed, unsaid[at])
			}
			f.Counts.Missed = 0
			w.check(rt, at, f)
		}
	})
	if late == 0 || missed == 0 {
		t.Errorf("%d packets left in a later slot than they arrived in, %d were missed; the test needs both", late, missed)
	}
}

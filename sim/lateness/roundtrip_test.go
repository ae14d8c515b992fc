package lateness

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// measured is what a host's NIC measures of one flow.
type measured struct{ sent, acked map[int64]model.Time }

func (m *measured) Started(model.Time, *sim.FlowInfo) {}

func (m *measured) Sent(now model.Time, _ *model.FlowKey, end int64) { m.sent[end] = now }

func (m *measured) Acked(now model.Time, _ *model.FlowKey, end int64) { m.acked[end] = now }

func (m *measured) Ended(model.Time, *model.FlowKey) {}

// The account of a round trip is of the time that the host measures, also
// through a slow receiver, whose buffer is the host's part.
func TestRoundTripIsTheMeasuredTime(t *testing.T) {
	cfg, l := slow()
	b := tree(t, cfg, l)
	m := &measured{map[int64]model.Time{}, map[int64]model.Time{}}
	b.Host(0).ObserveFlows(m)
	b.add(
		traffic.Flow{Src: 0, Dst: 2, Bytes: 30 * model.KB, Priority: 3, Start: 1000},
		traffic.Flow{Src: 4, Dst: 2, Bytes: 30 * model.KB, Priority: 3, Start: 1000},
	)
	b.inject(sim.Injection{Fault: sim.SlowReceiver{Host: 2, Rate: model.Gbps, Buffer: 10 * model.KB, Priority: 3}})
	b.run(2 * time.Millisecond)
	key, _ := b.FlowKey(0)
	inHost, paused := engine.Time(0), engine.Time(0)
	for end, sent := range m.sent {
		a, err := b.o.AccountRoundTrip(key, engine.Time(sent)*engine.Nanosecond)
		b.check(&a, err)
		if got, want := (a.At - a.Sent).Duration(), m.acked[end].Sub(sent); got != want || a.InFlight || a.Ack == 0 {
			t.Errorf("the packet up to byte %d: %v, in flight %v, acknowledgement %d; want the measured %v", end, got, a.InFlight, a.Ack, want)
		}
		inHost += a.Host
		for _, term := range a.Terms {
			if term.Kind == HostInjection && term.Place == b.queue(leaf7, 2) && term.Parties[0].Host == 2 {
				paused += term.Time
			}
		}
	}
	if len(m.sent) < 60 || inHost < 100*engine.Microsecond || paused < 2*inHost {
		t.Errorf("%d packets, %v in the receiver, %v owed to it; want 60 or more, and several times its buffer's time", len(m.sent), inHost, paused)
	}
}

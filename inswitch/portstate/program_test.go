package portstate

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// ports is a switch of given queues and counters, by port and class.
type ports struct {
	queues   [][8]inswitch.Queue
	counters []inswitch.PortCounters
}

func (p *ports) Route(*model.FlowKey) (model.PortID, bool) { return 0, false }

func (p *ports) Queue(out model.PortID, class model.Priority) inswitch.Queue {
	return p.queues[out-1][class]
}

func (p *ports) Counters(out model.PortID) inswitch.PortCounters { return p.counters[out-1] }

// newestStates is the reference: what a reader must find after every report.
func newestStates(p *ports, before []inswitch.PortCounters, now model.Time, period time.Duration) map[model.PortID]keyed.PortState {
	want := map[model.PortID]keyed.PortState{}
	for i := range p.queues {
		s := keyed.PortState{
			Time: now, Bytes: p.counters[i].Bytes, Discards: p.counters[i].Discards, PausedTime: p.counters[i].Paused,
		}
		s.Load = model.Rate(8 * float64(p.counters[i].Bytes-before[i].Bytes) * 1e9 / float64(period.Nanoseconds()))
		s.PausedShare = uint16(min(1, float64(p.counters[i].Paused-before[i].Paused)/float64(period)) * 65535)
		for class, q := range p.queues[i] {
			s.Queue += q.Bytes
			if q.Bytes > s.MaxQueue {
				s.MaxQueue = q.Bytes
			}
			if q.Paused {
				s.PausedClass += 1 << class
			}
		}
		want[model.PortID(i+1)] = s
	}
	return want
}

func TestEveryPeriodWritesTheStateOfEveryPort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "ports")
		dev := inswitch.Device{ID: model.NodeID(rapid.Uint32Range(0, 1<<20).Draw(t, "switch")), Ports: make([]inswitch.Port, n)}
		cfg := DefaultConfig()
		p, err := New(dev, cfg)
		if err != nil {
			t.Fatal(err)
		}
		sw := &ports{make([][8]inswitch.Queue, n), make([]inswitch.PortCounters, n)}
		ev := inswitch.Event{Stage: inswitch.Timer, Switch: sw, Timer: inswitch.StartTimer}
		var act inswitch.Actions
		p.Observe(&ev, &act)
		if len(act.Reports) != 0 || len(act.Timers) != 1 {
			t.Fatalf("at the start: %d reports, %d timers; want none and one", len(act.Reports), len(act.Timers))
		}
		for range rapid.IntRange(1, 4).Draw(t, "periods") {
			before := slices.Clone(sw.counters)
			ev.Now, ev.Timer = ev.Now.Add(cfg.Period), act.Timers[0].Timer
			for i := range n {
				sw.queues[i][rapid.IntRange(0, 7).Draw(t, "class")] = inswitch.Queue{
					Bytes: model.Bytes(rapid.Int64Range(0, 1<<20).Draw(t, "queue")), Paused: rapid.Bool().Draw(t, "paused"),
				}
				sw.counters[i].Bytes += rapid.Uint64Range(0, 1<<40).Draw(t, "bytes")
				sw.counters[i].Paused += time.Duration(rapid.IntRange(0, 20_000_000).Draw(t, "pause"))
			}
			act.Reset()
			p.Observe(&ev, &act)
			want := newestStates(sw, before, ev.Now, cfg.Period)
			for i := range act.Reports {
				r := &act.Reports[i]
				var key keyed.PortKey
				var got keyed.PortState
				if err := r.Check(); err != nil || r.Primitive != dta.KeyWrite || key.Parse(r.Key) != nil || got.Parse(r.Data) != nil {
					t.Fatalf("report %+v, %v; want a Key-Write of a port's state", r, err)
				}
				if key.Node != dev.ID || want[key.Port.Port] != got {
					t.Fatalf("state of %v is %+v; want %+v", key, got, want[key.Port.Port])
				}
				delete(want, key.Port.Port)
			}
			if len(want) > 0 {
				t.Fatalf("no report of ports %v", want)
			}
		}
	})
}

func TestObserveAllocatesNothing(t *testing.T) {
	p, err := New(inswitch.Device{ID: 3, Ports: make([]inswitch.Port, 32)}, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	sw := &ports{make([][8]inswitch.Queue, 32), make([]inswitch.PortCounters, 32)}
	ev := inswitch.Event{Stage: inswitch.Timer, Switch: sw, Timer: tick}
	var act inswitch.Actions
	if n := testing.AllocsPerRun(100, func() { act.Reset(); p.Observe(&ev, &act) }); n != 0 {
		t.Errorf("Observe allocates %v times; want 0", n)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []Config{{Period: 0}, {Period: -time.Second}} {
		if _, err := New(inswitch.Device{}, c); err == nil {
			t.Errorf("New(%+v) = nil; want an error", c)
		}
	}
}

package lateness

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// incast are flows of all hosts of a fat-tree to the last.
func incast(size model.Bytes) (flows []traffic.Flow) {
	for src := range model.NodeID(15) {
		flows = append(flows, traffic.Flow{Src: src, Dst: 15, Bytes: size, Priority: 3, Start: 1000})
	}
	return flows
}

// observed is an observer that was there before.
type observed struct {
	sim.NopObserver
	enqueued, dequeued, delivered, changes, queued int
}

var _ sim.QueueObserver = (*observed)(nil)

func (o *observed) Enqueued(engine.Time, *sim.Packet, *sim.Port)              { o.enqueued++ }
func (o *observed) Queued(engine.Time, *sim.Packet, *sim.Port)                { o.queued++ }
func (o *observed) Dequeued(engine.Time, *sim.Packet, *sim.Port)              { o.dequeued++ }
func (o *observed) Delivered(engine.Time, *sim.Packet, *sim.Host)             { o.delivered++ }
func (o *observed) PauseChanged(engine.Time, *sim.Port, model.Priority, bool) { o.changes++ }

// An Oracle changes nothing, and hides nothing from the observer before it.
func TestOracleIsPassive(t *testing.T) {
	run := func(watch bool) (sim.Counts, []sim.FlowRecord, observed) {
		b := fatTree(t, sim.DefaultConfig(), time.Second)
		seen := &observed{}
		if watch {
			b.o.Observer = seen
		} else {
			for _, p := range b.Ports() {
				p.SetTap(nil)
			}
			b.Observe(seen)
		}
		b.add(incast(300 * model.KB)...)
		b.inject(sim.Injection{At: 20_000, For: 50 * time.Microsecond, Fault: sim.Storm{Host: 15, Priority: 3}})
		b.run(500 * time.Microsecond)
		if watch {
			b.each(func(key model.FlowKey, sent engine.Time) {
				if sent%9 == 0 {
					a, err := b.o.AccountRoundTrip(key, sent)
					b.check(&a, err)
				}
			})
		}
		b.run(2 * time.Millisecond)
		return b.Counts, b.Records(), *seen
	}
	counts, records, seen := run(true)
	wantCounts, wantRecords, wantSeen := run(false)
	if counts != wantCounts || !reflect.DeepEqual(records, wantRecords) || seen != wantSeen || counts.Pauses == 0 {
		t.Errorf("with an Oracle %+v, observed %+v\nwithout %+v, %+v\nwant the same, and pauses", counts, seen, wantCounts, wantSeen)
	}
}

// The log holds what its window says, however long the run is.
func TestLogIsBounded(t *testing.T) {
	race.LeaveToPlainRun(t)
	b := fatTree(t, unthrottledWith(3*model.MB), 50*time.Microsecond)
	for i := range model.NodeID(15) {
		b.add(traffic.Flow{Src: i, Dst: (i + 5) % 16, Stop: 1e12, Priority: 3, Start: 1000})
	}
	entries := func() (n int) {
		for _, l := range b.o.ports {
			n += cap(l.list)
		}
		for _, q := range b.o.queues {
			n += cap(q.list) + cap(q.pauses.list) + cap(q.packet)
			for _, l := range q.from {
				n += cap(l.index)
			}
		}
		return n
	}
	b.run(500 * time.Microsecond)
	early := entries()
	b.run(2500 * time.Microsecond)
	if late := entries(); late > early*2 {
		t.Errorf("room for %d entries after 2.5 ms, %d after 0.5 ms; want no growth", late, early)
	}
	if key, _ := b.FlowKey(0); key.SrcPort != 0 {
		if _, err := b.o.Account(key, 1000*engine.Nanosecond); !errors.Is(err, ErrUnknown) {
			t.Errorf("the first packet of a long run: %v; want ErrUnknown", err)
		}
	}
}

func unthrottledWith(buffer model.Bytes) sim.Config {
	cfg := unthrottled()
	cfg.Buffer = buffer
	return cfg
}

// Senders that the log no longer names are forgotten.
func TestPartiesAreBounded(t *testing.T) {
	b := fatTree(t, unthrottledWith(3*model.MB), 20*time.Microsecond)
	for i := range 8000 {
		f := udp(model.NodeID(i%15), 15, 1)
		f.Start = model.Time(1000 + 500*i)
		b.add(f)
	}
	b.run(5 * time.Millisecond)
	if n := len(b.o.parties); n > 2000 {
		t.Errorf("%d senders after 8000 flows; want at most 2000", n)
	}
	key, _ := b.FlowKey(7999)
	sent, ok := b.o.Nearest(key, b.Now())
	if !ok {
		t.Fatal("the last flow is unknown")
	}
	if _, err := b.o.Account(key, sent); !errors.Is(err, ErrUnknown) {
		t.Errorf("a packet before the window: %v; want ErrUnknown", err)
	}
}

// A shorter log explains no more: it lacks roots, and has none that the whole
// log lacks.
func TestShorterLogExplainsNoMore(t *testing.T) {
	run := func(window time.Duration) *bed {
		b := fatTree(t, unthrottledWith(600*model.KB), window)
		b.add(incast(300 * model.KB)...)
		b.inject(sim.Injection{At: 20_000, For: 30 * time.Microsecond, Fault: sim.Storm{Host: 15, Priority: 3}})
		b.run(150 * time.Microsecond)
		return b
	}
	whole, short := run(time.Second), run(100*time.Microsecond)
	i, unexplained := 0, engine.Time(0)
	short.each(func(key model.FlowKey, sent engine.Time) {
		if i++; i%13 != 0 {
			return
		}
		a, err := short.o.Account(key, sent)
		short.check(&a, err)
		w, err := whole.o.Account(key, sent)
		whole.check(&w, err)
		got, most := rootTimes(a.Terms), rootTimes(w.Terms)
		unexplained += got[root{kind: Unexplained}]
		delete(got, root{kind: Unexplained})
		for r, d := range got {
			if d > most[r]+a.Late/1000+engine.Nanosecond {
				t.Errorf("%+v %v; want at most %v, as with the whole log\n%v%v", r, d, most[r], &a, &w)
			}
		}
	})
	if unexplained == 0 {
		t.Error("nothing is unexplained; want what lies before the log")
	}
}

func rootTimes(terms []Term) map[root]engine.Time {
	all := map[root]engine.Time{}
	for _, t := range terms {
		r := root{place: t.Place, kind: t.Kind}
		if t.Kind == Unexplained {
			r.place = Queue{}
		}
		all[r] += t.Time
	}
	return all
}

func BenchmarkWatch(b *testing.B) {
	for _, name := range []string{"off", "on"} {
		b.Run(name, func(b *testing.B) {
			n := fatTree(b, sim.DefaultConfig(), time.Millisecond)
			if name == "off" {
				n.Observe(nil)
				for _, p := range n.Ports() {
					p.SetTap(nil)
				}
			}
			for i := range model.NodeID(16) {
				n.add(traffic.Flow{Src: i, Dst: (i + 5) % 16, Stop: 1e12, Priority: 3, Rate: 40 * model.Gbps})
			}
			n.Run(3 * engine.Millisecond)
			hops := n.Counts.Hops
			b.ResetTimer()
			for b.Loop() {
				n.Run(n.Now() + 10*engine.Microsecond)
			}
			b.ReportMetric(float64(n.Counts.Hops-hops)/b.Elapsed().Seconds()/1e6, "Mhop/s")
		})
	}
}

func BenchmarkAccount(b *testing.B) {
	n := fatTree(b, unthrottledWith(600*model.KB), time.Second)
	n.add(incast(300 * model.KB)...)
	n.run(200 * time.Microsecond)
	type packet struct {
		key  model.FlowKey
		sent engine.Time
	}
	var packets []packet
	n.each(func(key model.FlowKey, sent engine.Time) { packets = append(packets, packet{key, sent}) })
	i := 0
	for b.Loop() {
		p := packets[i*31%len(packets)]
		i++
		a, err := n.o.AccountRoundTrip(p.key, p.sent)
		n.check(&a, err)
	}
}

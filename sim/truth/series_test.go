package truth

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// depthLog follows every queue's depth packet by packet.
type depthLog struct {
	*Recorder
	depth map[Node]model.Bytes
	peaks map[Node]Peak
}

func (l *depthLog) Enqueued(now engine.Time, p *sim.Packet, out *sim.Port) {
	q := QueueNode(portOf(out), p.Priority)
	l.depth[q] += model.Bytes(p.Size)
	if l.depth[q] > l.peaks[q].Bytes {
		l.peaks[q] = Peak{l.depth[q], out.QueuePackets(p.Priority) + 1, now}
	}
	l.Recorder.Enqueued(now, p, out)
}

func (l *depthLog) Dequeued(now engine.Time, p *sim.Packet, out *sim.Port) {
	l.depth[QueueNode(portOf(out), p.Priority)] -= model.Bytes(p.Size)
	l.Recorder.Dequeued(now, p, out)
}

func TestPeaks(t *testing.T) {
	b := fatTree(t, unthrottled(), All())
	log := &depthLog{b.r, map[Node]model.Bytes{}, map[Node]Peak{}}
	b.Observe(log)
	b.add(incast(300_000)...)
	b.run(5 * time.Millisecond)
	deepest := Peak{}
	for _, p := range b.Ports() {
		for prio := range model.Priority(priorities) {
			got, want := b.r.Peak(portOf(p), prio), log.peaks[QueueNode(portOf(p), prio)]
			if got != want {
				t.Errorf("peak of port %v priority %d = %+v; want %+v", portOf(p), prio, got, want)
			}
			if got.Bytes > deepest.Bytes {
				deepest = got
			}
		}
	}
	if deepest.Bytes < 50*model.KB {
		t.Errorf("deepest queue %+v; want an incast to pile up", deepest)
	}
}

// TestFoldingKeepsSums runs the same traffic with capacity for every sample and
// with capacity for few.
func TestFoldingKeepsSums(t *testing.T) {
	run := func(most int) *bed {
		o := All()
		o.MaxSamples, o.Until = most, engine.Millisecond
		b := fatTree(t, unthrottled(), o)
		b.add(incast(300_000)...)
		b.run(2 * time.Millisecond)
		return b
	}
	const ports = 80
	b := run(1 << 20)
	whole, folded := b.r.Series(), run(10*ports).r.Series()
	if len(whole.Ports) != ports || len(whole.Times) != 100 || whole.Interval != 10*engine.Microsecond {
		t.Fatalf("whole: %d ports, %d samples every %v; want 80, 100, 10µs", len(whole.Ports), len(whole.Times), whole.Interval)
	}
	// 100 samples of 10 µs do not fit into 10; neither do 50, 25, 12 of twice as long.
	if len(folded.Times) != 6 || folded.Interval != 160*engine.Microsecond {
		t.Fatalf("folded: %d samples every %v; want 6, 160µs", len(folded.Times), folded.Interval)
	}
	paused := engine.Time(0)
	for i, at := range folded.Times {
		if want := engine.Time(i+1) * folded.Interval; at != want {
			t.Errorf("folded sample %d at %v; want %v", i, at, want)
		}
		for port := range ports {
			var want Sample
			for j := i * 16; j < (i+1)*16; j++ {
				s := whole.At(j, port)
				want = Sample{s.Queue, max(want.Peak, s.Peak), want.Sent + s.Sent, want.Paused + s.Paused}
			}
			if got := folded.At(i, port); got != want {
				t.Errorf("port %v, folded sample %d = %+v; want %+v", whole.Ports[port], i, got, want)
			}
			paused += want.Paused
			if share := folded.Share(i, port); share < 0 || share > 1 {
				t.Errorf("port %v, folded sample %d: paused share %v; want 0 to 1", whole.Ports[port], i, share)
			}
		}
	}
	if paused == 0 {
		t.Errorf("no port was paused; want some")
	}
	for port, name := range whole.Ports {
		var pausedFor engine.Time
		for i := range whole.Times {
			pausedFor += whole.At(i, port).Paused
		}
		var want engine.Time // only one priority is in use
		for _, p := range b.r.Pauses() {
			if p.Port == name {
				want += max(0, min(p.End, engine.Millisecond)-p.Begin)
			}
		}
		if pausedFor != want {
			t.Errorf("port %v: samples add up to %v paused; intervals to %v", name, pausedFor, want)
		}
	}
}

func TestSamplesSeeTheWire(t *testing.T) {
	o := All()
	o.Until = engine.Millisecond
	b := dumbbell(t, 2, sim.DefaultConfig(), o)
	b.add(udp(0, 2, 10*model.Gbps, 1_000_000))
	b.Run(engine.Millisecond) // the last sample is taken at this time
	s := b.r.Series()
	for port, name := range s.Ports {
		var sent model.Bytes
		for i := range s.Times {
			sent += s.At(i, port).Sent
		}
		if want := b.Port(name).TxData; sent != want {
			t.Errorf("port %v: samples add up to %v sent; the port says %v", name, sent, want)
		}
	}
	b.run(3 * time.Millisecond)
	if !b.Idle() {
		t.Errorf("the network is not idle after Until; want no sample to come")
	}
}

package truth

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// slotLog counts in a map: the obvious reference.
type slotLog struct {
	*Recorder
	length engine.Time
	counts map[SlotCount]*[2]Count // keys have no counts
}

func (l *slotLog) count(now engine.Time, p *sim.Packet, out *sim.Port, side int) {
	id, reverse := p.Flow()
	key := SlotCount{Slot: int64(now / l.length), Flow: id, Reverse: reverse, Port: portOf(out)}
	if l.counts[key] == nil {
		l.counts[key] = new([2]Count)
	}
	l.counts[key][side].Packets++
	l.counts[key][side].Bytes += model.Bytes(p.Size)
}

func (l *slotLog) Enqueued(now engine.Time, p *sim.Packet, out *sim.Port) {
	l.count(now, p, out, arrived)
	l.Recorder.Enqueued(now, p, out)
}

func (l *slotLog) Dequeued(now engine.Time, p *sim.Packet, out *sim.Port) {
	l.count(now, p, out, left)
	l.Recorder.Dequeued(now, p, out)
}

func TestSlotsMatchReference(t *testing.T) {
	o := All()
	o.Slot = 20 * time.Microsecond
	b := fatTree(t, unthrottled(), o)
	log := &slotLog{b.r, 20 * engine.Microsecond, map[SlotCount]*[2]Count{}}
	b.Observe(log)
	b.add(incast(300_000)...)
	b.run(5 * time.Millisecond)
	got := map[SlotCount]*[2]Count{}
	var last SlotCount
	for i, s := range b.r.Slots() {
		key := s
		key.Arrived, key.Left = Count{}, Count{}
		got[key] = &[2]Count{s.Arrived, s.Left}
		if i > 0 && s.Slot < last.Slot {
			t.Fatalf("slot %d after %d; want them ascending", s.Slot, last.Slot)
		}
		last = s
	}
	if diff := cmp.Diff(log.counts, got); diff != "" {
		t.Errorf("slots differ from the map (-map +truth):\n%s", diff)
	}
	if len(got) < 500 {
		t.Errorf("%d counts; want at least 500 for the test to mean something", len(got))
	}
}

func TestSlotsAreBounded(t *testing.T) {
	o := Options{Slot: 10 * time.Microsecond, MaxSlots: 5, Conserve: true, Flows: true}
	b := dumbbell(t, 1, sim.DefaultConfig(), o)
	b.add(udp(0, 1, 10*model.Gbps, 100_000))
	b.run(5 * time.Millisecond)
	slots := b.r.Slots()
	var kept int64
	for _, s := range slots {
		kept += s.Arrived.Packets + s.Left.Packets
	}
	// Two switches, two sides of a queue.
	if all := 4 * b.r.Flow(0, false).Delivered; len(slots) != 5 || kept == 0 || kept+b.r.Unrecorded().Slots != all {
		t.Errorf("%d counts of %d packets, %d lost; want 5, and %d together", len(slots), kept, b.r.Unrecorded().Slots, all)
	}
}

package truth

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Count is a number of packets and their size on the wire.
type Count struct {
	Packets int64
	Bytes   model.Bytes
}

// SlotCount counts one direction of a flow at one switch port in one slot. Slot
// i starts at i × length.
type SlotCount struct {
	Slot    int64
	Flow    int
	Reverse bool
	Port    model.Port // egress

	Arrived Count // enqueued
	Left    Count // dequeued; programs may have changed sizes after that
}

// slots counts by flow, port and slot. Beyond max entries, counts of new ones
// are not recorded; existing ones continue, so the record is complete up to a
// slot.
type slots struct {
	length     engine.Time
	max        int
	unrecorded int64

	entries []slotEntry
	hops    [][]slotHop // by direction, one for each port
}

type slotEntry struct {
	slot            int64
	direction, port int32
	counts          [2]Count // by side
}

// slotHop finds the newest entry of a direction and port.
type slotHop struct{ port, entry int32 }

// sides of a queue.
const (
	arrived = iota
	left
)

func (s *slots) count(now engine.Time, p *sim.Packet, port int32, side int) {
	d := direction(p)
	if d < 0 {
		return
	}
	c := s.entry(d, port, int64(now/s.length))
	if c == nil {
		s.unrecorded++
		return
	}
	c.counts[side].Packets++
	c.counts[side].Bytes += model.Bytes(p.Size)
}

// entry returns the count of the current slot, a new one if needed, or nil
// beyond max. At one port time never goes back, so only the newest entry of a
// hop can be the one.
func (s *slots) entry(d, port int32, slot int64) *slotEntry {
	s.hops = reach(s.hops, d)
	hops := s.hops[d]
	i := slices.IndexFunc(hops, func(h slotHop) bool { return h.port == port })
	if i >= 0 && s.entries[hops[i].entry].slot == slot {
		return &s.entries[hops[i].entry]
	}
	if len(s.entries) >= s.max {
		return nil
	}
	e := int32(len(s.entries))
	s.entries = append(s.entries, slotEntry{slot: slot, direction: d, port: port})
	if i < 0 {
		s.hops[d] = append(hops, slotHop{port, e})
	} else {
		hops[i].entry = e
	}
	return &s.entries[e]
}

// Slots returns the counts by slot, flow, direction and port.
func (r *Recorder) Slots() []SlotCount {
	if r.slots == nil {
		return nil
	}
	all := make([]SlotCount, len(r.slots.entries))
	for i, e := range r.slots.entries {
		all[i] = SlotCount{
			Slot: e.slot, Flow: int(e.direction / 2), Reverse: e.direction%2 == 1, Port: r.name(e.port),
			Arrived: e.counts[arrived], Left: e.counts[left],
		}
	}
	slices.SortFunc(all, func(a, b SlotCount) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot),
			cmp.Compare(directionOf(a.Flow, a.Reverse), directionOf(b.Flow, b.Reverse)), comparePorts(a.Port, b.Port))
	})
	return all
}

func comparePorts(a, b model.Port) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Port, b.Port))
}

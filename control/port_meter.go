package control

import (
	"iter"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/topo"
)

// portMeter turns port counters into rates, and remembers slots in which ports were
// paused or discarded packets: a packet that is stuck in a paused queue is not
// lost, and one that a full buffer discarded was not lost silently.
type portMeter struct {
	sampledAt model.Time // the last sample
	readAt    model.Time // the last reading of counters
	ports     map[model.Port]*meteredPort
	order     []model.Port // of ports, as they were first read
	list      []PortCounters
	rate      map[model.Port]portRate // over the last sample

	framePauses map[model.Port]*framePauses // of ports whose PFC frames are mirrored

	slot  time.Duration
	slots []slotCounters // the newest slots, by number modulo their count
}

// meteredPort is the newest counters of a port, and those of the last sample.
type meteredPort struct {
	last, sampled PortCounters
	reported      bool // by the switch, at a time of its own
	// interval is how far apart the two newest readings are; pausedAt is the newest that
	// showed a pause.
	interval time.Duration
	pausedAt model.Time
}

// portRate is what a port did between two samples.
type portRate struct {
	load   model.Rate
	paused float64 // share of the time
	// lasts is for how long after at it is a port's rate, if it comes from a reading of
	// counters, whose interval is longer than that of samples; else 0.
	at    model.Time
	lasts time.Duration
}

// counted reports whether the rate comes from a reading that still holds.
func (r *portRate) counted(now model.Time) bool { return r.lasts > 0 && now.Sub(r.at) <= r.lasts }

// slotCounters are the counters of one slot.
type slotCounters struct {
	number   int64
	paused   map[model.Port]time.Duration // by counters
	byFrames map[model.Port]time.Duration // paused, by mirrored PFC frames
	discards map[model.NodeID]discardSpan // by switch: a loss is not located more precisely
}

// discardSpan is how many packets a switch discarded from the start of a slot up to the
// slot in which it was read: switches that report rarely do not say when.
type discardSpan struct {
	packets uint64
	from    int64 // slot
}

// minMeterSlots is how many slots are remembered at least.
const minMeterSlots = 16

// meterSlots is how many slots are remembered: slots and traces are judged when their
// last report has arrived, or was waited for.
func meterSlots(cfg *Config) int {
	traces := cfg.Traces.Trace.CloseAfter + time.Duration(cfg.Traces.Window+1)*cfg.Traces.Period
	return minMeterSlots + max(cfg.Flows.WaitSlots, int(traces/max(cfg.Flows.Slot, 1)))
}

func newPortMeter(slot time.Duration, slots int) portMeter {
	return portMeter{
		ports: map[model.Port]*meteredPort{}, rate: map[model.Port]portRate{}, framePauses: map[model.Port]*framePauses{},
		slot: slot, slots: make([]slotCounters, slots),
	}
}

// addCounters adds what a port counted between two instants. Of a span that is longer
// than what is remembered, the last part is taken for all of it.
func (m *portMeter) addCounters(from, to model.Time, port model.Port, paused time.Duration, discards uint64) {
	if paused == 0 && discards == 0 || to <= from {
		return
	}
	// What was counted up to a slot's first instant happened before it.
	last := (int64(to) - 1) / int64(m.slot)
	first := max(int64(from)/int64(m.slot), last-int64(len(m.slots))+1)
	if discards > 0 {
		if h := m.slotCounters(last); h != nil {
			was, known := h.discards[port.Node]
			if !known {
				was.from = first
			}
			h.discards[port.Node] = discardSpan{was.packets + discards, min(was.from, first)}
		}
	}
	if paused == 0 {
		return
	}
	for n := first; n <= last; n++ {
		part := min(to, model.Time((n+1)*int64(m.slot))).Sub(max(from, model.Time(n*int64(m.slot))))
		share := time.Duration(float64(paused) * float64(part) / float64(to.Sub(from)))
		if h := m.slotCounters(n); h != nil && share > 0 {
			h.paused[port] += min(share, part)
		}
	}
}

// addReading adds the pauses of a reading of counters. Over an interval longer than what is
// remembered it is not known when they were.
func (m *portMeter) addReading(r *portstat.Reading, paused time.Duration) {
	if m.ports[r.Port] == nil && r.Interval() <= time.Duration(len(m.slots))*m.slot {
		m.addCounters(r.To.Add(-r.Interval()), r.To, r.Port, paused, 0)
	}
}

// slotCounters returns the counters of a slot; those of an older one make room. It returns
// nil of a slot that has made room itself.
func (m *portMeter) slotCounters(n int64) *slotCounters {
	size := int64(len(m.slots))
	h := &m.slots[((n%size)+size)%size]
	if h.paused != nil && h.number > n {
		return nil
	}
	if h.number != n || h.paused == nil {
		*h = slotCounters{n, map[model.Port]time.Duration{}, map[model.Port]time.Duration{}, map[model.NodeID]discardSpan{}}
	}
	return h
}

// pausedTime is how long a port was paused, by what shows most of it.
func (h *slotCounters) pausedTime(p model.Port) time.Duration { return max(h.paused[p], h.byFrames[p]) }

// pausedPorts iterates over the ports that were paused, and how long.
func (h *slotCounters) pausedPorts() iter.Seq2[model.Port, time.Duration] {
	return func(yield func(model.Port, time.Duration) bool) {
		for p := range h.paused {
			if !yield(p, h.pausedTime(p)) {
				return
			}
		}
		for p, d := range h.byFrames {
			if _, counted := h.paused[p]; !counted && !yield(p, d) {
				return
			}
		}
	}
}

// hasCounters reports whether counters of a port are known.
func (m *portMeter) hasCounters(port model.Port) bool {
	return m.ports[port] != nil
}

// pausesOf is how PFC paused the queue of a flow at a port. It is not known of a port
// without counters; classes that are not lossless are not paused.
func (m *portMeter) pausesOf(k *model.FlowKey, port model.Port) (trace.Pauses, bool) {
	p := m.ports[port]
	if p == nil || !isLossless(*k) {
		return trace.Pauses{}, false
	}
	return trace.Pauses{Paused: p.last.Paused, Read: p.last.At, Interval: p.interval, Last: p.pausedAt}, true
}

// pausedIn is the largest share of a slot, of those from first to last, that a
// port was paused. Port 0 of a switch is any of its ports.
func (m *portMeter) pausedIn(port model.Port, first, last int64) (share float64) {
	for i := range m.slots {
		h := &m.slots[i]
		if h.number < first || h.number > last {
			continue
		}
		if port.Port != 0 {
			share = max(share, float64(h.pausedTime(port))/float64(m.slot))
			continue
		}
		for p, d := range h.pausedPorts() {
			if p.Node == port.Node {
				share = max(share, float64(d)/float64(m.slot))
			}
		}
	}
	return share
}

// pausedAcross is the longest time, as a share of a slot, that a port of a switch was paused
// in a slot and the one after it, of those from first to last: a pause may begin in one slot
// and end in the next.
func (m *portMeter) pausedAcross(sw model.NodeID, first, last int64) (share float64) {
	for i := range m.slots {
		h := &m.slots[i]
		if h.number < first || h.number > last {
			continue
		}
		next := &m.slots[(i+1)%len(m.slots)]
		for p, d := range h.pausedPorts() {
			if p.Node != sw {
				continue
			}
			if next.number == h.number+1 && next.number <= last {
				d += next.pausedTime(p)
			}
			share = max(share, float64(d)/float64(m.slot))
		}
	}
	return share
}

// pausedFor is pausedIn of the port that flows should leave a switch by, where the
// switch says that they left by none: another of its ports does not hold them.
func (m *portMeter) pausedFor(port model.Port, flows []model.FlowKey, routes *topo.Routes, first, last int64) (share float64) {
	if port.Port != 0 {
		return m.pausedIn(port, first, last)
	}
	for i := range flows {
		if out, ok := routes.NextHop(port.Node, flows[i]); ok {
			share = max(share, m.pausedIn(model.Port{Node: port.Node, Port: out}, first, last))
		}
	}
	return share
}

// pausedPorts lists the ports that were paused for at least a share of a slot,
// ascending.
func (m *portMeter) pausedPorts(slot int64, share float64) (list []model.Port) {
	h := m.slotCounters(slot)
	if h == nil {
		return nil
	}
	for p, d := range h.pausedPorts() {
		if float64(d) >= share*float64(m.slot) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, model.Port.Compare)
	return list
}

// discardedIn is how many packets a switch discarded in slots, at most.
func (m *portMeter) discardedIn(sw model.NodeID, first, last int64) (n uint64) {
	for i := range m.slots {
		if d := m.slots[i].discards[sw]; m.slots[i].number >= first && d.from <= last {
			n += d.packets
		}
	}
	return n
}

package epoch

import (
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// occupancy is the current backlog of the switch: by pair of ports, for which a
// switch pauses a neighbour, and by flow. Adding at Enqueue and subtracting at
// Dequeue takes constant time; in hardware it is the difference of a counter
// before the buffer and one after it.
//
// A packet may also be dropped in between (buffer full, link down). A queue
// that is empty therefore starts a new busy period: counts of an earlier one
// are zero, without a sweep. A packet that bypasses the queue is not counted.
type occupancy struct {
	side  int
	lanes []queue                // telemetry's queues
	pairs [classes][]pairBacklog // by in, out; nil until the class is used
	flows []flowBacklog          // hash table
	mask  uint64
	seed  uint64

	deviation uint64        // that histories may have
	histories int           // that are kept
	memory    time.Duration // of histories
}

// pairBacklog is the backlog of a pair of ports. Its history is nil while it was
// never above the deviation, or too many others have one.
type pairBacklog struct {
	backlog
	history *backlogHistory
}

type backlog struct {
	period  uint32
	packets uint32
	bytes   uint64
}

type flowBacklog struct {
	backlog
	id      uint64 // as in recentFlow
	in, out model.PortID
	class   model.Priority
	// spilled says that a flow whose first slot this is once used another slot,
	// and may still. It remains when the slot changes hands.
	spilled bool
	key     model.FlowKey
}

// maxProbes is how many slots of the table a flow may probe; if backlogged
// flows occupy all of them, the flow is not in the table, only in the pairs.
const maxProbes = 4

func newOccupancy(cfg Config, dev *inswitch.Device, lanes []queue) occupancy {
	o := occupancy{
		side: len(lanes) / classes, lanes: lanes, seed: cfg.Seed, deviation: uint64(epoch.BacklogError(model.Bytes(dev.MTU))),
		memory: memoryOf(dev),
	}
	if cfg.FlowSlots > 0 {
		o.flows = make([]flowBacklog, max(cfg.FlowSlots, maxProbes))
		o.mask = uint64(len(o.flows) - 1)
	}
	return o
}

func (o *occupancy) pair(in, out model.PortID, class model.Priority) *pairBacklog {
	table := &o.pairs[class&7]
	if *table == nil {
		*table = make([]pairBacklog, o.side*o.side)
	}
	return &(*table)[int(in)*o.side+int(out)]
}

// enqueue adds a packet, whose flow and queue have the hash at.
func (o *occupancy) enqueue(ev *inswitch.Event, at, bytes uint64) {
	life := o.lanes[lane(ev.Out, ev.Priority)].busyPeriod
	pair := o.pair(ev.In, ev.Out, ev.Priority)
	pair.addPacket(life, bytes)
	o.record(pair, ev.Now)
	if o.flows != nil && !ev.Packet.Key.IsZero() {
		o.enqueueFlow(ev, at, life, bytes)
	}
}

// record adds the backlog of a pair to its history. Most have none: it is inlined.
func (o *occupancy) record(p *pairBacklog, now model.Time) {
	if p.history != nil || p.bytes > 2*o.deviation {
		o.recordHigh(p, now)
	}
}

// recordHigh is record for a pair that has a history, or is due one.
//
//go:noinline
func (o *occupancy) recordHigh(p *pairBacklog, now model.Time) {
	if p.history == nil {
		if o.histories == MaxBacklogHistories {
			return
		}
		o.histories++
		p.history = &backlogHistory{memory: o.memory}
	}
	p.history.observe(now, p.bytes, o.deviation)
}

// enqueueRecent is enqueue for a recent flow. Most find their first slot their
// own, or free.
func (o *occupancy) enqueueRecent(ev *inswitch.Event, k *recentFlow, bytes uint64) {
	life := k.queue.busyPeriod
	k.pair.addPacket(life, bytes)
	o.record(k.pair, ev.Now)
	w := k.first
	switch alive, own := o.isOccupied(w), w.id == k.id; {
	case w.spilled || alive && !own:
		o.enqueueFlow(ev, uint64(k.at), life, bytes)
		return
	case !own:
		o.claimSlot(w, ev)
	case !alive:
		w.backlog = backlog{period: life}
	}
	w.in = ev.In
	w.addPacket(life, bytes)
}

func (o *occupancy) enqueueFlow(ev *inswitch.Event, at uint64, life uint32, bytes uint64) {
	var free *flowBacklog
	for i := range uint64(maxProbes) {
		w := &o.flows[(at+i)&o.mask]
		alive := o.isOccupied(w)
		if alive && w.matches(ev) {
			w.in = ev.In
			w.addPacket(life, bytes)
			return
		}
		if !alive && free == nil {
			free = w
		}
	}
	if free == nil {
		return
	}
	if first := &o.flows[at&o.mask]; free != first {
		first.spilled = true
	}
	o.claimSlot(free, ev)
	free.addPacket(life, bytes)
}

// isOccupied reports whether a backlogged flow holds a slot.
func (o *occupancy) isOccupied(w *flowBacklog) bool {
	return w.packets > 0 && w.period == o.lanes[lane(w.out, w.class)].busyPeriod
}

// claimSlot assigns a slot to the event's flow.
func (o *occupancy) claimSlot(w *flowBacklog, ev *inswitch.Event) {
	*w = flowBacklog{
		id: flowID(ev.Packet.KeyID, lane(ev.Out, ev.Priority)), spilled: w.spilled,
		in: ev.In, out: ev.Out, class: ev.Priority & 7, key: *ev.Packet.Key,
	}
}

// dequeue subtracts a packet.
func (o *occupancy) dequeue(ev *inswitch.Event) {
	life := o.lanes[lane(ev.Out, ev.Priority)].busyPeriod
	bytes := uint64(ev.Packet.UnlabeledSize())
	pair := o.pair(ev.In, ev.Out, ev.Priority)
	pair.removePacket(life, bytes)
	o.record(pair, ev.Now)
	if o.flows != nil && !ev.Packet.Key.IsZero() {
		o.dequeueFlow(ev, hash(lane(ev.Out, ev.Priority), ev.Packet.Key, o.seed), life, bytes)
	}
}

// dequeueRecent is dequeue for a recent flow.
func (o *occupancy) dequeueRecent(ev *inswitch.Event, k *recentFlow) {
	life, bytes := k.queue.busyPeriod, uint64(ev.Packet.UnlabeledSize())
	k.pair.removePacket(life, bytes)
	o.record(k.pair, ev.Now)
	if w := k.first; w.id == k.id && w.packets > 0 && w.period == life {
		w.removePacket(life, bytes)
		return
	}
	o.dequeueFlow(ev, uint64(k.at), life, bytes)
}

func (o *occupancy) dequeueFlow(ev *inswitch.Event, at uint64, life uint32, bytes uint64) {
	for i := range uint64(maxProbes) {
		if w := &o.flows[(at+i)&o.mask]; w.packets > 0 && w.period == life && w.matches(ev) {
			w.removePacket(life, bytes)
			return
		}
	}
}

// current returns a backlog, or zero if it is from an earlier busy period of
// its queue.
func (o *occupancy) current(h *backlog, out model.PortID, class model.Priority) backlog {
	if h.period != o.lanes[lane(out, class)].busyPeriod {
		return backlog{}
	}
	return *h
}

func (w *flowBacklog) matches(ev *inswitch.Event) bool {
	return w.out == ev.Out && w.class == ev.Priority&7 && w.key.Equal(ev.Packet.Key)
}

func (h *backlog) addPacket(life uint32, bytes uint64) {
	if h.period != life {
		h.period, h.packets, h.bytes = life, 0, 0
	}
	h.packets++
	h.bytes += bytes
}

func (h *backlog) removePacket(life uint32, bytes uint64) {
	if h.period == life && h.packets > 0 {
		h.packets--
		h.bytes -= min(h.bytes, bytes)
	}
}

package epoch

import (
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
)

// occupancy is what waits in the switch at this moment: by pair of ports, which
// is what a switch pauses a neighbour for, and by flow. Counting in at Enqueue
// and out at Dequeue takes constant time; in hardware it is the difference of a
// counter before the buffer and one behind it.
//
// A packet may also end in between (no room, a link that goes down). A queue
// that is empty therefore begins a new life: counts of an earlier one are zero,
// without a sweep. A packet that does not wait is not counted.
type occupancy struct {
	side  int
	lanes []queue         // telemetry's
	pairs [classes][]held // by in, out; nil until the class is used
	flows []waiting       // hash table
	mask  uint64
	seed  uint64
}

type held struct {
	life    uint32
	packets uint32
	bytes   uint64
}

type waiting struct {
	held
	who     uint64 // as known has it
	in, out model.PortID
	class   model.Priority
	// spilled says that a flow whose first place this is once had another, and
	// may still. It stays when the place changes hands.
	spilled bool
	key     model.FlowKey
}

// places is how many places of the table a flow may have; where all are taken
// by others that wait, the flow is not in the list, only in the pairs.
const places = 4

func newOccupancy(cfg Config, lanes []queue) occupancy {
	o := occupancy{side: len(lanes) / classes, lanes: lanes, seed: cfg.Seed}
	if cfg.Flows > 0 {
		o.flows = make([]waiting, max(cfg.Flows, places))
		o.mask = uint64(len(o.flows) - 1)
	}
	return o
}

func (o *occupancy) pair(in, out model.PortID, class model.Priority) *held {
	table := &o.pairs[class&7]
	if *table == nil {
		*table = make([]held, o.side*o.side)
	}
	return &(*table)[int(in)*o.side+int(out)]
}

// join counts a packet in, whose flow and queue have the hash at.
func (o *occupancy) join(ev *inswitch.Event, at, bytes uint64) {
	life := o.lanes[lane(ev.Out, ev.Priority)].life
	o.pair(ev.In, ev.Out, ev.Priority).add(life, bytes)
	if o.flows != nil && !ev.Packet.Key.IsZero() {
		o.joinFlow(ev, at, life, bytes)
	}
}

// joinKnown is join for a flow that is known. Most find their first place their
// own, or free.
func (o *occupancy) joinKnown(ev *inswitch.Event, k *known, bytes uint64) {
	life := k.queue.life
	k.pair.add(life, bytes)
	w := k.first
	switch alive, own := o.alive(w), w.who == k.who; {
	case w.spilled || alive && !own:
		o.joinFlow(ev, uint64(k.at), life, bytes)
		return
	case !own:
		o.occupy(w, ev)
	case !alive:
		w.held = held{life: life}
	}
	w.in = ev.In
	w.add(life, bytes)
}

func (o *occupancy) joinFlow(ev *inswitch.Event, at uint64, life uint32, bytes uint64) {
	var free *waiting
	for i := range uint64(places) {
		w := &o.flows[(at+i)&o.mask]
		alive := o.alive(w)
		if alive && w.is(ev) {
			w.in = ev.In
			w.add(life, bytes)
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
	o.occupy(free, ev)
	free.add(life, bytes)
}

// alive tells whether a place is taken by a flow that waits.
func (o *occupancy) alive(w *waiting) bool {
	return w.packets > 0 && w.life == o.lanes[lane(w.out, w.class)].life
}

// occupy gives a place to the event's flow.
func (o *occupancy) occupy(w *waiting, ev *inswitch.Event) {
	*w = waiting{
		who: whoIs(ev.Packet.KeyID, lane(ev.Out, ev.Priority)), spilled: w.spilled,
		in: ev.In, out: ev.Out, class: ev.Priority & 7, key: *ev.Packet.Key,
	}
}

// leave counts a packet out.
func (o *occupancy) leave(ev *inswitch.Event) {
	life := o.lanes[lane(ev.Out, ev.Priority)].life
	bytes := uint64(ev.Packet.Bare())
	o.pair(ev.In, ev.Out, ev.Priority).take(life, bytes)
	if o.flows != nil && !ev.Packet.Key.IsZero() {
		o.leaveFlow(ev, hash(lane(ev.Out, ev.Priority), ev.Packet.Key, o.seed), life, bytes)
	}
}

// leaveKnown is leave for a flow that is known.
func (o *occupancy) leaveKnown(ev *inswitch.Event, k *known) {
	life, bytes := k.queue.life, uint64(ev.Packet.Bare())
	k.pair.take(life, bytes)
	if w := k.first; w.who == k.who && w.packets > 0 && w.life == life {
		w.take(life, bytes)
		return
	}
	o.leaveFlow(ev, uint64(k.at), life, bytes)
}

func (o *occupancy) leaveFlow(ev *inswitch.Event, at uint64, life uint32, bytes uint64) {
	for i := range uint64(places) {
		if w := &o.flows[(at+i)&o.mask]; w.packets > 0 && w.life == life && w.is(ev) {
			w.take(life, bytes)
			return
		}
	}
}

// now returns what a count is worth in the present life of its queue.
func (o *occupancy) now(h *held, out model.PortID, class model.Priority) held {
	if h.life != o.lanes[lane(out, class)].life {
		return held{}
	}
	return *h
}

func (w *waiting) is(ev *inswitch.Event) bool {
	return w.out == ev.Out && w.class == ev.Priority&7 && w.key.Equal(ev.Packet.Key)
}

func (h *held) add(life uint32, bytes uint64) {
	if h.life != life {
		h.life, h.packets, h.bytes = life, 0, 0
	}
	h.packets++
	h.bytes += bytes
}

func (h *held) take(life uint32, bytes uint64) {
	if h.life == life && h.packets > 0 {
		h.packets--
		h.bytes -= min(h.bytes, bytes)
	}
}

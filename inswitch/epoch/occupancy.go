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
	life  []uint32        // by port × class
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
	in, out model.PortID
	class   model.Priority
	key     model.FlowKey
}

// places is how many places of the table a flow may have; where all are taken
// by others that wait, the flow is not in the list, only in the pairs.
const places = 4

func newOccupancy(cfg Config, ports int) occupancy {
	o := occupancy{side: ports + 1, seed: cfg.Seed}
	o.life = make([]uint32, o.side*classes)
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
	life := o.life[lane(ev.Out, ev.Priority)]
	o.pair(ev.In, ev.Out, ev.Priority).add(life, bytes)
	if o.flows == nil || ev.Packet.Key.IsZero() {
		return
	}
	var free *waiting
	for i := range uint64(places) {
		w := &o.flows[(at+i)&o.mask]
		alive := w.packets > 0 && w.life == o.life[lane(w.out, w.class)]
		if alive && w.is(ev) {
			w.in = ev.In
			w.add(life, bytes)
			return
		}
		if !alive && free == nil {
			free = w
		}
	}
	if free != nil {
		*free = waiting{in: ev.In, out: ev.Out, class: ev.Priority & 7, key: *ev.Packet.Key}
		free.add(life, bytes)
	}
}

// leave counts a packet out.
func (o *occupancy) leave(ev *inswitch.Event) {
	life := o.life[lane(ev.Out, ev.Priority)]
	bytes := uint64(ev.Packet.Bare())
	o.pair(ev.In, ev.Out, ev.Priority).take(life, bytes)
	if o.flows == nil || ev.Packet.Key.IsZero() {
		return
	}
	at := hash(lane(ev.Out, ev.Priority), ev.Packet.Key, o.seed)
	for i := range uint64(places) {
		if w := &o.flows[(at+i)&o.mask]; w.packets > 0 && w.life == life && w.is(ev) {
			w.take(life, bytes)
			return
		}
	}
}

// now returns what a count is worth in the present life of its queue.
func (o *occupancy) now(h *held, out model.PortID, class model.Priority) held {
	if h.life != o.life[lane(out, class)] {
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

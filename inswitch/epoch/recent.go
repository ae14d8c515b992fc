package epoch

import (
	"math/bits"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// known is a flow that has come by in this epoch, from one port to one queue,
// and what it counted since its records were last told. Most packets are of
// such flows. Where the host has numbers for keys they need neither hash nor
// comparison nor any record, as long as the queue is not paused.
//
// Invariant: of those that are not void, no two have the same record, and the
// record's place names its own.
type known struct {
	who     uint64 // KeyID and lane; 0 if it is void
	in      model.PortID
	at      uint32 // hash
	packets uint32 // not yet told, as are the others
	last    uint32 // when the last of them came: ns into the epoch
	bytes   uint64
	depth   uint64
	queue   *queue
	pair    *held
	first   *waiting // the place that the hash names

	// The second line of the cache is for settle.
	flow  *record
	port  *epoch.PortEpoch
	meter *meter
	_     [40]byte
}

const (
	// recents flows are known, each at the place that its KeyID names.
	recents = 512
	// patience is how many packets of other flows come before one takes a place
	// from another: where flows are too many, little is spent on trying.
	patience = 16
)

// whoIs names a flow in a queue, never by 0.
func whoIs(key uint32, lane int) uint64 { return uint64(key)<<32 | uint64(lane+1) }

// find returns the place of the event's flow, and whether it is known.
func (t *telemetry) find(ev *inswitch.Event, lane int) (*known, bool) {
	k := &t.known[ev.Packet.KeyID%recents]
	return k, k.who == whoIs(ev.Packet.KeyID, lane) && k.in == ev.In
}

// learn makes a flow known whose packet was just counted, in a queue that is
// not paused.
func (t *telemetry) learn(ev *inswitch.Event, at uint64, f *record) {
	place := ev.Packet.KeyID % recents
	k := &t.known[place]
	if k.who != 0 {
		if t.misses++; t.misses%patience != 0 {
			return
		}
		t.forget(k)
	}
	t.taken[place/64] |= 1 << (place % 64)
	lane := lane(ev.Out, ev.Priority)
	*k = known{
		who: whoIs(ev.Packet.KeyID, lane), in: ev.In, at: uint32(at),
		queue: &t.queues[lane], pair: t.here.pair(ev.In, ev.Out, ev.Priority), first: &t.here.flows[at&t.here.mask],
		flow: f, port: t.portEpoch(ev.Out, ev.Priority), meter: t.meter(ev.In, ev.Out, ev.Priority),
	}
	f.known = uint16(place + 1)
}

// settle tells a flow's records what they lack.
func (t *telemetry) settle(k *known) {
	if k.packets == 0 {
		return
	}
	n := k.packets
	t.stats.Packets += uint64(n)
	k.queue.joined += uint64(n)
	k.queue.last = t.now.number
	k.port.Packets += n
	k.port.Depth += k.depth
	k.meter.packets += n
	k.meter.bytes += k.bytes
	t.came[k.in] = t.now.number
	k.flow.In, k.flow.Last = k.in, time.Duration(k.last)
	k.flow.Packets += n
	k.flow.Bytes += k.bytes
	k.flow.Depth += k.depth
	k.packets, k.bytes, k.depth = 0, 0, 0
}

// forget settles a flow and gives its place free.
func (t *telemetry) forget(k *known) {
	t.settle(k)
	k.flow.known, k.who = 0, 0
}

// settleAll brings all records up to date.
func (t *telemetry) settleAll() {
	for i, word := range t.taken {
		for ; word != 0; word &= word - 1 {
			if k := &t.known[i*64+bits.TrailingZeros64(word)]; k.who != 0 {
				t.settle(k)
			}
		}
	}
}

// forgetAll ends an epoch: what is known of flows belongs to it.
func (t *telemetry) forgetAll() {
	for i, word := range t.taken {
		for ; word != 0; word &= word - 1 {
			if k := &t.known[i*64+bits.TrailingZeros64(word)]; k.who != 0 {
				t.forget(k)
			}
		}
	}
	clear(t.taken[:])
}

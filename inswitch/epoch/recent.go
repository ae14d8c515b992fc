package epoch

import (
	"math/bits"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// recentFlow is a flow that was seen in this epoch, from one ingress port to
// one queue, and its counts since they were last flushed to its records. Most
// packets belong to such flows. If the host has numbers for keys, they need
// neither hash nor comparison nor any record, as long as the queue is not
// paused.
//
// Invariant: no two used slots have the same record, and the record's
// recentSlot refers to its slot.
type recentFlow struct {
	id      uint64 // KeyID and lane; 0 if the slot is free
	in      model.PortID
	at      uint32 // hash
	packets uint32 // not yet flushed, as are the other counts
	last    uint32 // when the last of them was enqueued: ns into the epoch
	bytes   uint64
	depth   uint64
	queue   *queue
	pair    *pairBacklog
	first   *flowBacklog // the slot that the hash selects

	// The second cache line is for flushCounts.
	flow  *flowRecord
	port  *epoch.PortEpoch
	meter *meter
	_     [40]byte
}

const (
	// recentSlots flows are remembered, each in the slot that its KeyID
	// selects.
	recentSlots = 512
	// replaceEvery is the number of misses per replacement of a slot: with too
	// many flows, little time is spent on replacing.
	replaceEvery = 16
)

// flowID identifies a flow in a queue; it is never 0.
func flowID(key uint32, lane int) uint64 { return uint64(key)<<32 | uint64(lane+1) }

// findRecent returns the slot of the event's flow, and whether the flow is in
// it.
func (t *telemetry) findRecent(ev *inswitch.Event, lane int) (*recentFlow, bool) {
	k := &t.recentFlows[ev.Packet.KeyID%recentSlots]
	return k, k.id == flowID(ev.Packet.KeyID, lane) && k.in == ev.In
}

// addRecent remembers a flow whose packet was just counted, in a queue that is
// not paused.
func (t *telemetry) addRecent(ev *inswitch.Event, at uint64, f *flowRecord) {
	slot := ev.Packet.KeyID % recentSlots
	k := &t.recentFlows[slot]
	if k.id != 0 {
		if t.misses++; t.misses%replaceEvery != 0 {
			return
		}
		t.removeRecent(k)
	}
	t.usedSlots[slot/64] |= 1 << (slot % 64)
	lane := lane(ev.Out, ev.Priority)
	*k = recentFlow{
		id: flowID(ev.Packet.KeyID, lane), in: ev.In, at: uint32(at),
		queue: &t.queues[lane], pair: t.occupancy.pair(ev.In, ev.Out, ev.Priority),
		first: &t.occupancy.flows[at&t.occupancy.mask],
		flow:  f, port: t.portEpoch(ev.Out, ev.Priority), meter: t.meter(ev.In, ev.Out, ev.Priority),
	}
	f.recentSlot = uint16(slot + 1)
}

// flushCounts adds a flow's pending counts to its records.
func (t *telemetry) flushCounts(k *recentFlow) {
	if k.packets == 0 {
		return
	}
	n := k.packets
	t.stats.Packets += uint64(n)
	k.queue.joined += uint64(n)
	k.queue.lastEpoch = t.now.number
	k.port.Packets += n
	k.port.Depth += k.depth
	k.meter.packets += n
	k.meter.bytes += k.bytes
	t.lastArrivalEpoch[k.in] = t.now.number
	k.flow.In, k.flow.Last = k.in, time.Duration(k.last)
	k.flow.Packets += n
	k.flow.Bytes += k.bytes
	k.flow.Depth += k.depth
	k.packets, k.bytes, k.depth = 0, 0, 0
}

// removeRecent flushes a flow's counts and frees its slot.
func (t *telemetry) removeRecent(k *recentFlow) {
	t.flushCounts(k)
	k.flow.recentSlot, k.id = 0, 0
}

// flushAllCounts flushes the counts of all recent flows.
func (t *telemetry) flushAllCounts() {
	for i, word := range t.usedSlots {
		for ; word != 0; word &= word - 1 {
			if k := &t.recentFlows[i*64+bits.TrailingZeros64(word)]; k.id != 0 {
				t.flushCounts(k)
			}
		}
	}
}

// removeAllRecent ends an epoch: recent flows belong to it.
func (t *telemetry) removeAllRecent() {
	for i, word := range t.usedSlots {
		for ; word != 0; word &= word - 1 {
			if k := &t.recentFlows[i*64+bits.TrailingZeros64(word)]; k.id != 0 {
				t.removeRecent(k)
			}
		}
	}
	clear(t.usedSlots[:])
}

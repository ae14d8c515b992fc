package epoch

import (
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// flowRecord is the counters of a flow in a queue in an epoch.
type flowRecord struct {
	epoch.Flow
	recentSlot uint16 // 1 + its index in telemetry.recentFlows, or 0
}

// hash mixes a flow and its queue.
func hash(lane int, key *model.FlowKey, seed uint64) uint64 {
	return (key.Hash(seed) + uint64(lane)*0x9e3779b97f4a7c15) >> 32
}

// flowRecord returns the record of the packet's flow, whose hash is at, in the
// current epoch. A flow whose slot is taken replaces the other, which is
// evicted to the switch's memory.
func (t *telemetry) flowRecord(ev *inswitch.Event, at uint64) *flowRecord {
	table := t.flows[t.now.index]
	if table == nil {
		table = make([]flowRecord, t.cfg.FlowSlots)
		t.flows[t.now.index] = table
	}
	key := ev.Packet.Key
	f := &table[at&uint64(t.cfg.FlowSlots-1)]
	if f.recentSlot != 0 {
		t.removeRecent(&t.recentFlows[f.recentSlot-1])
	}
	if f.Epoch == t.now.number && f.Packets > 0 {
		if f.Out == ev.Out && f.Priority == ev.Priority&7 && f.Key.Equal(key) {
			return f
		}
		t.evict(&f.Flow)
	}
	f.Flow = epoch.Flow{
		Epoch: t.now.number, Out: ev.Out, Priority: ev.Priority & 7, Key: *key,
		First: time.Duration(t.now.offset(ev.Now)),
	}
	return f
}

// evict moves a record to the switch's memory, in place of the oldest there if
// that one's epoch is no longer kept.
func (t *telemetry) evict(f *epoch.Flow) {
	t.stats.Evicted++
	if t.cfg.MaxEvicted == 0 {
		t.stats.EvictedLost++
		return
	}
	f.Evicted = true
	if t.mergeEvicted(f) {
		return
	}
	if len(t.evicted) < t.cfg.MaxEvicted {
		t.evicted = append(t.evicted, *f)
		return
	}
	if oldest := &t.evicted[t.oldestEvicted]; !t.isKept(oldest.Epoch) {
		*oldest = *f
		t.oldestEvicted = (t.oldestEvicted + 1) % len(t.evicted)
		return
	}
	t.stats.EvictedLost++
}

// mergeEvicted adds a record to the same flow's record among the last evicted
// ones: two flows that share a slot evict each other with every packet.
func (t *telemetry) mergeEvicted(f *epoch.Flow) bool {
	const back = 8
	last := len(t.evicted)
	if last == t.cfg.MaxEvicted {
		last = t.oldestEvicted + len(t.evicted) // the newest is before the oldest, in a ring
	}
	for i := last - 1; i >= max(last-back, 0); i-- {
		g := &t.evicted[i%len(t.evicted)]
		if g.Epoch == f.Epoch && g.Out == f.Out && g.Priority == f.Priority && g.Key.Equal(&f.Key) {
			g.In, g.Last = f.In, f.Last
			g.Packets += f.Packets
			g.Paused += f.Paused
			g.Bytes += f.Bytes
			g.Depth += f.Depth
			g.PausedDepth += f.PausedDepth
			return true
		}
	}
	return false
}

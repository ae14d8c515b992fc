package epoch

import (
	"math"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

const classes = 8

// telemetry is the counters of a switch. All counters of an epoch carry the
// epoch's number and are cleared by the first packet of a later epoch: no
// sweep, constant work for every packet.
type telemetry struct {
	recentFlows [recentSlots]recentFlow // first, to be aligned to cache lines
	usedSlots   [recentSlots / 64]uint64
	misses      uint32

	cfg   Config
	ports int // highest port number
	now   clock

	queues           []queue           // by port × priority: state since the start
	epochs           []epoch.PortEpoch // by ring index, port, priority
	meters           [classes][]meter  // by ring index, in, out; nil until the priority is used
	lastArrivalEpoch []uint32          // by ingress port: epoch of its last packet
	flows            [][]flowRecord    // by ring index; nil until used
	evicted          []epoch.Flow      // a ring once it is full
	oldestEvicted    int               // index in evicted
	occupancy        occupancy
	memory           time.Duration // of intervals and histories
	stats            *Stats
}

// advanceTo begins the epoch of an instant, unless it is the current one.
func (t *telemetry) advanceTo(now model.Time) {
	if !t.now.contains(now) {
		t.removeAllRecent()
		t.now.moveTo(now)
	}
}

func newTelemetry(cfg Config, dev *inswitch.Device, stats *Stats) *telemetry {
	ports := len(dev.Ports)
	t := &telemetry{cfg: cfg, ports: ports, stats: stats, memory: memoryOf(dev)}
	t.now = clock{length: int64(cfg.EpochLength), ring: uint32(cfg.Epochs)}
	t.queues = make([]queue, (ports+1)*classes)
	for i := range t.queues {
		t.queues[i].episodeBytes = math.MaxInt64 // no episodes on a link of unknown rate
		if rate := dev.Port(model.PortID(i / classes)).Rate; rate > 0 {
			t.queues[i].episodeBytes = model.Bytes(float64(rate) / 8 * cfg.EpisodeThreshold.Seconds())
		}
	}
	t.epochs = make([]epoch.PortEpoch, cfg.Epochs*(ports+1)*classes)
	t.lastArrivalEpoch = make([]uint32, ports+1)
	t.flows = make([][]flowRecord, cfg.Epochs)
	t.occupancy = newOccupancy(cfg, dev, t.queues)
	return t
}

// lane returns the index of a priority of an egress port.
func lane(out model.PortID, class model.Priority) int { return int(out)*classes + int(class&7) }

// portEpoch returns the current epoch's record of a port and priority.
func (t *telemetry) portEpoch(out model.PortID, class model.Priority) *epoch.PortEpoch {
	e := &t.epochs[(t.now.index*(t.ports+1)+int(out))*classes+int(class&7)]
	if e.Epoch != t.now.number || e.Port == 0 {
		*e = epoch.PortEpoch{Epoch: t.now.number, Port: out, Priority: class & 7}
	}
	return e
}

// hasPortEpoch reports whether anything was counted in the current epoch of a
// port.
func (t *telemetry) hasPortEpoch(out model.PortID, class model.Priority) bool {
	e := &t.epochs[(t.now.index*(t.ports+1)+int(out))*classes+int(class&7)]
	return e.Epoch == t.now.number && e.Port != 0
}

// enqueue counts a packet that is enqueued.
func (t *telemetry) enqueue(ev *inswitch.Event) {
	k, ok := t.findRecent(ev, lane(ev.Out, ev.Priority))
	if !ok || !t.now.contains(ev.Now) || ev.Now < k.queue.pausedUntil {
		t.countPacket(ev)
		return
	}
	bytes := uint64(ev.Packet.UnlabeledSize())
	k.packets++
	k.last = t.now.offset(ev.Now)
	k.bytes += bytes
	if depth := ev.Queue.Packets; depth > 0 {
		k.depth += uint64(depth)
	} else {
		k.queue.busyPeriod++
		k.queue.busySince = ev.Now
	}
	if ev.Queue.Bytes >= k.queue.episodeBytes {
		k.queue.extendEpisode(ev.Now, ev.Queue.Bytes)
	} else if k.queue.congested {
		k.queue.foundBelow(ev.Now, ev.Queue.Bytes)
	}
	if !ev.BypassesQueue {
		t.occupancy.enqueueRecent(ev, k, bytes)
	}
}

// hasPorts reports whether the switch has both ports of an event; port 0 is the
// switch itself.
func (t *telemetry) hasPorts(ev *inswitch.Event) bool {
	return int(ev.Out) <= t.ports && int(ev.In) <= t.ports
}

// countPacket counts a packet of a flow that is not recent, or whose queue is
// paused.
func (t *telemetry) countPacket(ev *inswitch.Event) {
	if !t.hasPorts(ev) {
		return
	}
	t.advanceTo(ev.Now)
	lane, bytes := lane(ev.Out, ev.Priority), uint64(ev.Packet.UnlabeledSize())
	at := hash(lane, ev.Packet.Key, t.cfg.Seed)
	q, e := &t.queues[lane], t.portEpoch(ev.Out, ev.Priority)
	paused := ev.Now < q.pausedUntil
	depth := uint64(max(ev.Queue.Packets, 0))
	if depth == 0 {
		q.busyPeriod++
		q.busySince = ev.Now
	}
	if paused {
		q.pausedPeriod = q.busyPeriod
	}
	if !ev.BypassesQueue {
		t.occupancy.enqueue(ev, at, bytes)
	}
	if q.congested && ev.Queue.Bytes < q.episodeBytes {
		q.foundBelow(ev.Now, ev.Queue.Bytes) // packets of the queue were dropped
	}
	q.joined++
	q.lastEpoch = t.now.number
	t.stats.Packets++
	e.Packets++
	if paused {
		e.Paused++
		e.PausedDepth += depth
	} else {
		e.Depth += depth
		if ev.Queue.Bytes >= q.episodeBytes {
			q.extendEpisode(ev.Now, ev.Queue.Bytes)
		}
	}
	t.lastArrivalEpoch[ev.In] = t.now.number
	if ev.In != 0 {
		m := t.meter(ev.In, ev.Out, ev.Priority)
		m.packets++
		m.bytes += bytes
	}
	if t.cfg.FlowSlots > 0 && !ev.Packet.Key.IsZero() {
		f := t.flowRecord(ev, at)
		seen := f.Packets > 0
		f.In = ev.In
		f.Last = time.Duration(t.now.offset(ev.Now))
		f.Packets++
		f.Bytes += bytes
		if paused {
			f.Paused++
			f.PausedDepth += depth
		} else {
			f.Depth += depth
		}
		if seen && !paused && ev.In != 0 && ev.Packet.KeyID != 0 {
			t.addRecent(ev, at, f)
		}
	}
}

// dequeue subtracts a packet that was queued.
func (t *telemetry) dequeue(ev *inswitch.Event) {
	k, ok := t.findRecent(ev, lane(ev.Out, ev.Priority))
	switch {
	case ok:
		t.occupancy.dequeueRecent(ev, k)
	case t.hasPorts(ev):
		t.occupancy.dequeue(ev)
	default:
		return
	}
	if q := t.queue(ev.Out, ev.Priority); q.congested && ev.Queue.Bytes < q.episodeBytes {
		q.foundBelow(ev.Now, ev.Queue.Bytes)
	}
}

// isKept reports whether an epoch is among those kept.
func (t *telemetry) isKept(number uint32) bool {
	return t.now.number-number < uint32(t.cfg.Epochs)
}

package epoch

import (
	"math"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

const classes = 8

// telemetry is what the switch counts. Everything that belongs to an epoch
// carries the epoch's number and is cleared when a packet of a later one comes
// by: no sweep, constant work for every packet.
type telemetry struct {
	known  [recents]known // first, to lie on lines of the cache
	taken  [recents / 64]uint64
	misses uint32

	cfg   Config
	ports int // highest port number
	now   clock

	queues []queue           // by port × class: state since the start
	epochs []epoch.PortEpoch // by ring index, port, class
	meters [classes][]meter  // by ring index, in, out; nil until the class is used
	came   []uint32          // by ingress port: epoch in which its last packet came
	flows  [][]record        // by ring index; nil until used
	gone   []epoch.Flow      // evicted ones, a ring once it is full
	oldest int               // of gone
	here   occupancy
	stats  *Stats
}

// at begins the epoch that an instant is in, unless it is the present one.
func (t *telemetry) at(now model.Time) {
	if !t.now.has(now) {
		t.forgetAll()
		t.now.set(now)
	}
}

func newTelemetry(cfg Config, dev *inswitch.Device, stats *Stats) *telemetry {
	ports := len(dev.Ports)
	t := &telemetry{cfg: cfg, ports: ports, stats: stats}
	t.now = clock{length: int64(cfg.Length), ring: uint32(cfg.Epochs)}
	t.queues = make([]queue, (ports+1)*classes)
	for i := range t.queues {
		t.queues[i].deep = math.MaxInt64 // of a link whose rate is not known nobody can tell
		if rate := dev.Port(model.PortID(i / classes)).Rate; rate > 0 {
			t.queues[i].deep = model.Bytes(float64(rate) / 8 * cfg.Deep.Seconds())
		}
	}
	t.epochs = make([]epoch.PortEpoch, cfg.Epochs*(ports+1)*classes)
	t.came = make([]uint32, ports+1)
	t.flows = make([][]record, cfg.Epochs)
	t.here = newOccupancy(cfg, t.queues)
	return t
}

// lane is the index of a class of an egress port.
func lane(out model.PortID, class model.Priority) int { return int(out)*classes + int(class&7) }

// portEpoch returns the present epoch of a port and class.
func (t *telemetry) portEpoch(out model.PortID, class model.Priority) *epoch.PortEpoch {
	e := &t.epochs[(t.now.index*(t.ports+1)+int(out))*classes+int(class&7)]
	if e.Epoch != t.now.number || e.Port == 0 {
		*e = epoch.PortEpoch{Epoch: t.now.number, Port: out, Priority: class & 7}
	}
	return e
}

// opened tells whether anything was counted in the present epoch of a port.
func (t *telemetry) opened(out model.PortID, class model.Priority) bool {
	e := &t.epochs[(t.now.index*(t.ports+1)+int(out))*classes+int(class&7)]
	return e.Epoch == t.now.number && e.Port != 0
}

// enqueue counts a packet that joins a queue.
func (t *telemetry) enqueue(ev *inswitch.Event) {
	k, ok := t.find(ev, lane(ev.Out, ev.Priority))
	if !ok || !t.now.has(ev.Now) || ev.Now < k.queue.pausedUntil {
		t.meet(ev)
		return
	}
	bytes := uint64(ev.Packet.Bare())
	k.packets++
	k.last = t.now.into(ev.Now)
	k.bytes += bytes
	if depth := ev.Queue.Packets; depth > 0 {
		k.depth += uint64(depth)
	} else {
		k.queue.life++
	}
	if ev.Queue.Bytes >= k.queue.deep {
		k.queue.swell(ev.Now, ev.Queue.Bytes)
	}
	if !ev.Passes {
		t.here.joinKnown(ev, k, bytes)
	}
}

// has tells whether the switch has both ports of an event, or the packet is its
// own.
func (t *telemetry) has(ev *inswitch.Event) bool {
	return int(ev.Out) <= t.ports && int(ev.In) <= t.ports
}

// meet counts a packet of a flow that is not known, or whose queue is paused.
func (t *telemetry) meet(ev *inswitch.Event) {
	if !t.has(ev) {
		return
	}
	t.at(ev.Now)
	lane, bytes := lane(ev.Out, ev.Priority), uint64(ev.Packet.Bare())
	at := hash(lane, ev.Packet.Key, t.cfg.Seed)
	q, e := &t.queues[lane], t.portEpoch(ev.Out, ev.Priority)
	paused := ev.Now < q.pausedUntil
	depth := uint64(max(ev.Queue.Packets, 0))
	if depth == 0 {
		q.life++
	}
	if !ev.Passes {
		t.here.join(ev, at, bytes)
	}
	q.joined++
	q.last = t.now.number
	t.stats.Packets++
	e.Packets++
	if paused {
		e.Paused++
		e.PausedDepth += depth
	} else {
		e.Depth += depth
		if ev.Queue.Bytes >= q.deep {
			q.swell(ev.Now, ev.Queue.Bytes)
		}
	}
	t.came[ev.In] = t.now.number
	if ev.In != 0 {
		m := t.meter(ev.In, ev.Out, ev.Priority)
		m.packets++
		m.bytes += bytes
	}
	if t.cfg.Flows > 0 && !ev.Packet.Key.IsZero() {
		f := t.flow(ev, at)
		seen := f.Packets > 0
		f.In = ev.In
		f.Last = time.Duration(t.now.into(ev.Now))
		f.Packets++
		f.Bytes += bytes
		if paused {
			f.Paused++
			f.PausedDepth += depth
		} else {
			f.Depth += depth
		}
		if seen && !paused && ev.In != 0 && ev.Packet.KeyID != 0 {
			t.learn(ev, at, f)
		}
	}
}

// dequeue counts a packet out that has waited.
func (t *telemetry) dequeue(ev *inswitch.Event) {
	if k, ok := t.find(ev, lane(ev.Out, ev.Priority)); ok {
		t.here.leaveKnown(ev, k)
	} else if t.has(ev) {
		t.here.leave(ev)
	}
}

// recent tells whether an epoch is among those kept.
func (t *telemetry) recent(number uint32) bool {
	return t.now.number-number < uint32(t.cfg.Epochs)
}

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

// queue is the state of one class of one egress port.
type queue struct {
	pausedUntil model.Time
	pauseFrames uint64
	joined      uint64      // packets that ever did
	last        uint32      // epoch in which the last one did
	life        uint32      // counts the packets that found it empty: see occupancy
	deep        model.Bytes // from which on a packet belongs to a wave

	pauses epoch.Pause // Time without the present one
	wave   epoch.Wave
	waved  uint32 // life in which that was
}

// pausedFor is the time that the queue has spent paused.
func (q *queue) pausedFor(now model.Time) time.Duration {
	if q.pauses.Pauses == 0 {
		return 0
	}
	return q.pauses.Time + max(min(now, q.pausedUntil).Sub(q.pauses.Began), 0)
}

// swell notes a packet that found the queue deep, and not paused.
func (q *queue) swell(now model.Time, found model.Bytes) {
	if q.waved != q.life || q.wave.Most == 0 {
		q.waved, q.wave = q.life, epoch.Wave{From: now}
	}
	q.wave.To, q.wave.Most = now, max(q.wave.Most, uint64(found))
}

// record is what a flow did to a queue in an epoch.
type record struct {
	epoch.Flow
	known uint16 // 1 + its place in telemetry.known, if the flow is known
}

type meter struct {
	number  uint32
	packets uint32
	bytes   uint64
}

// clock tells the epoch of an instant. Most packets fall into the same one as
// the packet before, so it costs a comparison.
type clock struct {
	length int64
	ring   uint32
	start  model.Time
	number uint32
	index  int // in rings
}

// into is how far into the present epoch an instant is, in ns, as far as that
// fits.
func (c *clock) into(t model.Time) uint32 { return uint32(min(uint64(t-c.start), math.MaxUint32)) }

// has tells whether an instant is in the present epoch.
func (c *clock) has(t model.Time) bool { return uint64(t-c.start) < uint64(c.length) }

// at begins the epoch that an instant is in, unless it is the present one.
func (t *telemetry) at(now model.Time) {
	if !t.now.has(now) {
		t.forgetAll()
		t.now.set(now)
	}
}

func (c *clock) set(t model.Time) {
	n := int64(t) / c.length
	if int64(t)%c.length < 0 {
		n--
	}
	c.start = model.Time(n * c.length)
	c.number = uint32(n)
	c.index = int(c.number % c.ring)
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

func (t *telemetry) queue(out model.PortID, class model.Priority) *queue {
	return &t.queues[lane(out, class)]
}

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

// meter returns the present epoch's meter of a pair of ports.
func (t *telemetry) meter(in, out model.PortID, class model.Priority) *meter {
	table := &t.meters[class&7]
	side := t.ports + 1
	if *table == nil {
		*table = make([]meter, t.cfg.Epochs*side*side)
	}
	m := &(*table)[(t.now.index*side+int(in))*side+int(out)]
	if m.number != t.now.number {
		*m = meter{number: t.now.number}
	}
	return m
}

// hash mixes a flow and its queue.
func hash(lane int, key *model.FlowKey, seed uint64) uint64 {
	return (key.Hash(seed) + uint64(lane)*0x9e3779b97f4a7c15) >> 32
}

// flow returns the record of the packet's flow, whose hash is at, in the present
// epoch. A flow that finds its place taken takes it over; the other waits in the
// switch's memory.
func (t *telemetry) flow(ev *inswitch.Event, at uint64) *record {
	table := t.flows[t.now.index]
	if table == nil {
		table = make([]record, t.cfg.Flows)
		t.flows[t.now.index] = table
	}
	key := ev.Packet.Key
	f := &table[at&uint64(t.cfg.Flows-1)]
	if f.known != 0 {
		t.forget(&t.known[f.known-1])
	}
	if f.Epoch == t.now.number && f.Packets > 0 {
		if f.Out == ev.Out && f.Priority == ev.Priority&7 && f.Key.Equal(key) {
			return f
		}
		t.evict(&f.Flow)
	}
	f.Flow = epoch.Flow{Epoch: t.now.number, Out: ev.Out, Priority: ev.Priority & 7, Key: *key, First: time.Duration(t.now.into(ev.Now))}
	return f
}

// evict moves a record to the switch's memory, in place of the oldest there if
// that one's epoch is not kept any more.
func (t *telemetry) evict(f *epoch.Flow) {
	t.stats.Evicted++
	if t.cfg.Evicted == 0 {
		t.stats.Lost++
		return
	}
	f.Evicted = true
	if t.rejoin(f) {
		return
	}
	if len(t.gone) < t.cfg.Evicted {
		t.gone = append(t.gone, *f)
		return
	}
	if oldest := &t.gone[t.oldest]; !t.recent(oldest.Epoch) {
		*oldest = *f
		t.oldest = (t.oldest + 1) % len(t.gone)
		return
	}
	t.stats.Lost++
}

// rejoin adds a record to one of its flow among those evicted last: two flows
// that share a place take it from each other with every packet.
func (t *telemetry) rejoin(f *epoch.Flow) bool {
	const back = 8
	last := len(t.gone)
	if last == t.cfg.Evicted {
		last = t.oldest + len(t.gone) // the newest is before the oldest, in a ring
	}
	for i := last - 1; i >= max(last-back, 0); i-- {
		g := &t.gone[i%len(t.gone)]
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

// recent tells whether an epoch is among those kept.
func (t *telemetry) recent(number uint32) bool {
	return t.now.number-number < uint32(t.cfg.Epochs)
}

// telling tells whether what a queue did in an epoch is worth a word: in the
// epochs kept, counted from now, or from its last packet if it stands still
// since, or was paused not long ago. Nothing has overwritten those, and how it
// came to stand, or others for it, is what one wants to know.
func (t *telemetry) telling(number uint32, out model.PortID, class model.Priority, now model.Time) bool {
	if t.recent(number) {
		return true
	}
	q := t.queue(out, class)
	return q.pauses.Pauses > 0 && now.Sub(q.pausedUntil) < memory && q.last-number < uint32(t.cfg.Epochs)
}

// memory is for how long a queue that nothing joins any more is worth a word
// after its pauses: those whose host waited for it complain every few
// milliseconds.
const memory = 10 * time.Millisecond

// pause notes a pause frame that a neighbour sent to a port.
func (t *telemetry) pause(ev *inswitch.Event) {
	t.at(ev.Now)
	for class := range model.Priority(classes) {
		d, ok := ev.Pause.Of(class)
		if !ok {
			continue
		}
		q := t.queue(ev.In, class)
		begins := d > 0 && (q.pauses.Pauses == 0 || ev.Now >= q.pausedUntil)
		if begins {
			p := &q.pauses
			if p.Pauses > 0 {
				p.Ended, p.Time = q.pausedUntil, q.pausedFor(ev.Now)
			}
			if p.Pauses == 0 || ev.Now.Sub(p.Ended) > epoch.Calm {
				p.First, p.Behind = ev.Now, uint64(ev.Switch.Queue(ev.In, class).Bytes)
			}
			p.Pauses++
			p.Began = ev.Now
		}
		if q.pauses.Pauses > 0 && (d > 0 || ev.Now < q.pausedUntil) {
			q.pausedUntil = ev.Now.Add(d)
		}
		if d > 0 {
			q.pauseFrames++
			// A frame that prolongs a pause opens no epoch: where nothing
			// moves, the epochs in which it stopped stay.
			if begins || t.opened(ev.In, class) {
				t.portEpoch(ev.In, class).PauseFrames++
			}
		}
	}
}

// wasPaused tells whether packets at a port waited for a neighbour in the
// epochs that are kept, or do now; or in those before the last packet came by
// another port, if that one is silent since. Where a circle stands, what made
// it stand may be over, and it is the last that its queues know of.
func (t *telemetry) wasPaused(in, out model.PortID, now model.Time) bool {
	silent := t.now.number - t.came[in]
	for class := range model.Priority(classes) {
		q := t.queue(out, class)
		if now < q.pausedUntil {
			return true
		}
		if silent > 0 && q.pauses.Pauses > 0 {
			oldest := t.now.start.Add(-time.Duration(int64(silent)+int64(t.cfg.Epochs)-1) * t.cfg.Length)
			if q.pausedUntil >= oldest && now.Sub(q.pausedUntil) < memory {
				return true
			}
		}
		for i := range t.cfg.Epochs {
			e := &t.epochs[(i*(t.ports+1)+int(out))*classes+int(class)]
			if e.Port != 0 && e.Paused > 0 && t.recent(e.Epoch) {
				return true
			}
		}
	}
	return false
}

// met tells whether traffic went from one port to another in the epochs that
// are kept, counted from the last packet that came by the first, or waits still:
// where everything stands, none goes.
func (t *telemetry) met(in, out model.PortID) bool {
	side := t.ports + 1
	for class := range t.meters {
		if t.meters[class] == nil {
			continue
		}
		if h := t.here.pair(in, out, model.Priority(class)); t.here.now(h, out, model.Priority(class)).packets > 0 {
			return true
		}
		for i := range t.cfg.Epochs {
			if m := &t.meters[class][(i*side+int(in))*side+int(out)]; m.packets > 0 && t.came[in]-m.number < uint32(t.cfg.Epochs) {
				return true
			}
		}
	}
	return false
}

package truth

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Options selects what a Recorder keeps. What is off costs a nil check. Every
// list has a bound; what exceeds it is counted in Unrecorded, and totals stay
// exact.
type Options struct {
	Flows bool // packets delivered and dropped, by flow and direction

	Paths       bool // the paths of packets
	MaxPathHops int  // hops of all distinct paths; later packets on new paths are not recorded

	Slot     time.Duration // length of a slot of per-hop counts; 0: off
	MaxSlots int           // counts of one flow, direction, port and slot; later ones are not recorded

	Drops    bool
	MaxDrops int // the first ones are kept

	Pauses    bool
	MaxPauses int // the first ones are kept

	Depths bool // maximum queue lengths

	Sample     time.Duration // between samples of all switch ports; 0: off
	MaxSamples int           // of all ports together; beyond it every two are merged into one

	Deadlock time.Duration // how long a cycle must be stuck to count; 0: off

	Conserve bool // what Conserved needs

	// Until ends sampling and deadlock detection: the end of the run. 0 never
	// ends, and the network is then never Idle.
	Until engine.Time
}

// All selects everything, with the slots of FlowRadar.
func All() Options {
	return Options{
		Flows: true, Paths: true, MaxPathHops: 1 << 20,
		Slot: 10 * time.Millisecond, MaxSlots: 1 << 20,
		Drops: true, MaxDrops: 1 << 16,
		Pauses: true, MaxPauses: 1 << 20,
		Depths: true,
		Sample: 10 * time.Microsecond, MaxSamples: 1 << 20,
		Deadlock: time.Millisecond,
		Conserve: true,
	}
}

// Check reports options that cannot work.
func (o *Options) Check() error {
	for _, b := range []struct {
		name string
		on   bool
		max  int
	}{
		{"MaxPathHops", o.Paths, o.MaxPathHops},
		{"MaxSlots", o.Slot != 0, o.MaxSlots},
		{"MaxDrops", o.Drops, o.MaxDrops},
		{"MaxPauses", o.Pauses, o.MaxPauses},
		{"MaxSamples", o.Sample != 0, o.MaxSamples},
	} {
		if b.on && (b.max < 1 || b.max > maxRecords) {
			return fmt.Errorf("truth: %s %d, want 1 to %d", b.name, b.max, maxRecords)
		}
	}
	if o.Slot < 0 || o.Sample < 0 || o.Deadlock < 0 {
		return fmt.Errorf("truth: slot %v, sample %v, deadlock %v, want none of them below 0", o.Slot, o.Sample, o.Deadlock)
	}
	return nil
}

// maxRecords keeps indexes within 32 bits.
const maxRecords = 1 << 30

// Unrecorded counts what a Recorder did not keep because a bound was reached.
type Unrecorded struct {
	Paths  int64 // packets whose path is not recorded
	Slots  int64 // packets, once per hop and side of the queue
	Drops  int64
	Pauses int64
}

const priorities = 8

// Recorder records what happens. It is a sim.Observer; a network has one.
type Recorder struct {
	sim.NopObserver // the network keeps the records of flows

	net     *sim.Network
	options Options

	base     []int32 // by node: index of its first port in Network.Ports
	fromHost []bool  // by port: the peer is a host

	flows     *flowTotals
	paths     *paths
	slots     *slots
	drops     *drops
	pauses    *pauses
	depths    *depths
	series    *sampler
	queues    *queueCounts
	deadlocks *deadlockDetector
	causes    []Cause
}

var _ sim.ParallelObserver = (*Recorder)(nil)

// Record makes a Recorder the network's observer. The run must not have
// started.
func Record(n *sim.Network, o Options) (*Recorder, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if n.Now() != 0 || n.Counts.Events != 0 {
		return nil, fmt.Errorf("truth: the run is at %v, want one that has not started", n.Now().Model())
	}
	r := &Recorder{net: n, options: o, base: make([]int32, len(n.Fabric().Nodes()))}
	r.fromHost = make([]bool, len(n.Ports()))
	for i, p := range n.Ports() {
		if p.ID == 1 {
			r.base[p.Node] = int32(i)
		}
		r.fromHost[i] = p.Peer().Host() != nil
	}
	ports := len(n.Ports())
	if o.Flows {
		r.flows = &flowTotals{other: make([]FlowTotal, len(r.base))}
	}
	if o.Paths {
		r.paths = newPaths(o.MaxPathHops)
	}
	if o.Slot > 0 {
		r.slots = &slots{length: engine.Of(o.Slot), max: o.MaxSlots}
	}
	if o.Drops {
		r.drops = &drops{max: o.MaxDrops}
	}
	if o.Depths {
		r.depths = &depths{peaks: make([]Peak, ports*priorities)}
	}
	if o.Pauses || o.Sample > 0 || o.Deadlock > 0 {
		r.pauses = newPauses(ports, o.Pauses, o.MaxPauses)
	}
	if o.Conserve || o.Deadlock > 0 {
		r.queues = &queueCounts{by: make([]queueCount, ports*priorities)}
	}
	if o.Sample > 0 {
		r.series = r.newSampler()
	}
	if o.Deadlock > 0 {
		r.deadlocks = r.newDeadlockDetector()
	}
	n.Observe(r)
	return r, nil
}

// port returns the index of a port in Network.Ports.
func (r *Recorder) port(p *sim.Port) int32 { return r.base[p.Node] + int32(p.ID) - 1 }

// ingress returns the index of a packet's ingress port at the switch of out, or
// -1 for a packet that the switch originated.
func (r *Recorder) ingress(p *sim.Packet, out *sim.Port) int32 {
	if p.Ingress() == 0 {
		return -1
	}
	return r.base[out.Node] + int32(p.Ingress()) - 1
}

// name returns a port as the rest of Weft names it.
func (r *Recorder) name(port int32) model.Port {
	p := r.net.Ports()[port]
	return model.Port{Node: p.Node, Port: p.ID}
}

// direction numbers the two directions of all flows; -1 for a packet of none.
func direction(p *sim.Packet) int32 {
	id, reverse := p.Flow()
	if id < 0 {
		return -1
	}
	return directionOf(id, reverse)
}

func directionOf(flow int, reverse bool) int32 {
	d := int32(flow) * 2
	if reverse {
		d++
	}
	return d
}

// reach extends a slice so that it has an element i. Flows may be added during
// a run.
func reach[T any](s []T, i int32) []T {
	if int(i) < len(s) {
		return s
	}
	return append(s, make([]T, int(i)+1-len(s))...)
}

// scheduleAfter schedules a call, unless the record ends before.
func (r *Recorder) scheduleAfter(d engine.Time, f func()) {
	if at := r.net.Now() + d; r.options.Until == 0 || at <= r.options.Until {
		r.net.At(at, f)
	}
}

// ObservesParallel is part of sim.ParallelObserver. Paths and slots have lists
// that all nodes share; everything else is kept by port, by flow or by node.
func (r *Recorder) ObservesParallel(flows int) bool {
	if r.flows != nil && flows > 0 {
		r.flows.by = reach(r.flows.by, directionOf(flows-1, true))
	}
	return r.paths == nil && r.slots == nil
}

// Enqueued is part of sim.Observer.
func (r *Recorder) Enqueued(now engine.Time, p *sim.Packet, out *sim.Port) {
	port := r.port(out)
	queue := port*priorities + int32(p.Priority)
	if r.queues != nil {
		r.queues.enqueued(queue, p)
	}
	if r.depths != nil {
		r.depths.enqueued(now, queue, p, out)
	}
	if r.series != nil {
		r.series.enqueued(port, p)
	}
	if r.paths != nil {
		in := r.ingress(p, out)
		relayed := p.Extra != nil && len(p.Extra.Outer) > 0 // by a mux: its path continues
		r.paths.enqueued(now, p, in, port, in >= 0 && r.fromHost[in] && !relayed)
	}
	if r.slots != nil {
		r.slots.count(now, p, port, arrived)
	}
}

// Dequeued is part of sim.Observer.
func (r *Recorder) Dequeued(now engine.Time, p *sim.Packet, out *sim.Port) {
	port := r.port(out)
	queue := port*priorities + int32(p.Priority)
	if r.queues != nil {
		r.queues.dequeued(now, queue, p)
	}
	if r.deadlocks != nil {
		r.deadlocks.queueSent(now, queue)
	}
	if r.series != nil {
		r.series.dequeued(port, p)
	}
	if r.slots != nil {
		r.slots.count(now, p, port, left)
	}
}

// Dropped is part of sim.Observer.
func (r *Recorder) Dropped(now engine.Time, p *sim.Packet, at *sim.Port, why sim.Reason) {
	if r.drops != nil {
		r.drops.dropped(now, p, at, why)
	}
	if r.flows != nil {
		r.flows.dropped(p, at.Node)
	}
	if r.paths != nil {
		r.paths.ended(p, false)
	}
	if r.queues != nil {
		r.queues.lost(p, at)
	}
}

// Delivered is part of sim.Observer.
func (r *Recorder) Delivered(now engine.Time, p *sim.Packet, to *sim.Host) {
	if r.flows != nil {
		r.flows.delivered(now, p, to.ID)
	}
	if r.paths != nil {
		r.paths.ended(p, true)
	}
}

// PauseReceived is part of sim.Observer.
func (r *Recorder) PauseReceived(_ engine.Time, at *sim.Port, prio model.Priority, stop bool) {
	port := r.port(at)
	if r.pauses != nil {
		r.pauses.received(port, prio, stop)
	}
	if r.queues != nil && r.fromHost[port] {
		r.queues.hostFrames++
	}
}

// PauseChanged is part of sim.Observer.
func (r *Recorder) PauseChanged(now engine.Time, at *sim.Port, prio model.Priority, stop bool) {
	if r.pauses != nil {
		r.pauses.changed(now, r.port(at), prio, stop)
	}
}

// Unrecorded returns what was not kept.
func (r *Recorder) Unrecorded() (l Unrecorded) {
	if r.paths != nil {
		l.Paths = r.paths.unrecorded
	}
	if r.slots != nil {
		l.Slots = r.slots.unrecorded
	}
	if r.drops != nil {
		l.Drops = r.drops.unrecorded
	}
	if r.pauses != nil {
		l.Pauses = r.pauses.unrecorded
	}
	return l
}

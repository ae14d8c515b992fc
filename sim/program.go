package sim

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo/fib"
)

// Stage is a point in a switch's pipeline where programs run.
type Stage uint8

// Stages, in the order of the pipeline.
const (
	StageIngress Stage = iota // arrived, not yet routed
	StageRouted               // egress port known
	StageEnqueue              // about to be enqueued
	StageDequeue              // about to leave; the wire sees changes made here
	StagePFC                  // a pause frame was received; the packet is that frame, and cannot be ended
	StageTimer                // a timer of the program; there is no packet
	numStages
)

// Program runs inside one switch. It sees packets at the stages it chooses and
// acts through the Context: it may change the packet, make it longer or
// shorter, drop it, send clones and new packets, and report.
type Program interface {
	// At returns what runs at a stage, or nil. Attach calls it once for each.
	At(s Stage) Runner
}

// Runner is a program at one stage or several.
type Runner interface{ Run(c *Context) }

// UnqueuedProgram is a Program that can handle a packet that is not queued in
// one call for both StageEnqueue and StageDequeue. It is called so where it is
// the switch's only program.
type UnqueuedProgram interface {
	Program
	// Unqueued returns what runs. It starts with the Context at StageEnqueue
	// and, if the packet survives, continues with Stage set to StageDequeue.
	Unqueued() Runner
}

// Context is one event as a program sees it, and how it acts on it. It is valid
// until Run returns.
type Context struct {
	Stage  Stage
	Switch *Switch
	Packet *Packet    // nil at StageTimer
	Out    *Port      // egress port; nil before it is routed
	Now    model.Time // on the switch's clock
	Timer  int        // the number passed to After, at StageTimer

	// Unchanged says that the program has seen this packet at an earlier stage
	// of the same event, and that only its TTL can have changed since.
	Unchanged bool
	// Unqueued says, at StageEnqueue and StageDequeue, that the packet leaves
	// at once: its queue is empty and the port is idle.
	Unqueued bool

	Pause struct { // at StagePFC
		Priority model.Priority
		Time     time.Duration // 0: resume
	}

	at    engine.Time // simulated time when Now was read
	ended ending
}

// ending is how a program has ended a packet.
type ending uint8

const (
	going ending = iota
	dropped
	consumed
)

// In returns the ingress port; nil for packets that the switch originates.
func (c *Context) In() *Port {
	if c.Packet == nil || c.Packet.ingress == 0 {
		return nil
	}
	return c.Switch.ports[c.Packet.ingress-1]
}

// Drop drops the packet. Programs after this one do not see it.
func (c *Context) Drop() { c.ended = dropped }

// Consume ends the packet at the program's host: it is neither forwarded nor
// counted as dropped. A poll that ends at the switch is consumed.
func (c *Context) Consume() { c.ended = consumed }

// Resize makes the packet longer or shorter, as a label does.
func (c *Context) Resize(delta int32) { c.Packet.Size += delta }

// Clone returns a deep copy of the packet. It must be sent with Send.
func (c *Context) Clone() *Packet {
	pool := &c.Switch.w.pool
	p := pool.get()
	*p = *c.Packet
	p.next, p.Extra = nil, nil
	if from := c.Packet.Extra; from != nil {
		to := pool.extra(p)
		to.EtherType = from.EtherType
		to.Outer = append(to.Outer, from.Outer...)
		to.inner = append(to.inner, from.inner...)
		to.Labels = append(to.Labels, from.Labels...)
		to.Content = append(to.Content, from.Content...)
		to.TCPAcked, to.INT = from.TCPAcked, from.INT
	}
	return p
}

// Truncate cuts a clone to its first bytes, as a mirror does. The rest is of no
// use to its transport: the packet no longer belongs to its flow.
func (c *Context) Truncate(p *Packet, size int32) {
	if cut := p.Size - size; cut > 0 {
		p.Size, p.Payload, p.flow = size, max(0, p.Payload-cut), noFlow
	}
}

// Extra returns the Extra of a packet, an empty one from the pool if it had
// none.
func (c *Context) Extra(p *Packet) *Extra { return c.Switch.w.pool.extra(p) }

// NewPacket returns an empty packet that the switch originates. It must be sent
// with Send.
func (c *Context) NewPacket() *Packet { return c.Switch.w.pool.get() }

// Send queues a packet of the program at a port once the current event is over:
// the port may be about to send. Programs see it at StageDequeue only, so that
// no program sees its own clones at once. It is charged to the buffer as a
// packet of the switch, for which no sender is paused.
func (c *Context) Send(p *Packet, out *Port) { c.Switch.Send(p, out) }

// After runs a program again at StageTimer when the switch's clock has advanced
// by d.
func (c *Context) After(program Runner, d time.Duration, number int) {
	sw := c.Switch
	at := sw.node.clock.when(c.Now.Add(d))
	sw.node.addTimer(timer{at: max(at, sw.w.now), kind: runFunc, run: sw.newWakeup(program, number)})
}

// wakeup is a program's timer. It is reused when it has fired, so that timers
// allocate nothing in steady state.
type wakeup struct {
	program Runner
	number  int
	run     func()
}

// newWakeup returns a function that runs a program.
func (sw *Switch) newWakeup(program Runner, number int) (run func()) {
	ps := &sw.programs
	var w *wakeup
	if last := len(ps.idle) - 1; last >= 0 {
		w, ps.idle = ps.idle[last], ps.idle[:last]
	} else {
		w = &wakeup{}
		w.run = func() {
			program, number := w.program, w.number
			ps.idle = append(ps.idle, w)
			sw.runTimer(program, number)
		}
	}
	w.program, w.number = program, number
	return w.run
}

// when returns the simulated time at which the clock shows t, in whole
// nanoseconds.
func (c Clock) when(t model.Time) engine.Time {
	run := t.Add(-c.Offset)
	if c.Drift != 0 {
		run = model.Time(float64(run) / (1 + c.Drift))
		for c.At(timeOf(run)) < t {
			run++
		}
	}
	return timeOf(run)
}

// programs holds a switch's programs by stage, and the packets they have sent.
type programs struct {
	at       [numStages]Runner // nil where there is none
	unqueued Runner            // for packets that are not queued; nil: the stages run one by one
	attached int
	single   bool // one is attached: no other changes what it has seen

	// ctx serves every event: no event happens inside another's Run.
	ctx Context

	outbox, leaving []outgoing
	flush           func()
	idle            []*wakeup
}

// outgoing is a packet of a program that is not queued yet.
type outgoing struct {
	p   *Packet
	out *Port
}

// chain is several programs at one stage, in the order they were attached.
type chain []Runner

func (ch chain) Run(c *Context) {
	for _, prog := range ch {
		prog.Run(c)
		if c.ended != going && c.Stage != StagePFC {
			return
		}
	}
}

func (ps *programs) any(s Stage) bool { return ps.at[s] != nil }

// startPrograms prepares the Context for a packet that programs have not seen
// in this event.
func (sw *Switch) startPrograms(p *Packet) {
	c := &sw.programs.ctx
	c.Packet, c.Unchanged, c.Unqueued = p, false, false
	if now := sw.w.now; c.at != now {
		c.at, c.Now = now, sw.Clock()
	}
}

// runStage runs the programs of a stage, of which there must be some. The
// caller then calls survives: both are part of the cost of every packet, and
// small enough to be inlined only as two functions.
func (ps *programs) runStage(s Stage, out *Port) {
	c := &ps.ctx
	c.Stage, c.Out = s, out
	ps.at[s].Run(c)
	c.Unchanged = ps.single
}

// survives reports whether the programs that were just run let the packet
// continue.
func (ps *programs) survives() bool { return ps.ctx.ended == going || ps.endPacket() }

// runDequeue runs the programs at StageDequeue, if there are any, for a packet
// that was queued, and reports whether it survives.
func (sw *Switch) runDequeue(p *Packet, out *Port) bool {
	if !sw.programs.any(StageDequeue) {
		return true
	}
	sw.startPrograms(p)
	sw.programs.runStage(StageDequeue, out)
	return sw.programs.survives()
}

// endPacket ends the packet as a program decided. A pause frame cannot be
// ended.
//
//go:noinline
func (ps *programs) endPacket() bool {
	c := &ps.ctx
	how, n, w := c.ended, c.Switch.net, c.Switch.w
	c.ended = going
	switch {
	case c.Stage == StagePFC:
		return true
	case how == consumed:
		w.counts.Consumed++
		w.pool.put(c.Packet)
	case c.Out != nil:
		n.drop(c.Packet, c.Out, DropProgram)
	default:
		n.drop(c.Packet, c.In(), DropProgram)
	}
	return false
}

// noteEnqueue sets when, and after how many bytes, a packet is queued at out.
func (p *Packet) noteEnqueue(out *Port) {
	q := uint8(p.Priority)
	if p.Control {
		q = controlQueue
	}
	p.EnqueuedAt, p.BytesAhead = out.w.now, int32(out.queues[q].bytes)
}

// Attach adds a program after those the switch has.
func (sw *Switch) Attach(p Program) {
	ps := &sw.programs
	ps.ctx.Switch, ps.ctx.at = sw, -1
	for s := range numStages {
		run, there := p.At(s), ps.at[s]
		switch list, several := there.(chain); {
		case run == nil:
		case there == nil:
			ps.at[s] = run
		case several:
			ps.at[s] = append(list, run)
		default:
			ps.at[s] = chain{there, run}
		}
	}
	if !isNodeLocal(p) {
		sw.net.pin(sw.node)
	}
	ps.attached++
	ps.single = ps.attached == 1
	ps.unqueued = nil
	if t, ok := p.(UnqueuedProgram); ok && ps.single && ps.any(StageEnqueue) && ps.any(StageDequeue) {
		ps.unqueued = t.Unqueued()
	}
	sw.updateSlowPath()
}

// Start runs a program once at StageTimer, so that it can set timers.
func (sw *Switch) Start(p Runner, number int) { sw.runTimer(p, number) }

func (sw *Switch) runTimer(p Runner, number int) {
	c := &sw.programs.ctx
	c.Stage, c.Switch, c.Packet, c.Out, c.Timer = StageTimer, sw, nil, nil, number
	c.at, c.Now = sw.w.now, sw.Clock()
	p.Run(c)
	c.ended = going
}

// NewPacket returns an empty packet that the switch originates. It must be sent
// with Send.
func (sw *Switch) NewPacket() *Packet { return sw.w.pool.get() }

// Extra is Context's, for a packet that is sent outside of any event.
func (sw *Switch) Extra(p *Packet) *Extra { return sw.w.pool.extra(p) }

// Send is Context's, outside of any event.
func (sw *Switch) Send(p *Packet, out *Port) {
	ps := &sw.programs
	p.ingress = 0
	p.hop = uint8(len(p.path)) // it need not be on its flow's path
	if ps.flush == nil {
		ps.flush = sw.sendOutbox
	}
	if len(ps.outbox) == 0 {
		sw.node.addTimer(timer{at: sw.w.now, kind: runFunc, run: ps.flush})
	}
	ps.outbox = append(ps.outbox, outgoing{p, out})
}

func (sw *Switch) sendOutbox() {
	ps := &sw.programs
	ps.outbox, ps.leaving = ps.leaving[:0], ps.outbox
	for _, o := range ps.leaving {
		sw.inject(o.out, o.p)
	}
}

// NextHop returns the port by which packets of a flow leave the switch now,
// faults included. False means that they do not: they are for the switch, or
// dropped.
func (sw *Switch) NextHop(key model.FlowKey) (*Port, bool) {
	out, verdict := sw.table.Lookup(key)
	if len(sw.misrouted) > 0 {
		if wrong, hit := sw.misrouted.match(key); hit {
			out, verdict = wrong, fib.Forward
		}
	}
	if verdict != fib.Forward || out == 0 {
		return nil, false
	}
	return sw.ports[out-1], true
}

// inject queues a packet that the switch originates.
func (sw *Switch) inject(out *Port, p *Packet) {
	sw.w.counts.Originated++
	p.noteEnqueue(out)
	if p.Control {
		out.enqueue(p)
		return
	}
	if sw.admit(out, p) {
		out.enqueue(p)
	}
}

// Ports returns the switch's ports; port 1 is the first.
func (sw *Switch) Ports() []*Port { return sw.ports }

// NewPacket returns an empty packet that the host originates. It must be sent
// with Send.
func (h *Host) NewPacket() *Packet { return h.w.pool.get() }

// Extra is Context's, for a packet that the host originates.
func (h *Host) Extra(p *Packet) *Extra { return h.w.pool.extra(p) }

// Send queues a packet that the host originates, such as a poll or a probe, at
// one of its ports. It precedes the packets of flows.
func (h *Host) Send(p *Packet, out *Port) { out.enqueue(p) }

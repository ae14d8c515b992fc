package sim

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo/fib"
)

// Stage is a place in a switch where programs run.
type Stage uint8

// Stages, in the order a packet meets them.
const (
	StageIngress Stage = iota // arrived, not yet routed
	StageRouted               // egress port known
	StageEnqueue              // about to join its queue
	StageDequeue              // about to leave; what is changed here is what the wire sees
	StagePFC                  // a pause frame was received; the packet is that frame, and cannot be ended
	StageTimer                // a time the program asked for; there is no packet
	numStages
)

// Program runs inside one switch. It sees packets at the stages it chooses and
// acts through the Context: it may change the packet, make it longer or
// shorter, drop it, send copies and packets of its own, and report.
type Program interface {
	// At returns what is to run at a stage, or nil. Attach asks once for each.
	At(s Stage) Runner
}

// Runner is a program at a stage, or at all that it chooses.
type Runner interface{ Run(c *Context) }

// UnqueuedProgram is a Program that can be shown a packet that passes once for both
// StageEnqueue and StageDequeue. Where it is the switch's only program, it is.
type UnqueuedProgram interface {
	Program
	// Unqueued returns what is to run. It begins with the Context at StageEnqueue
	// and, if the packet goes on, does the rest with Stage set to StageDequeue.
	Unqueued() Runner
}

// Context is what a program sees of one event and how it acts on it. It is
// valid until Run returns.
type Context struct {
	Stage  Stage
	Switch *Switch
	Packet *Packet    // nil at StageTimer
	Out    *Port      // where it goes; nil before it is routed
	Now    model.Time // of the switch's own clock
	Timer  int        // the number given to After, at StageTimer

	// Unchanged says that the program was shown this packet a moment ago, at an
	// earlier stage, and that only its TTL can have changed since.
	Unchanged bool
	// Unqueued says, at StageEnqueue and StageDequeue, that the packet leaves at
	// once: its queue is empty and it does not wait.
	Unqueued bool

	Pause struct { // at StagePFC
		Priority model.Priority
		Time     time.Duration // 0: resume
	}

	at    engine.Time // of the run, when Now was read
	ended ending
}

// ending says how a program has ended a packet.
type ending uint8

const (
	going ending = iota
	dropped
	consumed
)

// In is where the packet came in; nil for what the switch itself sends.
func (c *Context) In() *Port {
	if c.Packet == nil || c.Packet.ingress == 0 {
		return nil
	}
	return c.Switch.ports[c.Packet.ingress-1]
}

// Drop ends the packet here. Programs after this one do not see it.
func (c *Context) Drop() { c.ended = dropped }

// Consume hands the packet to the program's host: it is neither sent on nor
// counted as lost. A poll that ends at the switch is taken.
func (c *Context) Consume() { c.ended = consumed }

// Resize makes the packet longer or shorter, as a label does.
func (c *Context) Resize(delta int32) { c.Packet.Size += delta }

// Clone returns a copy of the packet, with memory of its own. It must be sent
// with Send.
func (c *Context) Clone() *Packet {
	pool := &c.Switch.net.pool
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

// Truncate cuts a clone to its first bytes, as a mirror does. What is cut is of
// no use to the transport it was for: the packet no longer belongs to its flow.
func (c *Context) Truncate(p *Packet, size int32) {
	if cut := p.Size - size; cut > 0 {
		p.Size, p.Payload, p.flow = size, max(0, p.Payload-cut), noFlow
	}
}

// Extra returns what few packets have, for a packet of any kind; where there
// is none yet, it makes one, empty and pooled.
func (c *Context) Extra(p *Packet) *Extra { return c.Switch.net.pool.extra(p) }

// NewPacket returns an empty packet of the switch's own. It must be sent with
// Send.
func (c *Context) NewPacket() *Packet { return c.Switch.net.pool.get() }

// Send puts a packet of the program's own into a port's queue, as soon as what
// happens now is over: the port may be about to send. Programs see it at
// StageDequeue only, so that no program meets its own clones at once. It takes
// room as a packet of the switch's own, which pauses nobody.
func (c *Context) Send(p *Packet, out *Port) { c.Switch.Send(p, out) }

// After runs a program again at StageTimer when the switch's clock has gone on
// by d.
func (c *Context) After(program Runner, d time.Duration, number int) {
	n, sw := c.Switch.net, c.Switch
	at := sw.node.clock.when(c.Now.Add(d))
	sw.node.addTimer(n, timer{at: max(at, n.now), kind: runFunc, run: sw.newWakeup(program, number)})
}

// wakeup is a program's timer. It goes back to the switch's idle ones when it
// fires, so that timers allocate nothing in the long run.
type wakeup struct {
	program Runner
	number  int
	run     func()
}

// newWakeup returns what wakes a program.
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

// when is the time of the run at which the clock has come to t, in whole
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

// programs holds a switch's programs by stage, and what they have sent.
type programs struct {
	at       [numStages]Runner // nil where there is none
	unqueued  Runner            // for packets that pass; nil: they are shown stage by stage
	attached int
	single    bool // one is attached: nobody else changes what it was shown

	// ctx serves every event: no event happens inside another's Run.
	ctx Context

	outbox, leaving []outgoing
	flush           func()
	idle            []*wakeup
}

// outgoing is a packet of a program's on its way to a queue.
type outgoing struct {
	p   *Packet
	out *Port
}

// chain is several programs at one stage, in the order in which they came.
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

// startPrograms prepares to show programs a packet that they were not just shown.
func (sw *Switch) startPrograms(p *Packet) {
	c := &sw.programs.ctx
	c.Packet, c.Unchanged, c.Unqueued = p, false, false
	if now := sw.net.now; c.at != now {
		c.at, c.Now = now, sw.Clock()
	}
}

// runStage shows the packet to the programs of a stage, of which there must be some.
// Whether it goes on is for the caller to ask: both are part of what every packet
// costs, and short enough to be inlined only apart.
func (ps *programs) runStage(s Stage, out *Port) {
	c := &ps.ctx
	c.Stage, c.Out = s, out
	ps.at[s].Run(c)
	c.Unchanged = ps.single
}

// survives tells whether the programs that were just run let the packet go on.
func (ps *programs) survives() bool { return ps.ctx.ended == going || ps.endPacket() }

// runDequeue shows a packet that has waited to the programs at StageDequeue, if
// there are any, and tells whether it goes on.
func (sw *Switch) runDequeue(p *Packet, out *Port) bool {
	if !sw.programs.any(StageDequeue) {
		return true
	}
	sw.startPrograms(p)
	sw.programs.runStage(StageDequeue, out)
	return sw.programs.survives()
}

// endPacket ends the packet as a program wants it. A pause frame cannot be ended.
//
//go:noinline
func (ps *programs) endPacket() bool {
	c := &ps.ctx
	how, n := c.ended, c.Switch.net
	c.ended = going
	switch {
	case c.Stage == StagePFC:
		return true
	case how == consumed:
		n.Counts.Consumed++
		n.pool.put(c.Packet)
	case c.Out != nil:
		n.drop(c.Packet, c.Out, DropProgram)
	default:
		n.drop(c.Packet, c.In(), DropProgram)
	}
	return false
}

// noteEnqueue notes when, and behind how much, a packet joins its queue at out.
func (p *Packet) noteEnqueue(out *Port) {
	q := uint8(p.Priority)
	if p.Control {
		q = controlQueue
	}
	p.EnqueuedAt, p.BytesAhead = out.net.now, int32(out.queues[q].bytes)
}

// Attach adds a program behind those the switch has.
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
	ps.attached++
	ps.single = ps.attached == 1
	ps.unqueued = nil
	if t, ok := p.(UnqueuedProgram); ok && ps.single && ps.any(StageEnqueue) && ps.any(StageDequeue) {
		ps.unqueued = t.Unqueued()
	}
	sw.updateSlowPath()
}

// Start runs a program once at StageTimer, so that it can ask for more.
func (sw *Switch) Start(p Runner, number int) { sw.runTimer(p, number) }

func (sw *Switch) runTimer(p Runner, number int) {
	c := &sw.programs.ctx
	c.Stage, c.Switch, c.Packet, c.Out, c.Timer = StageTimer, sw, nil, nil, number
	c.at, c.Now = sw.net.now, sw.Clock()
	p.Run(c)
	c.ended = going
}

// NewPacket returns an empty packet of the switch's own. It must be sent with
// Send.
func (sw *Switch) NewPacket() *Packet { return sw.net.pool.get() }

// Extra is Context's, for a packet that is sent outside of any event.
func (sw *Switch) Extra(p *Packet) *Extra { return sw.net.pool.extra(p) }

// Send is Context's, outside of any event.
func (sw *Switch) Send(p *Packet, out *Port) {
	n, ps := sw.net, &sw.programs
	p.ingress = 0
	p.hop = uint8(len(p.path)) // it need not be on its flow's way
	if ps.flush == nil {
		ps.flush = sw.sendOutbox
	}
	if len(ps.outbox) == 0 {
		sw.node.addTimer(n, timer{at: n.now, kind: runFunc, run: ps.flush})
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

// NextHop is the port by which packets of a flow leave the switch now, faults
// included. False means that they do not: they are for the switch, or lost.
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

// inject queues a packet that did not come from a wire.
func (sw *Switch) inject(out *Port, p *Packet) {
	sw.net.Counts.Originated++
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

// NewPacket returns an empty packet of the host's own. It must be sent with
// Send.
func (h *Host) NewPacket() *Packet { return h.net.pool.get() }

// Extra is Context's, for a packet of the host's own.
func (h *Host) Extra(p *Packet) *Extra { return h.net.pool.extra(p) }

// Send puts a packet of the host's own, such as a poll or a probe, into the
// queue of one of its ports. It goes before what flows have to send.
func (h *Host) Send(p *Packet, out *Port) { out.enqueue(p) }

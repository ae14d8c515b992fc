package simhost

import (
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/wire/pfc"
)

// One type per stage: the code that packets pass has no branch on the stage.
type (
	atIngress Switch
	atRouted  Switch
	atEnqueue Switch
	atDequeue Switch
	atBypass  Switch
	atPFC     Switch
	atTimer   Switch
)

// At returns the runner of a stage, or nil if no program observes it. The
// simulator calls it.
func (s *Switch) At(stage sim.Stage) sim.Runner {
	if !s.pipeline.Stages().Has(inswitch.Stage(stage)) { // both packages number them the same
		return nil
	}
	switch stage {
	case sim.StageIngress:
		return (*atIngress)(s)
	case sim.StageRouted:
		return (*atRouted)(s)
	case sim.StageEnqueue:
		return (*atEnqueue)(s)
	case sim.StageDequeue:
		return (*atDequeue)(s)
	case sim.StagePFC:
		return (*atPFC)(s)
	default:
		return (*atTimer)(s)
	}
}

// Unqueued returns the runner for a packet that bypasses the queue, at Enqueue
// and Dequeue. The simulator calls it.
func (s *Switch) Unqueued() sim.Runner { return (*atBypass)(s) }

// firstSteps are the pipeline's first steps by stage.
type firstSteps struct{ ingress, strange, routed, enqueue, dequeue, passing, pfc *inswitch.Step }

func firstOf(pl *inswitch.Pipeline) firstSteps {
	return firstSteps{
		ingress: pl.FirstStep(inswitch.Ingress), strange: pl.FirstNonIPStep(), routed: pl.FirstStep(inswitch.Routed),
		enqueue: pl.FirstStep(inswitch.Enqueue), dequeue: pl.FirstStep(inswitch.Dequeue), passing: pl.FirstBypassStep(),
		pfc: pl.FirstStep(inswitch.PFC),
	}
}

func (a *atIngress) Run(c *sim.Context) {
	s := (*Switch)(a)
	s.loadPacket(c)
	ev := &s.event
	ev.Stage, ev.Out = inswitch.Ingress, 0
	at := s.first.ingress
	if !s.packet.IsIP() {
		at = s.first.strange
	}
	if v := at.Run(ev, &s.act, s); v != inswitch.Pass {
		applyVerdict(c, v)
	}
}

func (a *atRouted) Run(c *sim.Context) {
	s := (*Switch)(a)
	if !s.reloadTTL(c) {
		s.loadPacket(c)
	}
	ev := &s.event
	ev.Stage, ev.Out = inswitch.Routed, c.Out.ID
	if v := s.first.routed.Run(ev, &s.act, s); v != inswitch.Pass {
		applyVerdict(c, v)
	}
}

func (a *atEnqueue) Run(c *sim.Context) {
	s := (*Switch)(a)
	if !s.reloadTTL(c) {
		s.loadPacket(c)
	}
	ev := &s.event
	ev.Stage, ev.Out, ev.BypassesQueue = inswitch.Enqueue, c.Out.ID, c.Unqueued
	ev.Queue = queueOf(c.Out, ev.Priority, ev.Control)
	if v := s.first.enqueue.Run(ev, &s.act, s); v != inswitch.Pass {
		applyVerdict(c, v)
	}
}

func (a *atDequeue) Run(c *sim.Context) {
	s := (*Switch)(a)
	if !s.reloadTTL(c) {
		s.loadPacket(c)
	}
	ev := &s.event
	ev.Stage, ev.Out, ev.BypassesQueue = inswitch.Dequeue, c.Out.ID, c.Unqueued
	ev.Queue = queueOf(c.Out, ev.Priority, ev.Control)
	ev.Latency = (s.sw.Now() - c.Packet.EnqueuedAt).Duration() // clock drift is negligible over this time
	ev.DepthAtEnqueue = model.Bytes(c.Packet.BytesAhead)
	at := s.first.dequeue
	if c.Unqueued {
		at = s.first.passing
	}
	if v := at.Run(ev, &s.act, s); v != inswitch.Pass {
		applyVerdict(c, v)
	}
}

// Run does atEnqueue and atDequeue for a packet that bypasses the queue.
func (a *atBypass) Run(c *sim.Context) {
	s := (*Switch)(a)
	if !s.reloadTTL(c) {
		s.loadPacket(c)
	}
	ev := &s.event
	ev.Stage, ev.Out, ev.BypassesQueue = inswitch.Enqueue, c.Out.ID, true
	ev.Queue, ev.Latency, ev.DepthAtEnqueue = inswitch.Queue{}, 0, 0
	if v := s.first.enqueue.Run(ev, &s.act, s); v != inswitch.Pass {
		applyVerdict(c, v)
		return
	}
	c.Stage, ev.Stage = sim.StageDequeue, inswitch.Dequeue
	if v := s.first.passing.Run(ev, &s.act, s); v != inswitch.Pass {
		applyVerdict(c, v)
	}
}

func (a *atPFC) Run(c *sim.Context) {
	s := (*Switch)(a)
	s.loadPacket(c)
	ev := &s.event
	ev.Stage, ev.Out, ev.Packet.EtherType = inswitch.PFC, 0, pfc.EtherType
	ev.Pause.Classes = 1 << c.Pause.Priority
	ev.Pause.Time[c.Pause.Priority] = c.Pause.Time
	s.first.pfc.Run(ev, &s.act, s)
}

// Run passes a timer to the program that set it.
func (a *atTimer) Run(c *sim.Context) {
	s := (*Switch)(a)
	s.ctx = c
	if c.Timer == lingerTimer {
		s.onLinger(c.Now)
		return
	}
	s.timer.Now, s.timer.Timer = c.Now, inswitch.TimerID(uint32(c.Timer))
	s.pipeline.RunTimer(c.Timer>>32, &s.timer, s)
}

// timerOf packs a program's number and its timer into one number for the
// simulator.
func timerOf(program int, id inswitch.TimerID) int { return program<<32 | int(id) }

// loadPacket fills in the event's fields that are set at every stage.
func (s *Switch) loadPacket(c *sim.Context) {
	p, ev := c.Packet, &s.event
	if s.ctx != c {
		s.ctx = c
	}
	ev.Now, ev.Priority, ev.Control, ev.In = c.Now, p.Priority, p.Control, p.Ingress()
	s.fillView(p)
}

// reloadTTL updates the view of a packet that the last stage has loaded: only
// its TTL can differ. It returns false if the packet must be loaded anew.
func (s *Switch) reloadTTL(c *sim.Context) bool {
	p := c.Packet
	if !c.Unchanged || p.Extra != nil {
		return false
	}
	s.packet.TTL, s.packet.InnerTTL = p.TTL, p.TTL
	return true
}

// applyVerdict carries out a verdict other than Pass.
//
//go:noinline
func applyVerdict(c *sim.Context, v inswitch.Verdict) {
	if v == inswitch.Drop {
		c.Drop()
	} else {
		c.Consume()
	}
}

func queueOf(p *sim.Port, class model.Priority, control bool) inswitch.Queue {
	if control {
		bytes, packets := p.ControlQueue()
		return inswitch.Queue{Bytes: model.Bytes(bytes), Packets: packets}
	}
	return inswitch.Queue{
		Bytes: model.Bytes(p.QueueBytes(class)), Packets: p.QueuePackets(class), Paused: p.Paused(class),
	}
}

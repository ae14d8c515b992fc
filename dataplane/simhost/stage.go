package simhost

import (
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/wire/pfc"
)

// A type for the host at each stage: what packets meet has no branch that the
// stage decides.
type (
	atIngress Switch
	atRouted  Switch
	atEnqueue Switch
	atDequeue Switch
	atPFC     Switch
	atTimer   Switch
)

// At is what runs at a stage where some program looks. The simulator asks it.
func (s *Switch) At(stage sim.Stage) sim.Runner {
	if !s.pipeline.Stages().Has(inswitch.Stage(stage)) { // both packages count them alike
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

func (a *atIngress) Run(c *sim.Context) {
	s := (*Switch)(a)
	s.meet(c)
	s.event.Stage, s.event.Out = inswitch.Ingress, 0
	s.run(c)
}

func (a *atRouted) Run(c *sim.Context) {
	s := (*Switch)(a)
	s.meet(c)
	s.event.Stage, s.event.Out = inswitch.Routed, c.Out.ID
	s.run(c)
}

func (a *atEnqueue) Run(c *sim.Context) {
	s := (*Switch)(a)
	s.meet(c)
	ev := &s.event
	ev.Stage, ev.Out, ev.Passes = inswitch.Enqueue, c.Out.ID, c.Passes
	if c.Passes {
		ev.Queue = inswitch.Queue{}
	} else {
		ev.Queue = queueOf(c.Out, ev.Priority, ev.Control)
	}
	s.run(c)
}

func (a *atDequeue) Run(c *sim.Context) {
	s := (*Switch)(a)
	s.meet(c)
	ev := &s.event
	ev.Stage, ev.Out, ev.Passes = inswitch.Dequeue, c.Out.ID, c.Passes
	if c.Passes {
		ev.Queue, ev.Wait, ev.Ahead = inswitch.Queue{}, 0, 0
	} else {
		ev.Queue = queueOf(c.Out, ev.Priority, ev.Control)
		ev.Wait = (s.net.Now() - c.Packet.Joined).Duration() // no drift shows in so short a time
		ev.Ahead = model.Bytes(c.Packet.Ahead)
	}
	s.run(c)
}

func (a *atPFC) Run(c *sim.Context) {
	s := (*Switch)(a)
	s.meet(c)
	ev := &s.event
	ev.Stage, ev.Out, ev.Packet.EtherType = inswitch.PFC, 0, pfc.EtherType
	ev.Pause.Classes = 1 << c.Pause.Priority
	ev.Pause.Time[c.Pause.Priority] = c.Pause.Time
	s.run(c)
}

// Run shows a timer to the program that asked for it.
func (a *atTimer) Run(c *sim.Context) {
	s := (*Switch)(a)
	s.ctx = c
	if c.Timer == lingered {
		s.expire(c.Now)
		return
	}
	s.timer.Now, s.timer.Timer = c.Now, inswitch.TimerID(uint32(c.Timer))
	s.pipeline.Wake(c.Timer>>32, &s.timer, s)
}

// timerOf packs a program's number and its timer into one number of the
// simulator's.
func timerOf(program int, id inswitch.TimerID) int { return program<<32 | int(id) }

// meet fills in what the event says of a packet at every stage. Of one that was
// just shown, only the TTL can be another.
func (s *Switch) meet(c *sim.Context) {
	p := c.Packet
	if c.Same && p.Extra == nil {
		s.packet.TTL, s.packet.InnerTTL = p.TTL, p.TTL
		return
	}
	s.ctx = c
	ev := &s.event
	ev.Now, ev.Priority, ev.Control, ev.In = c.Now, p.Priority, p.Control, p.Ingress()
	s.show(p)
}

// run shows the event to the programs.
func (s *Switch) run(c *sim.Context) {
	if v := s.pipeline.Run(&s.event, s); v == inswitch.Drop {
		c.Drop()
	} else if v == inswitch.Taken {
		c.Take()
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

package epoch

import (
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Program is the telemetry of one switch and its answers to polls.
type Program struct {
	cfg           Config
	dev           inswitch.Device
	tel           *telemetry
	ownsTelemetry bool // tel is its own
	pollHistory   pollHistory
	cpu           switchCPU
	stats         Stats

	frame []byte         // of the poll at hand
	out   []byte         // its copies
	ports []model.PortID // that get one
}

// New makes the program of a switch.
func New(cfg Config, dev inswitch.Device) (*Program, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	p := &Program{cfg: cfg, dev: dev, ownsTelemetry: true}
	p.tel = newTelemetry(cfg, &dev, &p.stats)
	return p, nil
}

// ShareTelemetry makes a program that answers polls from the telemetry of this one, with
// a processor and a memory of polls of its own. A laboratory compares hosts that
// complain by different rules this way: what one asks does not change what
// another is told.
func (p *Program) ShareTelemetry() *Program { return &Program{cfg: p.cfg, dev: p.dev, tel: p.tel} }

// RequestSnapshot has the switch CPU read the telemetry for a complaint, as a poll
// does, for those who reach it by another way. Only times and the switch of the
// event are read.
func (p *Program) RequestSnapshot(ev *inswitch.Event, act *inswitch.Actions, who poll.Event) {
	p.tel.advanceTo(ev.Now)
	p.cpu.requestSnapshot(p, ev, act, who)
}

// Stages are Ingress for polls, which are not IP, Enqueue and, for what waits,
// Dequeue to count, PFC for the neighbours' pauses, and Timer for the switch's
// switchCPU. One that shares another's telemetry does not count.
func (p *Program) Stages() inswitch.Stages {
	if !p.ownsTelemetry {
		return inswitch.StageSet(inswitch.Timer) | inswitch.NonIPIngress
	}
	return inswitch.StageSet(inswitch.Enqueue, inswitch.PFC, inswitch.Timer) | inswitch.QueuedDequeue | inswitch.NonIPIngress
}

// Stats returns the current counters.
func (p *Program) Stats() Stats {
	p.tel.flushAllCounts()
	return p.stats
}

// Observe counts packets and pauses, and takes polls out of the traffic.
func (p *Program) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	// Nothing that never waits for a pause is counted: control packets have a
	// queue of their own.
	if ev.Stage == inswitch.Enqueue {
		if !ev.Control {
			p.tel.enqueue(ev)
		}
		return
	}
	switch ev.Stage {
	case inswitch.Dequeue:
		if !ev.Control {
			p.tel.dequeue(ev)
		}
	case inswitch.Ingress:
		if ev.Packet.EtherType == poll.EtherType {
			p.handlePoll(ev, act)
		}
	case inswitch.PFC:
		if int(ev.In) <= p.tel.ports {
			p.tel.onPause(ev)
		}
	case inswitch.Timer:
		p.cpu.sendReady(p, ev, act)
	}
}

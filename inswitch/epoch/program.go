package epoch

import (
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Program keeps the telemetry of one switch and answers polls.
type Program struct {
	cfg           Config
	dev           inswitch.Device
	tel           *telemetry
	ownsTelemetry bool // not shared from another program
	pollHistory   pollHistory
	cpu           switchCPU
	stats         Stats

	frame []byte         // of the current poll
	out   []byte         // copies of the poll
	ports []model.PortID // that get a copy
}

// New returns the program of a switch.
func New(cfg Config, dev inswitch.Device) (*Program, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	p := &Program{cfg: cfg, dev: dev, ownsTelemetry: true}
	p.tel = newTelemetry(cfg, &dev, &p.stats)
	return p, nil
}

// ShareTelemetry returns a program that answers polls from the telemetry of
// this one, with its own switch CPU and poll history. Experiments use it to
// compare detection rules of hosts: the polls of one do not change the answers
// to another.
func (p *Program) ShareTelemetry() *Program { return &Program{cfg: p.cfg, dev: p.dev, tel: p.tel} }

// RequestSnapshot freezes a snapshot for a diagnosis request, as a poll does,
// for requests that arrive by other means. Only the times and the switch of the
// event are read.
func (p *Program) RequestSnapshot(ev *inswitch.Event, act *inswitch.Actions, who poll.Event) {
	p.tel.advanceTo(ev.Now)
	p.cpu.requestSnapshot(p, ev, act, who, false)
}

// Stages returns Ingress for polls, which are not IP, Enqueue and, for queued
// packets, Dequeue for counting, PFC for the neighbours' pauses, and Timer for
// the switch CPU. A program that shares another's telemetry does not count.
func (p *Program) Stages() inswitch.Stages {
	if !p.ownsTelemetry {
		return inswitch.StageSet(inswitch.Timer) | inswitch.NonIPIngress
	}
	return inswitch.StageSet(inswitch.Enqueue, inswitch.PFC,
		inswitch.Timer) | inswitch.QueuedDequeue | inswitch.NonIPIngress
}

// Stats returns the current counters.
func (p *Program) Stats() Stats {
	p.tel.flushAllCounts()
	return p.stats
}

// Observe counts packets and pauses, and consumes polls.
func (p *Program) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	// Control packets have a separate queue that is never paused; they are not
	// counted.
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

package epoch

import (
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Program is the telemetry of one switch and its answers to polls.
type Program struct {
	cfg   Config
	dev   inswitch.Device
	tel   *telemetry
	seen  seen
	cpu   processor
	stats Stats

	frame []byte         // of the poll at hand
	out   []byte         // its copies
	ports []model.PortID // that get one
}

// New makes the program of a switch.
func New(cfg Config, dev inswitch.Device) (*Program, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	p := &Program{cfg: cfg, dev: dev}
	p.tel = newTelemetry(cfg, len(dev.Ports), &p.stats)
	return p, nil
}

// Stages are Ingress for polls, Enqueue and Dequeue to count, PFC for the
// neighbours' pauses, and Timer for the switch's processor.
func (p *Program) Stages() inswitch.Stages {
	return inswitch.At(inswitch.Ingress, inswitch.Enqueue, inswitch.Dequeue, inswitch.PFC, inswitch.Timer)
}

// Stats returns the present counts.
func (p *Program) Stats() Stats { return p.stats }

// Observe counts packets and pauses, and takes polls out of the traffic.
func (p *Program) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	switch ev.Stage {
	case inswitch.Enqueue:
		// Nothing that never waits for a pause belongs here: control packets
		// have a queue of their own.
		if !ev.Control && int(ev.Out) <= p.tel.ports && int(ev.In) <= p.tel.ports {
			p.tel.enqueue(ev)
		}
	case inswitch.Dequeue:
		if !ev.Control && int(ev.Out) <= p.tel.ports && int(ev.In) <= p.tel.ports {
			p.tel.here.leave(ev)
		}
	case inswitch.Ingress:
		if ev.Packet.EtherType == poll.EtherType {
			p.poll(ev, act)
		}
	case inswitch.PFC:
		if int(ev.In) <= p.tel.ports {
			p.tel.pause(ev)
		}
	case inswitch.Timer:
		p.cpu.wake(p, ev, act)
	}
}

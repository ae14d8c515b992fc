// Package portstate writes the newest state of every port of a switch to a
// collector, once a period: queues, bytes sent, pauses, discards. A collector keeps
// one value per port, which is never older than a period unless reports are lost.
// History is left to labels and counters. Origin: docs/papers.md#dta (Key-Write).
// Layout: docs/formats/keyed.md. Reader: control/livestate.
package portstate

import (
	"fmt"
	"math"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// Config configures the program of one switch.
type Config struct {
	Period time.Duration // between two states of a port
}

// DefaultConfig writes every 10 ms: as often as flowsets are exported.
func DefaultConfig() Config { return Config{Period: 10 * time.Millisecond} }

// Check returns an error for the first invalid field.
func (c *Config) Check() error {
	if c.Period < time.Microsecond {
		return fmt.Errorf("portstate: period %v, want at least 1µs", c.Period)
	}
	return nil
}

// Program writes the states of one switch's ports.
type Program struct {
	cfg   Config
	dev   inswitch.Device
	keys  []byte // of all ports, side by side
	state []byte // of all ports, side by side

	last   []inswitch.PortCounters // of the state before, by port
	lastAt model.Time
}

// New returns the program of a switch.
func New(dev inswitch.Device, cfg Config) (*Program, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	p := &Program{cfg: cfg, dev: dev}
	for i := range dev.Ports {
		p.keys = keyed.PortKey{Port: model.Port{Node: dev.ID, Port: model.PortID(i + 1)}}.AppendTo(p.keys)
	}
	p.last = make([]inswitch.PortCounters, len(dev.Ports))
	p.state = make([]byte, 0, len(dev.Ports)*keyed.PortStateSize)
	return p, nil
}

// tick is the timer of a period.
const tick inswitch.TimerID = 1

// Stages returns Timer: no packet waits for this program.
func (p *Program) Stages() inswitch.Stages { return inswitch.StageSet(inswitch.Timer) }

// Observe writes the states at the end of a period.
func (p *Program) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	act.SetTimer(p.cfg.Period, tick)
	counting, _ := ev.Switch.(inswitch.CountingSwitch)
	if ev.Timer != tick { // the switch has just started: rates need a state before
		for i := range p.last {
			if counting != nil {
				p.last[i] = counting.Counters(model.PortID(i + 1))
			}
		}
		p.lastAt = ev.Now
		return
	}
	p.state = p.state[:0]
	for i := range p.dev.Ports {
		at := len(p.state)
		s := readQueues(ev, model.PortID(i+1))
		if counting != nil {
			p.readCounters(&s, i, counting.Counters(model.PortID(i+1)))
		}
		p.state = s.AppendTo(p.state)
		act.Report(dta.Report{
			Primitive: dta.KeyWrite, Redundancy: keyed.Copies,
			Key: p.keys[i*keyed.PortKeySize:][:keyed.PortKeySize], Data: p.state[at:],
		})
	}
	p.lastAt = ev.Now
}

// readQueues reads the queues of a port.
func readQueues(ev *inswitch.Event, port model.PortID) keyed.PortState {
	s := keyed.PortState{Time: ev.Now}
	for class := range model.Priority(keyed.Classes) {
		q := ev.Switch.Queue(port, class)
		s.Queue += q.Bytes
		s.MaxQueue = max(s.MaxQueue, q.Bytes)
		if q.Paused {
			s.PausedClass |= 1 << class
		}
	}
	return s
}

// readCounters adds the counters of port i, and what they gained since the last state.
func (p *Program) readCounters(s *keyed.PortState, i int, n inswitch.PortCounters) {
	s.Bytes, s.Discards, s.PausedTime = n.Bytes, n.Discards, n.Paused
	last, d := p.last[i], s.Time.Sub(p.lastAt)
	p.last[i] = n
	if d <= 0 || n.Bytes < last.Bytes { // the clock or the counters were set
		return
	}
	s.Load = model.Rate(float64(n.Bytes-last.Bytes) * 8 * float64(time.Second) / float64(d))
	share := float64(n.Paused-last.Paused) / float64(d)
	s.PausedShare = uint16(min(max(share, 0), 1) * math.MaxUint16)
}

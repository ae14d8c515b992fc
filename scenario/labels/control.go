// Package labels connects a portwatch.Watch with the in-band labels of simulated
// switches: it receives their reports, sends commands over a control network that
// may lose them, and ends windows on time. analyze/coverage holds the port state.
// Manual: docs/labels.md.
package labels

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weft-telemetry/weft/control/portwatch"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/label"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Channel is the network that carries commands to switches.
type Channel struct {
	Delay time.Duration
	Loss  float64 // probability that a command is lost
	Seed  uint64
}

// Control runs a watch on a simulated network.
type Control struct {
	Watch *portwatch.Watch
	// Lost counts commands that did not arrive; Unexpected counts reports to other
	// lists, and malformed datagrams.
	Lost, Unexpected uint64
	Load             Load

	net      *sim.Network
	channel  Channel
	rng      *rand.Rand
	programs map[model.NodeID]*label.Program
	ports    []model.Port // of switches, ascending
	active   []bool       // sent packets since the last call of Active
	list     dta.ListID
	onReport func() // called after each report; may be nil
}

// Load is what switch ports sent without pause frames, and how much of it was
// labels.
type Load struct {
	Packets int64
	Bytes   model.Bytes
	Labels  model.Bytes
}

// Share is the share of labels in all bytes.
func (l Load) Share() float64 { return float64(l.Labels) / float64(max(l.Bytes, 1)) }

// New connects a watch with the label program of each switch; a switch without one
// gets no commands. Exports are the reports to list.
func New(n *sim.Network, programs map[model.NodeID][]inswitch.Program, list dta.ListID, cfg portwatch.Config, ch Channel) (*Control, error) {
	c := &Control{
		net: n, channel: ch, rng: rand.New(rand.NewPCG(ch.Seed, 6)),
		programs: map[model.NodeID]*label.Program{}, list: list,
	}
	for id, all := range programs {
		for _, p := range all {
			if l, ok := p.(*label.Program); ok {
				c.programs[id] = l
			}
		}
	}
	if len(c.programs) == 0 {
		return nil, fmt.Errorf("labels: no switch writes labels, want telemetry of kind label")
	}
	for _, p := range n.Ports() {
		if n.Fabric().Node(p.Node).Role.IsSwitch() {
			c.tapPort(p)
		}
	}
	var err error
	if c.Watch, err = portwatch.New(cfg, c); err != nil {
		return nil, err
	}
	c.tick(engine.Of(tickInterval(&cfg)))
	return c, nil
}

// tapPort records when a port sends. Pause frames are no traffic: no label fits
// into them.
func (c *Control) tapPort(p *sim.Port) {
	i := len(c.ports)
	c.ports, c.active = append(c.ports, model.Port{Node: p.Node, Port: p.ID}), append(c.active, false)
	c.Load.tapPort(p)
	others := p.Tap()
	p.SetTap(func(now engine.Time, pkt *sim.Packet) {
		if pkt.Kind != sim.KindPFC {
			c.active[i] = true
		}
		others(now, pkt)
	})
}

// MeasureLoad returns what the switch ports of a network send from now on.
func MeasureLoad(n *sim.Network) *Load {
	l := &Load{}
	for _, p := range n.Ports() {
		if n.Fabric().Node(p.Node).Role.IsSwitch() {
			l.tapPort(p)
		}
	}
	return l
}

// tapPort adds what a port sends from now on.
func (l *Load) tapPort(p *sim.Port) {
	others := p.Tap()
	p.SetTap(func(now engine.Time, pkt *sim.Packet) {
		if pkt.Kind != sim.KindPFC {
			l.addPacket(pkt)
		}
		if others != nil {
			others(now, pkt)
		}
	})
}

func (l *Load) addPacket(p *sim.Packet) {
	l.Packets++
	l.Bytes += model.Bytes(p.Size)
	if p.Extra != nil {
		l.Labels += model.Bytes(len(p.Extra.Labels))
	}
}

// tickInterval is the time between two ticks of the watch: one at the end of each
// window, and as many as the tuner and probing can use.
func tickInterval(cfg *portwatch.Config) time.Duration {
	period := cfg.Window
	if t := cfg.Tuner; t != nil {
		step := time.Duration(t.Patience) * t.Interval
		if t.Aging {
			step /= 4 // entries time out at any time
		}
		period = min(period, step)
	}
	if cfg.Probing != nil {
		period = min(period, cfg.Probing.After/4) // a label becomes old at any time
	}
	period = max(period, 1)
	return cfg.Window / ((cfg.Window + period - 1) / period)
}

// tick calls the watch now and schedules the next tick.
func (c *Control) tick(step engine.Time) {
	c.Watch.Tick(c.net.Now().Model())
	c.net.At(c.net.Now()+step, func() { c.tick(step) })
}

// ReceiveDatagram is a simhost.Sink: it passes the exports of a datagram to the
// watch.
func (c *Control) ReceiveDatagram(at model.Time, _ model.NodeID, datagram []byte) {
	var r dta.Reader
	if err := r.Reset(datagram); err != nil {
		c.Unexpected++
		return
	}
	for rep := (dta.Report{}); r.Next(&rep); {
		if rep.Primitive != dta.Append || rep.List != c.list {
			c.Unexpected++
			continue
		}
		_ = c.Watch.IngestReport(at, rep.Data) // the watch counts rejected labels
		if c.onReport != nil {
			c.onReport()
		}
	}
}

// Active is part of portwatch.Fabric.
func (c *Control) Active(list []model.Port) []model.Port {
	for i, p := range c.ports {
		if c.active[i] {
			c.active[i] = false
			list = append(list, p)
		}
	}
	return list
}

// SetShift is part of portwatch.Fabric.
func (c *Control) SetShift(p model.Port, shift uint8) error {
	prog := c.programs[p.Node]
	if prog == nil {
		return fmt.Errorf("labels: %s writes no labels", c.net.Fabric().Node(p.Node).Name)
	}
	if c.rng.Float64() < c.channel.Loss {
		c.Lost++
		return nil
	}
	c.net.At(c.net.Now()+engine.Of(c.channel.Delay), func() {
		_ = prog.SetShift(p.Port, shift) // cannot fail: the port exists, and the tuner bounds the shift
	})
	return nil
}

// Fabric returns the network's fabric.
func (c *Control) Fabric() *topo.Fabric { return c.net.Fabric() }

// Follow has every switch on the path label a flow.
func (c *Control) Follow(f label.FlowSample) error {
	for _, p := range c.programs {
		if err := p.SampleFlow(f); err != nil {
			return err
		}
	}
	return nil
}

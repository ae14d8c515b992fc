// Package ports connects a portwatch.Watch with labels in the simulator: reports
// come in, commands go out over a control network that may lose them, and windows
// end on time. What is known then is analyze/coverage's to say.
// Manual: docs/labels.md.
package ports

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

// Channel is the network by which commands reach switches.
type Channel struct {
	Delay time.Duration
	Loss  float64 // probability that a command is lost
	Seed  uint64
}

// Control is a watch at work on a simulated network.
type Control struct {
	Watch *portwatch.Watch
	// Lost is commands that did not arrive; Strange is reports to other lists,
	// and datagrams that are none.
	Lost, Strange uint64
	Load          Load

	net      *sim.Network
	channel  Channel
	rng      *rand.Rand
	programs map[model.NodeID]*label.Program
	ports    []model.Port // of switches, ascending
	active   []bool       // sent packets since last asked
	list     dta.ListID
	after    func() // each report
}

// Load is what switch ports sent, pause frames left out, and how much of it was
// labels.
type Load struct {
	Packets int64
	Bytes   model.Bytes
	Labels  model.Bytes
}

// Share is labels over all.
func (l Load) Share() float64 { return float64(l.Labels) / float64(max(l.Bytes, 1)) }

// New connects a watch. Programs are those that run in each switch, in which
// it looks for the one that labels; a switch without labels is never commanded.
// Exports are taken from the reports to list.
func New(n *sim.Network, programs map[model.NodeID][]inswitch.Program, list dta.ListID, cfg portwatch.Config, ch Channel) (*Control, error) {
	c := &Control{net: n, channel: ch, rng: rand.New(rand.NewPCG(ch.Seed, 6)), programs: map[model.NodeID]*label.Program{}, list: list}
	for id, all := range programs {
		for _, p := range all {
			if l, ok := p.(*label.Program); ok {
				c.programs[id] = l
			}
		}
	}
	if len(c.programs) == 0 {
		return nil, fmt.Errorf("ports: no switch labels, want telemetry of kind label")
	}
	for _, p := range n.Ports() {
		if n.Fabric().Node(p.Node).Role.IsSwitch() {
			c.listen(p)
		}
	}
	var err error
	if c.Watch, err = portwatch.New(cfg, c); err != nil {
		return nil, err
	}
	c.tick(engine.Of(every(&cfg)))
	return c, nil
}

// listen notes when a port sends. Pause frames are no traffic: nothing could be
// written into them.
func (c *Control) listen(p *sim.Port) {
	i := len(c.ports)
	c.ports, c.active = append(c.ports, model.Port{Node: p.Node, Port: p.ID}), append(c.active, false)
	others := p.Tap
	p.Tap = func(now engine.Time, pkt *sim.Packet) {
		if pkt.Kind != sim.KindPFC {
			c.active[i] = true
			c.Load.add(pkt)
		}
		if others != nil {
			others(now, pkt)
		}
	}
}

func (l *Load) add(p *sim.Packet) {
	l.Packets++
	l.Bytes += model.Bytes(p.Size)
	if p.Extra != nil {
		l.Labels += model.Bytes(len(p.Extra.Labels))
	}
}

// every is how often to look: at the end of windows, and as often as the tuner
// can use.
func every(cfg *portwatch.Config) time.Duration {
	if cfg.Tuner == nil {
		return cfg.Window
	}
	period := max(time.Duration(cfg.Tuner.Patience)*cfg.Tuner.Interval, 1)
	return cfg.Window / max((cfg.Window+period-1)/period, 1)
}

// tick looks at the fabric from time to time, for ever.
func (c *Control) tick(step engine.Time) {
	c.Watch.Tick(c.net.Now().Model())
	c.net.At(c.net.Now()+step, func() { c.tick(step) })
}

// Take is a simhost.Sink: it hands the exports of a datagram to the watch.
func (c *Control) Take(at model.Time, _ model.NodeID, datagram []byte) {
	var r dta.Reader
	if err := r.Reset(datagram); err != nil {
		c.Strange++
		return
	}
	for rep := (dta.Report{}); r.Next(&rep); {
		if rep.Primitive != dta.Append || rep.List != c.list {
			c.Strange++
			continue
		}
		_ = c.Watch.Add(at, rep.Data) // the board counts what it refuses
		if c.after != nil {
			c.after()
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
		return fmt.Errorf("ports: %s does not label", c.net.Fabric().Node(p.Node).Name)
	}
	if c.rng.Float64() < c.channel.Loss {
		c.Lost++
		return nil
	}
	c.net.At(c.net.Now()+engine.Of(c.channel.Delay), func() {
		_ = prog.SetShift(p.Port, shift) // a port of the fabric, and a shift that the tuner bounds
	})
	return nil
}

// Fabric is the network's.
func (c *Control) Fabric() *topo.Fabric { return c.net.Fabric() }

// Follow asks every switch for a flow's whole way.
func (c *Control) Follow(f label.FlowSample) error {
	for _, p := range c.programs {
		if err := p.SampleFlow(f); err != nil {
			return err
		}
	}
	return nil
}

package sonic

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/exporter"
	"github.com/weft-telemetry/weft/topo"
)

// Config is what switches are configured to export.
type Config struct {
	Interval      time.Duration // between counters of an interface, by sFlow and gNMI
	HighFrequency time.Duration // between counters by OTLP
	Sampling      uint32        // packets to one sample
	Seed          uint64
	Start         model.Time // what the switches' clocks show at the start of the run: uptime counts from it
}

// DefaultConfig is what SONiC's documentation recommends, with counters every second
// instead of every 20. High-frequency telemetry of real switches is ten times as frequent and more; here
// it is what a laptop carries.
func DefaultConfig() Config {
	return Config{Interval: time.Second, HighFrequency: 100 * time.Millisecond, Sampling: 4096, Seed: 1}
}

func (c *Config) check() error {
	if c.Interval < 100*time.Microsecond || c.HighFrequency < 0 || c.Sampling < 1 {
		return fmt.Errorf("sonic: counters every %v, by OTLP every %v, one of %d packets; want at least 100µs, 0 and 1", c.Interval, c.HighFrequency, c.Sampling)
	}
	return nil
}

// Outlets are where exports go.
type Outlets struct {
	// SFlow takes the datagrams of switches, and must not keep them; nil: switches have no sFlow agent.
	SFlow   func(at model.Time, from model.NodeID, datagram []byte) error
	Targets *Targets // nil: no gNMI
	Metrics *Metrics // nil: no OTLP
}

// Fabric is every switch of a network, with its agent.
type Fabric struct{ agents []*Agent }

// Speak has every switch of a network export. Switches are polled one after
// the other within an interval, as if they had been started so.
func Speak(n *sim.Network, cfg Config, out Outlets) (*Fabric, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	f := &Fabric{}
	switches := n.Fabric().Switches()
	for i, id := range switches {
		s := speaker{node: n.Fabric().Node(id), out: out}
		if out.Targets != nil && out.Targets.byNode[id] == nil {
			return nil, fmt.Errorf("sonic: %s has no gNMI target, want targets of the same fabric", s.node.Name)
		}
		export := exporter.Config{Sampling: cfg.Sampling, Seed: cfg.Seed}
		if out.SFlow != nil {
			var err error
			if s.agent, err = NewAgent(s.node, cfg.Start, func(at model.Time, datagram []byte) error { return out.SFlow(at, id, datagram) }); err != nil {
				return nil, err
			}
			f.agents = append(f.agents, s.agent)
			export.Header, export.Sample = HeaderBytes, s.agent.AddSample
		}
		e, err := exporter.Attach(n, id, export)
		if err != nil {
			return nil, err
		}
		phase := func(interval time.Duration) engine.Time {
			return engine.Of(interval) * engine.Time(i) / engine.Time(len(switches))
		}
		if err := e.EveryTotals(cfg.Interval, phase(cfg.Interval), s.poll()); err != nil {
			return nil, err
		}
		if out.Metrics == nil {
			continue
		}
		if err := e.EveryTotals(cfg.HighFrequency, phase(cfg.HighFrequency), s.rounds(func(r *round) { out.Metrics.publish(s.node, r) })); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// speaker is one switch.
type speaker struct {
	node  *topo.Node
	agent *Agent // nil: none
	out   Outlets
}

// poll takes totals for sFlow and gNMI.
func (s *speaker) poll() func(at model.Time, port model.PortID, totals *portstat.Counters) {
	publish := func(*round) {}
	if s.out.Targets != nil {
		publish = s.out.Targets.byNode[s.node.ID].publish
	}
	collect := s.rounds(publish)
	return func(at model.Time, port model.PortID, totals *portstat.Counters) {
		if s.out.Targets != nil {
			collect(at, port, totals)
		}
		if s.agent == nil {
			return
		}
		s.agent.AddCounters(at, port, totals)
		if int(port) == len(s.node.Ports) {
			s.agent.Flush(at)
		}
	}
}

// rounds collects the totals of all ports, which come one after the other.
func (s *speaker) rounds(publish func(*round)) func(at model.Time, port model.PortID, totals *portstat.Counters) {
	var r *round
	return func(at model.Time, port model.PortID, totals *portstat.Counters) {
		if port == 1 {
			r = &round{at: at, ports: make([]portstat.Counters, 0, len(s.node.Ports))}
		}
		r.ports = append(r.ports, *totals)
		if int(port) == len(s.node.Ports) {
			publish(r)
		}
	}
}

// Err returns the first errors of sending.
func (f *Fabric) Err() (err error) {
	for _, a := range f.agents {
		err = errors.Join(err, a.Err())
	}
	return err
}

// Flush sends what waits, at the end.
func (f *Fabric) Flush(at model.Time) error {
	for _, a := range f.agents {
		a.Flush(at)
	}
	return f.Err()
}

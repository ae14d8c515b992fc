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
)

// Config is what switches are configured to export.
type Config struct {
	Interval time.Duration // between counters of an interface
	Sampling uint32        // packets to one sample
	Seed     uint64
	Start    model.Time // what the switches' clocks show at the start of the run: uptime counts from it
}

// DefaultConfig is what SONiC's documentation recommends, with counters every second
// instead of every 20.
func DefaultConfig() Config { return Config{Interval: time.Second, Sampling: 4096, Seed: 1} }

func (c *Config) check() error {
	if c.Interval < 100*time.Microsecond || c.Sampling < 1 {
		return fmt.Errorf("sonic: counters every %v, one of %d packets; want at least 100µs and 1", c.Interval, c.Sampling)
	}
	return nil
}

// Fabric is every switch of a network, with its agent.
type Fabric struct{ agents []*Agent }

// Speak gives every switch of a network an sFlow agent. Switches are polled one after
// the other within an interval, as if they had been started so.
func Speak(n *sim.Network, cfg Config, send func(at model.Time, from model.NodeID, datagram []byte) error) (*Fabric, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	f := &Fabric{}
	switches := n.Fabric().Switches()
	for i, id := range switches {
		agent, err := NewAgent(n.Fabric().Node(id), cfg.Start, func(at model.Time, datagram []byte) error { return send(at, id, datagram) })
		if err != nil {
			return nil, err
		}
		e, err := exporter.Attach(n, id, exporter.Config{
			Sampling: cfg.Sampling, Seed: cfg.Seed, Header: HeaderBytes,
			Sample: agent.AddSample,
		})
		if err != nil {
			return nil, err
		}
		f.agents = append(f.agents, agent)
		first := engine.Of(cfg.Interval) * engine.Time(i) / engine.Time(len(switches))
		poll(n, id, e, agent, cfg, first)
	}
	return f, nil
}

// poll sends the counters of a switch at every interval.
func poll(n *sim.Network, id model.NodeID, e *exporter.Exporter, agent *Agent, cfg Config, first engine.Time) {
	var totals portstat.Counters
	var turn func()
	turn = func() {
		at := n.Switch(id).Clock()
		for i := range n.Fabric().Node(id).Ports {
			e.Totals(model.PortID(i+1), &totals)
			agent.AddCounters(at, model.PortID(i+1), &totals)
		}
		agent.Flush(at)
		n.At(n.Now()+engine.Of(cfg.Interval), turn)
	}
	n.At(first, turn)
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

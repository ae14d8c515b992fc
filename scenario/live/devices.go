package live

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/rootcause"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/inswitch/label"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// devices are the switches and hosts as a management network shows them: port
// counters, settings of switch programs, and agents.
type devices struct {
	net    *sim.Network
	labels map[model.NodeID]*label.Program
	ports  []*countedPort // of switches, ascending
	*simhost.Probers
	*simhost.Markers
	*simhost.Agents // of hosts that detect slow flows
	onDetection     func(d rootcause.DiagnosisRequest)
	onRequest       func(at model.Time, r agent.DiagnosisRequest) // instead of onDetection
	commands        *commandChannel                               // to switches; nil: immediate and lossless
}

// commandChannel is the management network on which commands to switches are
// delayed and lost.
type commandChannel struct {
	delay time.Duration
	loss  float64 // probability
	rng   *rand.Rand
}

// countedPort is one port and what it had sent when it was last sampled.
type countedPort struct {
	id   model.Port
	port *sim.Port
	sent model.Bytes
}

// agentsConfig is how hosts detect slow flows.
type agentsConfig struct {
	interval time.Duration // between two checks of packets that are not acknowledged
	config   func(host model.NodeID) agent.Config
	hosts    []model.NodeID // nil: all
	none     bool           // no host detects anything
}

// demoAgents take a flow for slow when packets take twenty times as long as on an
// idle fabric, and poll rarely.
func demoAgents() agentsConfig {
	return agentsConfig{interval: 20 * time.Microsecond, config: func(host model.NodeID) agent.Config {
		c := agent.DefaultConfig(host)
		c.RTTFactor, c.MinRepollInterval, c.MinHostInterval = 20, 10*time.Millisecond, time.Millisecond
		return c
	}}
}

// scenarioAgents are those of a scenario.
func scenarioAgents(a *scenario.Agents) agentsConfig {
	if a == nil {
		return agentsConfig{interval: time.Second, none: true}
	}
	return agentsConfig{interval: a.CheckInterval, config: a.ConfigFor, hosts: a.Hosts}
}

func newDevices(s *scenario.Session, a agentsConfig) (*devices, error) {
	d := &devices{
		net: s.Network, labels: map[model.NodeID]*label.Program{},
		Probers: simhost.NewProbers(s.Network, nil), Markers: simhost.NewMarkers(s.Network),
	}
	for id, all := range s.Programs {
		for _, p := range all {
			if l, ok := p.(*label.Program); ok {
				d.labels[id] = l
			}
		}
	}
	for _, p := range s.Network.Ports() {
		if p.Switch() != nil {
			d.ports = append(d.ports, &countedPort{id: model.Port{Node: p.Node, Port: p.ID}, port: p})
		}
	}
	hosts := a.hosts
	if hosts == nil && !a.none {
		hosts = s.Network.Fabric().Hosts()
	}
	var configs []agent.Config
	for _, id := range hosts {
		configs = append(configs, a.config(id))
	}
	var err error
	d.Agents, err = simhost.NewAgents(s.Network, a.interval, configs, d.requestDiagnosis)
	return d, err
}

// requestDiagnosis passes on that a host has detected a slow flow.
func (d *devices) requestDiagnosis(at model.Time, r agent.DiagnosisRequest) {
	if d.onRequest != nil {
		d.onRequest(at, r)
		return
	}
	src, known := d.net.Fabric().ByAddr(r.Poll.Flow.Src)
	paused := known && simhost.FlowPortPaused(d.net.Host(src), r.Poll.Flow)
	d.onDetection(rootcause.DiagnosisRequest{At: at, Detection: diagnose.Detection{
		Event: r.Poll.Event, Victim: r.Poll.Flow, HostPaused: paused,
		Latency: r.Latency(), InFlight: r.Reason == agent.Age, Window: r.Window(),
	}})
}

// Active is part of portwatch.Fabric.
func (d *devices) Active(list []model.Port) []model.Port {
	for _, c := range d.ports {
		if c.port.TxData != c.sent {
			c.sent = c.port.TxData
			list = append(list, c.id)
		}
	}
	return list
}

// SetShift is part of portwatch.Fabric.
func (d *devices) SetShift(p model.Port, shift uint8) error {
	l := d.labels[p.Node]
	if l == nil {
		return fmt.Errorf("live: %s runs no label program", d.net.Fabric().Node(p.Node).Name)
	}
	if d.commands == nil {
		return l.SetShift(p.Port, shift)
	}
	if d.commands.rng.Float64() < d.commands.loss {
		return nil // the tuner repeats a command that had no effect
	}
	d.net.At(d.net.Now()+engine.Of(d.commands.delay), func() {
		_ = l.SetShift(p.Port, shift) // a port of the fabric, and a shift that the tuner bounds
	})
	return nil
}

// Counters is part of control.Devices. What a faulty switch loses silently is in
// no counter of it.
func (d *devices) Counters(list []control.PortCounters) []control.PortCounters {
	for _, c := range d.ports {
		sent := c.port.Sent()
		k := control.PortCounters{
			Port: c.id, Packets: sent[sim.TxPackets], Bytes: sent[sim.TxBytes], Discards: uint64(c.port.Drops[sim.DropBuffer]),
		}
		for prio := range model.Priority(8) {
			k.Paused = max(k.Paused, c.port.PausedTime(prio).Duration())
		}
		list = append(list, k)
	}
	return list
}

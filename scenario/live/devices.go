package live

import (
	"fmt"
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
)

// devices are the switches as a management network shows them: counters of
// ports, and settings of their programs.
type devices struct {
	net    *sim.Network
	labels map[model.NodeID]*label.Program
	ports  []*counted // of switches, ascending
	*simhost.Probers
	*simhost.Markers
	*simhost.Agents // of hosts that complain of slow flows
	told            func(who rootcause.DiagnosisRequest)
}

// counted is one port and what it had sent when last asked.
type counted struct {
	id   model.Port
	port *sim.Port
	sent model.Bytes
}

func newDevices(s *scenario.Session) (*devices, error) {
	d := &devices{net: s.Network, labels: map[model.NodeID]*label.Program{}, Probers: simhost.NewProbers(s.Network, nil), Markers: simhost.NewMarkers(s.Network)}
	for id, all := range s.Programs {
		for _, p := range all {
			if l, ok := p.(*label.Program); ok {
				d.labels[id] = l
			}
		}
	}
	for _, p := range s.Network.Ports() {
		if p.Switched() != nil {
			d.ports = append(d.ports, &counted{id: model.Port{Node: p.Node, Port: p.ID}, port: p})
		}
	}
	var configs []agent.Config
	for _, id := range s.Network.Fabric().Hosts() {
		c := agent.DefaultConfig(id)
		c.RTTFactor, c.MinRepollInterval, c.MinHostInterval = late, again, perHost
		configs = append(configs, c)
	}
	var err error
	d.Agents, err = simhost.NewAgents(s.Network, look, configs, d.complain)
	return d, err
}

// How hosts watch their flows: a flow is slow when packets take twenty times
// as long as on an empty fabric, and a host asks for few at a time.
const (
	late    = 20
	look    = 20 * time.Microsecond
	again   = 10 * time.Millisecond
	perHost = time.Millisecond
)

// complain passes on what a host says of its flow.
func (d *devices) complain(at model.Time, t agent.DiagnosisRequest) {
	src, known := d.net.Fabric().ByAddr(t.Poll.Flow.Src)
	stopped := known && simhost.FlowPortPaused(d.net.Host(src), t.Poll.Flow)
	d.told(rootcause.DiagnosisRequest{At: at, Detection: diagnose.Detection{Event: t.Poll.Event, Victim: t.Poll.Flow, HostPaused: stopped, Latency: t.Measured, InFlight: t.Reason == agent.Age}})
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
		return fmt.Errorf("live: %s does not label", d.net.Fabric().Node(p.Node).Name)
	}
	return l.SetShift(p.Port, shift)
}

// Counters is part of control.Devices. What a broken switch loses is in no
// counter of it.
func (d *devices) Counters(list []control.PortCounters) []control.PortCounters {
	for _, c := range d.ports {
		k := control.PortCounters{Port: c.id, Bytes: uint64(c.port.TxData), Discards: uint64(c.port.Drops[sim.DropBuffer])}
		for prio := range model.Priority(8) {
			k.Paused = max(k.Paused, c.port.PausedTime(prio).Duration())
		}
		list = append(list, k)
	}
	return list
}

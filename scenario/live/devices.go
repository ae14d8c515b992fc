package live

import (
	"fmt"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/inswitch/label"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// devices are the switches as a management network shows them: counters of
// ports, and settings of their programs.
type devices struct {
	net    *sim.Network
	labels map[model.NodeID]*label.Program
	ports  []*counted // of switches, ascending
}

// counted is one port's counters.
type counted struct {
	control.PortCount
	port   *sim.Port
	active bool // sent since last asked
	heard  engine.Time
	paused uint8 // classes
}

func newDevices(s *scenario.Session) (*devices, error) {
	d := &devices{net: s.Network, labels: map[model.NodeID]*label.Program{}}
	for id, all := range s.Programs {
		for _, p := range all {
			if l, ok := p.(*label.Program); ok {
				d.labels[id] = l
			}
		}
	}
	for _, p := range s.Network.Ports() {
		if p.Switched() == nil {
			continue
		}
		c := &counted{PortCount: control.PortCount{Port: model.Port{Node: p.Node, Port: p.ID}}, port: p}
		d.ports = append(d.ports, c)
		p.Tap = func(_ engine.Time, pkt *sim.Packet) {
			if pkt.Kind != sim.KindPFC { // no label could ride on it
				c.active = true
				c.Bytes += uint64(pkt.Size)
			}
		}
	}
	return d, nil
}

// Active is part of portwatch.Fabric.
func (d *devices) Active(list []model.Port) []model.Port {
	for _, c := range d.ports {
		if c.active {
			c.active = false
			list = append(list, c.Port)
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

// Counters is part of control.Devices.
func (d *devices) Counters(list []control.PortCount) []control.PortCount {
	for _, c := range d.ports {
		list = append(list, c.PortCount)
	}
	return list
}

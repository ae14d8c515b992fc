package livestate

import (
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Devices is control.Devices of a fabric that takes no commands, and whose switches
// write the counters of their ports to a collector's memory. One goroutine uses it.
type Devices struct {
	control.NoDevices
	memory *Memory
	ports  []model.Port // of switches, ascending
	next   int          // the port that is read next
	quiet  int          // ports since one had another state
	times  []model.Time // of the states that were read, by port
}

// NewDevices reads port counters from a memory that has the tables of a Plan.
func NewDevices(f *topo.Fabric, m *translate.Memory) (*Devices, error) {
	d := &Devices{}
	var err error
	if d.memory, err = newMemory(f, m); err != nil {
		return nil, err
	}
	for _, id := range f.Switches() {
		for i := range f.Node(id).Ports {
			d.ports = append(d.ports, model.Port{Node: id, Port: model.PortID(i + 1)})
		}
	}
	d.times = make([]model.Time, len(d.ports))
	return d, nil
}

// Ports that one call of Counters reads at most: a read takes some 300 ns, and is done
// once per slot of 10 ms. While no switch writes, a call reads few.
const (
	maxReads   = 2048
	quietReads = 32
)

// Counters is part of control.Devices: the counters of ports with another state than
// before. The controller leaves out those that are late or of the future: after one with a
// wrong time, the next are read all the same. Each call goes on where the last one ended.
func (d *Devices) Counters(list []control.PortCounters) []control.PortCounters {
	reads := min(maxReads, len(d.ports))
	if d.quiet >= len(d.ports) {
		reads = min(quietReads, reads)
	}
	for range reads {
		i := d.next
		d.next = (d.next + 1) % len(d.ports)
		d.quiet++
		s, found, err := d.memory.PortState(d.ports[i])
		if err != nil || !found || s.Time == d.times[i] {
			continue // memory that is lost is an error of the collector
		}
		d.times[i], d.quiet = s.Time, 0
		list = append(list, control.PortCounters{Port: d.ports[i], At: s.Time, Bytes: s.Bytes, Discards: s.Discards, Paused: s.PausedTime})
	}
	return list
}

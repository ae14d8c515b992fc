package simhost_test

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// ports counts the bytes of each egress port and reports them every
// millisecond. docs/dataplane.md shows it.
type ports struct {
	dev   inswitch.Device
	bytes []uint64 // by egress port
	data  []byte
}

func newPorts(dev inswitch.Device) *ports {
	return &ports{dev: dev, bytes: make([]uint64, len(dev.Ports)+1)}
}

func (p *ports) Stages() inswitch.Stages { return inswitch.StageSet(inswitch.Enqueue, inswitch.Timer) }

func (p *ports) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	if ev.Stage == inswitch.Enqueue {
		p.bytes[ev.Out] += uint64(ev.Packet.UnlabeledSize())
		return
	}
	act.SetTimer(time.Millisecond, 1) // also after the first event, inswitch.StartTimer
	p.data = p.data[:0]
	for port, n := range p.bytes {
		p.data = binary.BigEndian.AppendUint64(p.data, n)
		p.bytes[port] = 0
	}
	act.Report(dta.Report{Primitive: dta.Append, List: dta.ListID(p.dev.ID), Data: p.data})
}

func Example() {
	fabric, _ := topo.Dumbbell(1, topo.DefaultLinks())
	routes, _ := topo.NewRoutes(fabric, topo.RouteConfig{Seed: 1})
	net, _ := sim.New(routes, sim.DefaultConfig())
	_ = net.AddFlows([]traffic.Flow{{Src: 0, Dst: 1, Bytes: 1_000_000, Priority: 3}})

	sink := func(at model.Time, from model.NodeID, datagram []byte) {
		var r dta.Reader
		var rep dta.Report
		for _ = r.Reset(datagram); r.Next(&rep); {
			fmt.Printf("%v %s:", at, fabric.Node(from).Name)
			for port := 1; port < len(rep.Data)/8; port++ {
				fmt.Printf(" %d", binary.BigEndian.Uint64(rep.Data[8*port:]))
			}
			fmt.Println(" bytes")
		}
	}
	mgmt, _ := simhost.NewManagement(net, simhost.ManagementConfig{Delay: 100 * time.Microsecond}, sink)
	cfg := simhost.DefaultConfig()
	cfg.Carrier = mgmt
	for _, id := range fabric.Switches() {
		dev := simhost.Describe(net, id, 0)
		if _, err := simhost.Attach(net, id, inswitch.NewPipeline(newPorts(dev)), cfg); err != nil {
			fmt.Println(err)
		}
	}
	net.Run(1500 * engine.Microsecond)
	// Output:
	// +120µs s0: 0 0 bytes
	// +120µs s1: 0 0 bytes
	// +1.12ms s0: 60574 1056682 bytes
	// +1.12ms s1: 1056682 60574 bytes
}

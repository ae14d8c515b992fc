package hawkeye

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/sim/mmu"
	"github.com/weft-telemetry/weft/topo"
)

// network is a fabric and its congestion control.
type network struct {
	topology topology
	rate     model.Rate    // of all links
	delay    time.Duration // of all links
	mtu      int32
	buffer   model.Bytes // of a switch; beyond the paper's, headroom is extra
	control  control
}

// paperNetwork is that of the paper's section 4.1, with marking thresholds of the
// authors' runs. A switch of four ports has 3 MB.
func paperNetwork() network {
	return network{fatTree(4), 100 * model.Gbps, 2 * us, 1024, paperBuffer, dcqcn}
}

const paperBuffer = 3 * model.MB

// topology is a kind of fabric.
type topology struct {
	name  string
	build func(topo.Links) (*topo.Fabric, error)
}

func fatTree(pods int) topology {
	return topology{"3-tier 1:1", func(l topo.Links) (*topo.Fabric, error) { return topo.FatTree(pods, l) }}
}

var (
	leafSpine = topology{"leaf-spine", func(l topo.Links) (*topo.Fabric, error) { return topo.LeafSpine(4, 2, 4, l) }}
	// oversubscribed has eight hosts above two uplinks.
	oversubscribed = topology{"3-tier 1:4", func(l topo.Links) (*topo.Fabric, error) {
		return topo.Clos(topo.ClosSize{Pods: 3, ToRs: 2, Leaves: 2, Spines: 2, Hosts: 8}, l)
	}}
)

// control is a congestion control of RDMA flows.
type control uint8

const (
	dcqcn control = iota
	hpcc
	noControl
)

var controlNames = [...]string{dcqcn: "DCQCN", hpcc: "HPCC", noControl: "none"}

func (n network) String() string {
	return fmt.Sprintf("%s, %v, %v, MTU %d, %v, %s", n.topology.name, n.rate, n.delay, n.mtu, n.buffer, controlNames[n.control])
}

// fabric returns the fabric with its routes.
func (n network) fabric(seed uint64) (*topo.Routes, error) {
	link := topo.DefaultLinks().Host
	link.Rate, link.Delay = n.rate, n.delay
	f, err := n.topology.build(topo.Links{Host: link, Fabric: link})
	if err != nil {
		return nil, err
	}
	return topo.NewRoutes(f, topo.RouteConfig{Seed: seed})
}

// config returns the simulator's: RoCEv2 with PFC.
func (n network) config(seed uint64, f *topo.Fabric) sim.Config {
	cfg := sim.DefaultConfig()
	cfg.Seed, cfg.MTU = seed, n.mtu
	cfg.Buffer, cfg.ResumeOffset = n.buffer, n.bytes(cfg.ResumeOffset)
	if n.buffer != paperBuffer {
		cfg.Buffer += n.headroom(f)
	}
	mark := func(at100G model.Bytes) model.Bytes {
		return at100G * model.Bytes(n.rate) / model.Bytes(100*model.Gbps)
	}
	cfg.ECN = []sim.ECNParams{{Kmin: mark(40 * model.KB), Kmax: mark(160 * model.KB), Pmax: 0.2}}
	switch n.control {
	case hpcc:
		cfg.Congestion, cfg.Window, cfg.VarWindow, cfg.CNPInterval = congestion.DefaultHPCC(), true, true, 0
	case noControl:
		cfg.Congestion = nil
	}
	return cfg
}

// headroom returns what the switch with the most ports needs so that it loses
// nothing: on long and fast links that is more than some of the buffers.
func (n network) headroom(f *topo.Fabric) (most model.Bytes) {
	const headers = 256
	each := mmu.HeadroomFor(n.rate, n.delay, model.Bytes(n.mtu+headers))
	for _, id := range f.Switches() {
		most = max(most, each*model.Bytes(len(f.Node(id).Ports)))
	}
	return most
}

// time scales a time of the paper's network: by how long a link takes for a
// buffer, since buffers must fill before anything spreads.
func (n network) time(t time.Duration) time.Duration {
	return time.Duration(float64(t) * float64(n.buffer) / float64(paperBuffer) * float64(100*model.Gbps) / float64(n.rate))
}

// bytes scales a size by the buffer.
func (n network) bytes(b model.Bytes) model.Bytes {
	return model.Bytes(float64(b) * float64(n.buffer) / float64(paperBuffer))
}

// share scales a rate, given at 100 Gb/s, by that of the links.
func (n network) share(gbps int) model.Rate { return model.Rate(gbps) * n.rate / 100 }

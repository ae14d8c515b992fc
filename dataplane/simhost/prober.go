package simhost

import (
	"fmt"

	"github.com/weft-telemetry/weft/inhost/prober"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Probers are probers at work in simulated hosts, each made when it is first
// switchInfo for.
type Probers struct {
	net    *sim.Network
	config func(host model.NodeID) prober.Config
	hosts  map[model.NodeID]*hostProber
}

// hostProber is one host's prober.
type hostProber struct {
	net    *sim.Network
	host   *sim.Host
	prober *prober.Prober
	wake   engine.Time // when it looks again; Forever: no series is underway
	buffer []byte
}

// NewProbers makes probers with a configuration by host; nil is
// prober.DefaultConfig.
func NewProbers(n *sim.Network, config func(host model.NodeID) prober.Config) *Probers {
	if config == nil {
		config = prober.DefaultConfig
	}
	return &Probers{net: n, config: config, hosts: map[model.NodeID]*hostProber{}}
}

// Inject has a host send a series from the present on.
func (p *Probers) Inject(host model.NodeID, s prober.Series) error {
	h := p.hosts[host]
	if h == nil {
		if !p.net.Fabric().HasNode(host) || p.net.Host(host) == nil {
			return fmt.Errorf("simhost: probes from node %d, want a host", host)
		}
		one, err := prober.New(p.config(host))
		if err != nil {
			return err
		}
		h = &hostProber{net: p.net, host: p.net.Host(host), prober: one, wake: engine.Forever}
		p.hosts[host] = h
	}
	if err := h.prober.Start(h.host.Clock(), s); err != nil {
		return err
	}
	h.schedule()
	return nil
}

// Stats adds up what the probers count.
func (p *Probers) Stats() (s prober.Stats) {
	for _, h := range p.hosts {
		one := h.prober.Stats()
		s.Sent += one.Sent
		s.Bytes += one.Bytes
		s.Delayed += one.Delayed
	}
	return s
}

// schedule sees to it that the prober is asked when it has something to send. The
// host's clock may drift: it is asked again if it was asked too early.
func (h *hostProber) schedule() {
	now := h.host.Clock()
	due, ok := h.prober.NextSend(now)
	if !ok {
		return
	}
	at := h.net.Now() + max(engine.Of(due.Sub(now)), 0)
	if at >= h.wake && h.wake != engine.Forever {
		return
	}
	h.wake = at
	h.net.At(at, func() {
		if h.wake == at {
			h.sendDue()
		}
	})
}

// sendReady sends what is due. The simulator reads the headers out of the bytes, as a
// NIC would not; that they are right is the prober's business.
func (h *hostProber) sendDue() {
	h.wake = engine.Forever
	for {
		ip, ok := h.prober.AppendNext(h.host.Clock(), h.buffer[:0])
		h.buffer = ip
		if !ok {
			break
		}
		p, err := h.host.Craft(ip)
		if err != nil {
			panic(err) // a Packet that was checked
		}
		exit := p.Key
		if e := p.Extra; e != nil && len(e.Outer) > 0 {
			exit = e.Outer[0]
		}
		h.host.Send(p, h.host.EgressPort(exit))
	}
	h.schedule()
}

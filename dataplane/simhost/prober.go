package simhost

import (
	"fmt"

	"github.com/weft-telemetry/weft/inhost/prober"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Probers run probers in simulated hosts, each created on first use.
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
	wake   engine.Time // next call of sendDue; Forever: no series is active
	buffer []byte
}

// NewProbers returns probers with a configuration by host; nil is
// prober.DefaultConfig.
func NewProbers(n *sim.Network, config func(host model.NodeID) prober.Config) *Probers {
	if config == nil {
		config = prober.DefaultConfig
	}
	return &Probers{net: n, config: config, hosts: map[model.NodeID]*hostProber{}}
}

// Inject has a host send a series from now on.
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

// Stats returns the sum of the probers' counters.
func (p *Probers) Stats() (s prober.Stats) {
	for _, h := range p.hosts {
		one := h.prober.Stats()
		s.Sent += one.Sent
		s.Bytes += one.Bytes
		s.Delayed += one.Delayed
	}
	return s
}

// schedule calls sendDue when the prober has a probe to send. The host's clock
// may drift: a call that is too early is repeated.
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

// sendDue sends the probes that are due. The simulator parses the headers from
// the bytes, as a NIC would not; the prober must get them right.
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
			panic(err) // Series.Check has accepted the packet
		}
		exit := p.Key
		if e := p.Extra; e != nil && len(e.Outer) > 0 {
			exit = e.Outer[0]
		}
		h.host.Send(p, h.host.EgressPort(exit))
	}
	h.schedule()
}

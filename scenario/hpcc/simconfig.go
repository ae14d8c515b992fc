package hpcc

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/sim/mmu"
	"github.com/weft-telemetry/weft/topo"
)

// configure sets the simulator up as the original.
func (s *Setup) configure(c *Config, o Options) error {
	if err := s.chooseMode(c, o); err != nil {
		return err
	}
	ecn, err := s.curves(c)
	if err != nil {
		return err
	}
	s.Sim = sim.Config{
		Seed: o.Seed,
		MTU:  c.Payload, Overhead: c.headers(), AckSize: c.ackSize(),
		HPCC: true, NS3: true, Buffer: c.Buffer, PauseTime: 0, // until resumed
		ECN:         ecn,
		Congestion:  c.congestion(),
		CNPInterval: 0, // in every acknowledgement
		Window:      c.Window, VarWindow: c.VarWindow, GlobalWindow: c.GlobalWindow, HPCCIdeal: true,
		NackGap: nackGap, RTO: 0, // never: only a gap makes a sender go back N
		AckControl: c.AckFirst, AckHosts: true, RateBound: c.RateBound,
		TTL: firstTTL,
	}
	if err := s.Sim.Check(); err != nil {
		return c.errorf("CC_MODE", "%v", err)
	}
	for _, id := range s.Fabric.Switches() {
		m := s.buffer(c, id)
		if err := m.Check(); err != nil {
			return c.errorf("BUFFER_SIZE", "BUFFER_SIZE of %v is not enough for %s: %v", c.Buffer, s.Fabric.Node(id).Name, err)
		}
	}
	return nil
}

// congestion returns the constants of the mode's congestion control, nil for
// none.
func (c *Config) congestion() congestion.Params {
	switch c.Mode {
	case DCQCN:
		p := c.DCQCN
		return &p
	case HPCC:
		p := c.HPCC
		p.AI, p.MinRate = c.DCQCN.AI, c.DCQCN.MinRate
		return &p
	case TIMELY:
		p := congestion.DefaultTIMELY()
		p.AI, p.HAI, p.MinRate = c.DCQCN.AI, c.DCQCN.HAI, c.DCQCN.MinRate
		return p
	case DCTCP:
		return &congestion.DCTCPParams{Gain: c.DCQCN.Gain, AI: c.DCTCPAI, MinRate: c.DCQCN.MinRate}
	}
	return nil
}

// chooseMode checks the mode, and replaces it if the options ask for DCQCN.
func (s *Setup) chooseMode(c *Config, o Options) error {
	switch {
	case c.congestion() == nil && c.Mode != NoControl && !o.AsDCQCN:
		return fmt.Errorf("%w, want 0, 1, 3, 7 or 8 (none, DCQCN, HPCC, TIMELY, DCTCP), or --dcqcn to run it with DCQCN instead", controlError(c))
	case c.Mode != DCQCN && c.Mode != NoControl && o.AsDCQCN:
		s.Notes = append(s.Notes, fmt.Sprintf("CC_MODE %d (%v) is run with DCQCN (--dcqcn): rates and completion times are not those of %v", int(c.Mode), c.Mode, c.Mode))
		c.Mode = DCQCN
	}
	switch c.Mode {
	case DCQCN, DCTCP:
		if !c.ECN {
			s.Notes = append(s.Notes, fmt.Sprintf("ENABLE_QCN 0: switches mark nothing, so %v never slows a flow", c.Mode))
		}
	case HPCC:
		return s.checkINT(c)
	}
	return nil
}

// checkINT checks what HPCC's header needs. The original uses 25 Gb/s for rates
// that its header cannot encode, and divides by a window of 0.
func (s *Setup) checkINT(c *Config) error {
	if !c.Window {
		return c.errorf("HAS_WIN", "HAS_WIN 0 with CC_MODE 3 (HPCC), want 1: HPCC measures queues in windows")
	}
	for _, id := range s.Fabric.Switches() {
		for _, p := range s.Fabric.Node(id).Ports {
			if !congestion.EncodableRate(p.Rate) {
				return c.errorf("CC_MODE", "CC_MODE 3 (HPCC): port %d of %s has %v, want one of %v", p.ID, s.Fabric.Node(id).Name,
					p.Rate, congestion.LineRates)
			}
		}
	}
	return nil
}

// headers returns the header bytes of a data packet: those of every packet, and
// those of the congestion control.
func (c *Config) headers() int32 {
	switch c.Mode {
	case HPCC:
		return plainHeaders + intHeader
	case TIMELY:
		return plainHeaders + timeHeader
	}
	return plainHeaders
}

// ackSize returns the size of an acknowledgement, which returns the same
// headers.
func (c *Config) ackSize() int32 {
	if c.Mode == HPCC {
		return plainAck + intHeader
	}
	return paddedAck
}

func controlError(c *Config) error {
	return fmt.Errorf("%s:%d: CC_MODE %d is %v, a %w", c.File, c.line["CC_MODE"], int(c.Mode), c.Mode, ErrControl)
}

// curves joins the three maps into marking curves. The original requires an
// entry for the exact rate of each port.
func (s *Setup) curves(c *Config) ([]sim.ECNParams, error) {
	if !c.ECN {
		return nil, nil
	}
	rates := make(map[model.Rate]string) // and a port that has it
	for _, id := range s.Fabric.Switches() {
		for _, p := range s.Fabric.Node(id).Ports {
			if rates[p.Rate] == "" {
				rates[p.Rate] = fmt.Sprintf("port %d of %s", p.ID, s.Fabric.Node(id).Name)
			}
		}
	}
	var ecn []sim.ECNParams
	for _, r := range slices.Sorted(maps.Keys(rates)) {
		kmin, a := c.Kmin[r]
		kmax, b := c.Kmax[r]
		pmax, d := c.Pmax[r]
		if c.network && (!a || !b || !d) {
			s.unmarked = append(s.unmarked, r)
			continue
		}
		if !a || !b || !d {
			key := "PMAX_MAP"
			if !a {
				key = "KMIN_MAP"
			} else if !b {
				key = "KMAX_MAP"
			}
			return nil, c.errorf(key, "%s has no entry for %v, the rate of %s, want an entry for each rate", key, r, rates[r])
		}
		if kmin > kmax {
			return nil, c.errorf("KMIN_MAP", "KMIN_MAP has %v for %v, want at most KMAX_MAP's %v", kmin, r, kmax)
		}
		ecn = append(ecn, sim.ECNParams{Rate: r, Kmin: kmin, Kmax: kmax, Pmax: pmax})
	}
	return ecn, nil
}

// buffer returns the packet buffer of a switch.
func (s *Setup) buffer(c *Config, id model.NodeID) mmu.Config {
	nic := s.Fabric.Node(s.Fabric.Hosts()[0]).Ports[0].Rate
	return mmu.HPCCConfig(c.Buffer, nic, linksOf(s.Fabric.Node(id)))
}

func linksOf(n *topo.Node) []mmu.Link {
	links := make([]mmu.Link, len(n.Ports))
	for i, p := range n.Ports {
		links[i] = mmu.Link{Rate: p.Rate, Delay: p.Delay}
	}
	return links
}

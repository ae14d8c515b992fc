package hpcc

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/mmu"
	"github.com/weft-telemetry/weft/topo"
)

// configure sets the simulator up as the original.
func (s *Setup) configure(c *Config, o Options) error {
	control, err := s.control(c, o)
	if err != nil {
		return err
	}
	ecn, err := s.curves(c)
	if err != nil {
		return err
	}
	s.Sim = sim.Config{
		Seed: o.Seed,
		MTU:  c.Payload, Overhead: headers, AckSize: ackSize,
		HPCC: true, Buffer: c.Buffer, PauseTime: 0, // until resumed
		ECN: ecn,
		CC:  control, DCQCN: c.DCQCN, CNPInterval: 0, // in every acknowledgement
		Window: c.Window, VarWindow: c.VarWindow, GlobalWindow: c.GlobalWindow, HPCCIdeal: true,
		NackGap: nackGap, RTO: 0, // never: only a gap makes a sender go back
		AckControl: c.AckFirst, RateBound: c.RateBound,
		TTL: firstTTL,
	}
	for _, id := range s.Fabric.Switches() {
		m := s.buffer(c, id)
		if err := m.Check(); err != nil {
			return c.errorf("BUFFER_SIZE", "BUFFER_SIZE of %v is not enough for %s: %v", c.Buffer, s.Fabric.Node(id).Name, err)
		}
	}
	return nil
}

// control chooses the congestion control.
func (s *Setup) control(c *Config, o Options) (sim.Control, error) {
	switch {
	case c.Mode == NoControl:
		return sim.NoControl, nil
	case c.Mode != DCQCN && !o.AsDCQCN:
		return 0, fmt.Errorf("%w, want 1 (DCQCN), or --dcqcn to run it with DCQCN instead", controlError(c))
	case c.Mode != DCQCN:
		s.Notes = append(s.Notes, fmt.Sprintf("CC_MODE %d (%v) is run with DCQCN, as asked: rates and completion times are not those of %v", int(c.Mode), c.Mode, c.Mode))
	}
	if err := c.DCQCN.Check(); err != nil {
		return 0, c.errorf("CC_MODE", "%v", err)
	}
	if !c.ECN {
		s.Notes = append(s.Notes, "ENABLE_QCN 0: switches mark nothing, so DCQCN never slows a flow")
	}
	return sim.DCQCN, nil
}

func controlError(c *Config) error {
	return fmt.Errorf("%s:%d: CC_MODE %d is %v, a %w", c.File, c.line["CC_MODE"], int(c.Mode), c.Mode, ErrControl)
}

// curves joins the three maps into marking curves. The original wants an entry
// for the very rate of each port.
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
		if !a || !b || !d {
			key := "PMAX_MAP"
			if !a {
				key = "KMIN_MAP"
			} else if !b {
				key = "KMAX_MAP"
			}
			return nil, c.errorf(key, "%s has nothing for %v, the rate of %s, want an entry for each rate", key, r, rates[r])
		}
		if kmin > kmax {
			return nil, c.errorf("KMIN_MAP", "KMIN_MAP has %v for %v, want at most KMAX_MAP's %v", kmin, r, kmax)
		}
		ecn = append(ecn, sim.ECNParams{Rate: r, Kmin: kmin, Kmax: kmax, Pmax: pmax})
	}
	return ecn, nil
}

// buffer is the packet memory of a switch.
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

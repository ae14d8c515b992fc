package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// SlowMux adds a delay to every packet of a mux.
type SlowMux struct {
	Host  model.NodeID
	Delay time.Duration // added to the service's
}

func (f SlowMux) String() string { return fmt.Sprintf("mux %d is slower by %v", f.Host, f.Delay) }

func (f SlowMux) check(n *Network) error {
	if f.Delay <= 0 {
		return fmt.Errorf("delay %v, want above 0", f.Delay)
	}
	return n.hasMux(f.Host)
}

func (f SlowMux) apply(n *Network) func() {
	m := n.nodes[f.Host].host.mux
	m.extraDelay += engine.Of(f.Delay)
	return func() { m.extraDelay -= engine.Of(f.Delay) }
}

// MisdirectingMux makes a mux send a share of flows to an address that does not
// answer, or drop them where To is zero.
type MisdirectingMux struct {
	Host  model.NodeID
	Share float64
	To    model.Addr // a host that does not serve them, or an unused address
	Seed  uint64
}

func (f MisdirectingMux) String() string {
	if f.To == (model.Addr{}) {
		return fmt.Sprintf("mux %d drops %.3g of flows", f.Host, f.Share)
	}
	return fmt.Sprintf("mux %d sends %.3g of flows to %v, which does not serve them", f.Host, f.Share, f.To)
}

func (f MisdirectingMux) check(n *Network) error {
	return errors.Join(n.hasMux(f.Host), checkShare(f.Share))
}

func (f MisdirectingMux) apply(n *Network) func() {
	return n.nodes[f.Host].host.mux.misdirected.add(diversion[model.Addr]{f.Seed, f.Share, f.To})
}

func (n *Network) hasMux(id model.NodeID) error {
	if !n.fabric.HasNode(id) || n.nodes[id].host == nil || n.nodes[id].host.mux == nil {
		return fmt.Errorf("node %d is not a mux", id)
	}
	return nil
}

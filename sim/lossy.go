package sim

import (
	"errors"
	"fmt"

	"github.com/weft-telemetry/weft/model"
)

// Lossy makes a link lose packets in one direction: silently, or corrupted so
// that the receiver discards and counts them.
type Lossy struct {
	Port    model.Port // the sending end
	Share   float64    // probability
	Damaged bool
}

func (f Lossy) String() string {
	return fmt.Sprintf("port %v loses %.3g of its packets", f.Port, f.Share)
}

func (f Lossy) check(n *Network) error {
	return errors.Join(n.hasPort(f.Port), checkShare(f.Share))
}

func (f Lossy) apply(n *Network) func() {
	p := n.Port(f.Port)
	im := &impairment{loss: f.Share, reason: DropSilent}
	if f.Damaged {
		im.reason = DropCorrupt
	}
	return p.impair.add(im)
}

// LossySwitch makes a switch drop packets without a counter. Match selects
// them; nil is all of them.
type LossySwitch struct {
	Switch model.NodeID
	Share  float64
	Match  func(key model.FlowKey) bool
}

func (f LossySwitch) String() string {
	return fmt.Sprintf("switch %d loses %.3g of its packets", f.Switch, f.Share)
}

func (f LossySwitch) check(n *Network) error {
	return errors.Join(n.hasSwitch(f.Switch), checkShare(f.Share))
}

func (f LossySwitch) apply(n *Network) func() {
	sw := n.nodes[f.Switch].sw
	im := &impairment{loss: f.Share, reason: DropSilent}
	if f.Match != nil {
		im.match = func(p *Packet) bool { return f.Match(p.Key) }
	}
	end := sw.loss.add(im)
	sw.updateSlowPath()
	return func() { end(); sw.updateSlowPath() }
}

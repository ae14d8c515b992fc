package sim

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Fault is an injected fault. Its start and end are the ground truth that a
// diagnosis is scored against.
type Fault interface {
	// String describes the fault in a sentence.
	String() string
	// check reports what the network lacks for it.
	check(n *Network) error
	// apply injects the fault and returns a function that removes it. check has
	// passed.
	apply(n *Network) (end func())
}

// Injection is a fault with its start and duration.
type Injection struct {
	At    model.Time    // simulated time
	For   time.Duration // 0: until the end
	Fault Fault
}

// Inject schedules a fault.
func (n *Network) Inject(in Injection) error {
	if err := in.Fault.check(n); err != nil {
		return fmt.Errorf("sim: fault %T: %w", in.Fault, err)
	}
	n.At(timeOf(in.At), func() {
		end := in.Fault.apply(n)
		if in.For > 0 {
			n.At(n.Now()+engine.Of(in.For), end)
		}
	})
	return nil
}

func (n *Network) hasPort(p model.Port) error {
	if !n.fabric.HasNode(p.Node) || n.fabric.Port(p) == nil {
		return fmt.Errorf("no port %v", p)
	}
	return nil
}

func (n *Network) hasSwitch(id model.NodeID) error {
	if !n.fabric.HasNode(id) || n.nodes[id].sw == nil {
		return fmt.Errorf("node %d is not a switch", id)
	}
	return nil
}

func (n *Network) hasHost(id model.NodeID) error {
	if !n.fabric.HasNode(id) || n.nodes[id].host == nil {
		return fmt.Errorf("node %d is not a host", id)
	}
	return nil
}

func checkShare(share float64) error {
	if share <= 0 || share > 1 {
		return fmt.Errorf("share %v, want above 0 and at most 1", share)
	}
	return nil
}

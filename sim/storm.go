package sim

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Storm makes a host send PAUSE frames: continuously, or alternating On and
// Off.
type Storm struct {
	Host     model.NodeID
	Priority model.Priority
	On, Off  time.Duration // Off 0: continuous
}

func (f Storm) String() string {
	return fmt.Sprintf("host %d sends PAUSE for priority %d", f.Host, f.Priority)
}

func (f Storm) check(n *Network) error {
	if err := n.hasHost(f.Host); err != nil {
		return err
	}
	if f.Priority >= numPriorities {
		return fmt.Errorf("priority %d, want 0 to 7", f.Priority)
	}
	return nil
}

func (f Storm) apply(n *Network) func() {
	h := n.nodes[f.Host].host
	over, on := false, false
	var turn func()
	turn = func() {
		if over {
			return
		}
		on = !on
		h.pause(f.Priority, on)
		if f.Off > 0 {
			wait := f.Off
			if on {
				wait = f.On
			}
			n.At(n.Now()+engine.Of(wait), turn)
		}
	}
	turn()
	return func() {
		over = true
		if on {
			h.pause(f.Priority, false)
		}
	}
}

// pause makes a host pause or resume a priority at its switches. They resume
// when no fault pauses them any more.
func (h *Host) pause(prio model.Priority, stop bool) {
	before := h.pausing[prio]
	if stop {
		h.pausing[prio]++
	} else {
		h.pausing[prio]--
	}
	if before == 0 || h.pausing[prio] == 0 {
		for _, p := range h.ports {
			p.sendPause(prio, stop)
		}
	}
}

package sim

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Clock is the offset and drift of a device's clock against the simulated time.
// Telemetry sees only that clock.
type Clock struct {
	Offset time.Duration
	Drift  float64 // seconds gained per second; 1e-6 is 1 ppm
}

// At reads the clock.
func (c Clock) At(now engine.Time) model.Time {
	t := now.Model()
	if c.Drift != 0 {
		t += model.Time(float64(t) * c.Drift)
	}
	return t.Add(c.Offset)
}

// SetClock sets the clock of a device.
func (n *Network) SetClock(id model.NodeID, c Clock) { n.nodes[id].clock = c }

// Clock reads the switch's clock.
func (sw *Switch) Clock() model.Time { return sw.node.clock.At(sw.w.now) }

// Clock reads the host's clock.
func (h *Host) Clock() model.Time { return h.node.clock.At(h.w.now) }

// Now returns the simulated time, from which the switch's clock differs.
func (sw *Switch) Now() engine.Time { return sw.w.now }

// Now returns the simulated time, from which the host's clock differs.
func (h *Host) Now() engine.Time { return h.w.now }

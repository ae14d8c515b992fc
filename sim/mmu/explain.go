package mmu

import (
	"sort"

	"github.com/weft-telemetry/weft/model"
)

// PauseBytes returns the fewest bytes that a lossless queue of the port must
// hold for PFC to fire when loaded queues (itself included, at least 1) hold
// the same and the rest are empty.
//
// With 1 it is also the fewest bytes in the whole switch at which the sender on
// this port can be paused: a byte in another queue lowers the threshold, but a
// byte in this one lowers it too and counts against it. So where the windows of
// all flows through a switch sum to less, PFC cannot fire there.
func (c *Config) PauseBytes(port model.PortID, loaded int) model.Bytes {
	t := c.Ports[port-1].threshold()
	room, n := int64(c.SharedBytes()), int64(max(loaded, 1))
	// Xoff falls as the queues fill, so bisection finds the first crossing.
	least := int64(1)
	if c.HPCC {
		least = 0
	}
	shared := least + int64(sort.Search(int(room)+1, func(i int) bool {
		s := least + int64(i)
		free := room - n*s
		return free < 0 || s >= t.xoffAt(free) // below 0: the last byte was charged to headroom
	}))
	return c.Reserve + model.Bytes(shared)
}

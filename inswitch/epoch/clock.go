package epoch

import (
	"math"

	"github.com/weft-telemetry/weft/model"
)

// clock tells the epoch of an instant. Most packets fall into the same one as
// the packet before, so it costs a comparison.
type clock struct {
	length int64
	ring   uint32
	start  model.Time
	number uint32
	index  int // in rings
}

// offset is how far into the current epoch an instant is, in ns, as far as that
// fits.
func (c *clock) offset(t model.Time) uint32 { return uint32(min(uint64(t-c.start), math.MaxUint32)) }

// hasPorts reports whether an instant is in the current epoch.
func (c *clock) contains(t model.Time) bool { return uint64(t-c.start) < uint64(c.length) }

// moveTo makes the epoch of an instant the present one.
func (c *clock) moveTo(t model.Time) {
	n := int64(t) / c.length
	if int64(t)%c.length < 0 {
		n--
	}
	c.start = model.Time(n * c.length)
	c.number = uint32(n)
	c.index = int(c.number % c.ring)
}

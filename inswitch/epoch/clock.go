package epoch

import (
	"math"

	"github.com/weft-telemetry/weft/model"
)

// clock maps instants to epochs. Most packets are in the same epoch as the
// packet before, so it costs a comparison.
type clock struct {
	length int64
	ring   uint32
	start  model.Time
	number uint32
	index  int // in rings
}

// offset returns how far into the current epoch an instant is, in ns,
// saturating at 32 bits.
func (c *clock) offset(t model.Time) uint32 { return uint32(min(uint64(t-c.start), math.MaxUint32)) }

// contains reports whether an instant is in the current epoch.
func (c *clock) contains(t model.Time) bool { return uint64(t-c.start) < uint64(c.length) }

// moveTo makes the epoch of an instant the current one.
func (c *clock) moveTo(t model.Time) {
	n := int64(t) / c.length
	if int64(t)%c.length < 0 {
		n--
	}
	c.start = model.Time(n * c.length)
	c.number = uint32(n)
	c.index = int(c.number % c.ring)
}

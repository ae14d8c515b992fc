package inhost

import (
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Budget limits what a host spends on telemetry: a token bucket of Rate and
// Burst. The zero value is unlimited.
type Budget struct {
	Rate  model.Rate
	Burst model.Bytes

	// fullAt is when the bucket is full again at the rate; it is empty the
	// duration of a burst before.
	fullAt model.Time
}

// Wait returns how long a packet of a size must wait from now on: 0 if the
// budget suffices. A packet larger than the burst waits for a full bucket.
func (b *Budget) Wait(now model.Time, size model.Bytes) time.Duration {
	if b.Rate <= 0 {
		return 0
	}
	return max(b.fullAt.Sub(now)-b.duration(max(b.Burst-size, 0)), 0)
}

// Spend takes a size from the budget. Call Wait first.
func (b *Budget) Spend(now model.Time, size model.Bytes) {
	if b.Rate > 0 {
		b.fullAt = max(b.fullAt, now).Add(b.duration(size))
	}
}

// duration returns how long bytes last at the rate.
func (b *Budget) duration(size model.Bytes) time.Duration {
	return time.Duration(float64(size) * 8e9 / float64(b.Rate))
}

package inhost

import (
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Budget bounds what a host spends on telemetry: a rate, and as much at once as
// was saved up, at most Burst. The zero value has no bound.
type Budget struct {
	Rate  model.Rate
	Burst model.Bytes

	// fullAt is when all that was taken is paid for at the rate: the bucket is
	// full at that time, and empty as long before it as the burst lasts.
	fullAt model.Time
}

// Wait is how long something of a size must wait from now on: 0 if there is
// room for it. What is larger than the burst waits for a full bucket.
func (b *Budget) Wait(now model.Time, size model.Bytes) time.Duration {
	if b.Rate <= 0 {
		return 0
	}
	return max(b.fullAt.Sub(now)-b.duration(max(b.Burst-size, 0)), 0)
}

// Spend spends a size. Ask Wait first.
func (b *Budget) Spend(now model.Time, size model.Bytes) {
	if b.Rate > 0 {
		b.fullAt = max(b.fullAt, now).Add(b.duration(size))
	}
}

// duration is how long bytes last at the rate.
func (b *Budget) duration(size model.Bytes) time.Duration {
	return time.Duration(float64(size) * 8e9 / float64(b.Rate))
}

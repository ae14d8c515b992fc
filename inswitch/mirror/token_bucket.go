package mirror

import (
	"math"

	"github.com/weft-telemetry/weft/model"
)

// tokenBucket fills at the rate and holds the burst, in bit-nanoseconds per
// second: a nanosecond adds the rate as a whole number, so that nothing is lost
// to rounding.
type tokenBucket struct {
	rate   int64 // 0: unlimited
	limit  int64
	tokens int64
	last   model.Time
}

const perByte int64 = 8e9

func newTokenBucket(rate model.Rate, burst model.Bytes) tokenBucket {
	limit := int64(math.MaxInt64 / 2)
	if int64(burst) < limit/perByte {
		limit = int64(burst) * perByte
	}
	return tokenBucket{rate: int64(rate), limit: limit, tokens: limit, last: math.MinInt64}
}

// spend takes bytes from the bucket if it holds enough. Mirrors that are not
// urgent leave a quarter of the bucket to those that are, so that a flood of
// samples cannot hide the packets that an operator marked.
func (b *tokenBucket) spend(now model.Time, bytes int, urgent bool) bool {
	if b.rate == 0 {
		return true
	}
	b.refill(now)
	need := int64(bytes) * perByte
	if floor := b.limit / 4; b.tokens < need || !urgent && b.tokens-need < floor {
		return false
	}
	b.tokens -= need
	return true
}

func (b *tokenBucket) refill(now model.Time) {
	if b.last == math.MinInt64 {
		b.last = now
		return
	}
	since := int64(now - b.last)
	b.last = now // a clock that was set back adds nothing
	switch {
	case since <= 0:
	case since >= b.limit/b.rate:
		b.tokens = b.limit
	default:
		b.tokens = min(b.limit, b.tokens+since*b.rate)
	}
}

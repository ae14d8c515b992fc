package admission

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// buckets is the number of token buckets. Sources that share one share its rate: a
// flood from a single address costs one honest source in 16384 its own.
const buckets = 1 << 14

// rateLimiter gives every source address the same rate, in constant memory and time.
// Sources are assigned to buckets by a hash with a secret seed. Several
// goroutines may use it.
type rateLimiter struct {
	seed     maphash.Seed
	interval time.Duration // of a datagram; 0: no limit
	burst    time.Duration
	// due is when a bucket will be full again: the arrival time of a datagram if all
	// before it had come one interval after the other.
	due [buckets]atomic.Int64
}

// burstTime is of how much time the datagrams may come at once: a collector that
// was not scheduled reads afterwards what the kernel has queued meanwhile.
const burstTime = 2 * time.Second

// newRateLimiter allows a number of datagrams a second of each source; 0: any.
func newRateLimiter(rate float64) *rateLimiter {
	l := &rateLimiter{seed: maphash.MakeSeed(), burst: burstTime}
	if rate > 0 {
		l.interval = max(time.Duration(float64(time.Second)/rate), 1)
	}
	return l
}

// take takes the token of a datagram, and reports whether there was one.
func (l *rateLimiter) take(now model.Time, from netip.Addr) bool {
	if l.interval == 0 {
		return true
	}
	due := &l.due[l.bucket(from)]
	for {
		old := due.Load()
		// After a clock was set back, a bucket would be empty until the clock has
		// caught up: it starts again.
		at := int64(now)
		if ahead := old - at; ahead > 0 && ahead <= int64(l.burst+l.interval) {
			at = old
		}
		if at-int64(now) > int64(l.burst) {
			return false
		}
		if due.CompareAndSwap(old, at+int64(l.interval)) {
			return true
		}
	}
}

// bucket is that of a source.
func (l *rateLimiter) bucket(from netip.Addr) uint64 {
	return maphash.Comparable(l.seed, from) % buckets
}

package translate

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Target is the destination of a Router: a Translator, or one that a host locks.
// Admit and AdmitRun must be safe to call while another goroutine puts reports.
type Target interface {
	// Admit returns whether a report can be put now: dta.Stored, dta.Unserved
	// without memory for it, dta.RateLimited while the collector is overloaded.
	Admit(r *dta.Report) dta.Verdict
	// AdmitRun is Admit for all reports of a run.
	AdmitRun(first *dta.Report, run []byte, count int) dta.Verdict
	// Put translates reports, whose keys and data alias the datagrams. It must not
	// keep them.
	Put(now model.Time, batch []dta.Report)
	// PutRun translates packed reports of one format, as in a datagram; Appends
	// are to one list. The first is also passed parsed.
	PutRun(now model.Time, first *dta.Report, run []byte, count int)
}

// batchSize is the number of reports that a Router gathers for a target: enough to
// make the cost of a lock around Put negligible, few enough for the first-level
// cache (64 reports of 80 bytes).
const batchSize = 64

// Router is a Sink that spreads reports over targets by key, so that all
// reports about a key, and all entries of a list, go to one. It refuses reports
// that a target has no memory for and those that exceed its rate limit.
type Router struct {
	targets []Target
	limits  []Limiter
	batches [][]dta.Report
}

// NewRouter returns a Router over at least one target, each with a separate copy
// of the limit.
func NewRouter(limit Limiter, targets ...Target) *Router {
	r := &Router{targets: targets}
	for range targets {
		r.limits = append(r.limits, limit)
		r.batches = append(r.batches, make([]dta.Report, 0, batchSize))
	}
	return r
}

// Put queues a report for its target. Flush must follow before the datagram's
// memory is used again.
func (r *Router) Put(now model.Time, rep *dta.Report) dta.Verdict {
	i := 0
	if len(r.targets) > 1 {
		i = Shard(rep, len(r.targets))
	}
	if v := r.targets[i].Admit(rep); v != dta.Stored {
		return v
	}
	if !r.limits[i].Allow(now) {
		return dta.RateLimited
	}
	r.batches[i] = append(r.batches[i], *rep)
	if len(r.batches[i]) == batchSize {
		r.flush(now, i)
	}
	return dta.Stored
}

// PutRun forwards a run unchanged, if there is one target that admits all of it,
// and no rate limit.
func (r *Router) PutRun(now model.Time, first *dta.Report, run []byte, count int) bool {
	if len(r.targets) > 1 || r.limits[0].gap != 0 || first.Immediate || r.targets[0].AdmitRun(first, run, count) != dta.Stored {
		return false
	}
	r.flush(now, 0) // earlier reports are written first
	r.targets[0].PutRun(now, first, run, count)
	return true
}

// Flush forwards all queued reports to the targets.
func (r *Router) Flush(now model.Time) {
	for i := range r.targets {
		r.flush(now, i)
	}
}

func (r *Router) flush(now model.Time, i int) {
	if len(r.batches[i]) > 0 {
		r.targets[i].Put(now, r.batches[i])
		r.batches[i] = r.batches[i][:0]
	}
}

// Shard returns the index of the collector, of n, for a report.
func Shard(r *dta.Report, n int) int {
	if r.Primitive == dta.Append {
		return ShardOfList(r.List, n)
	}
	return ShardOfKey(r.Key, n)
}

// ShardOfList returns the index of the collector, of n, that has a list.
func ShardOfList(l dta.ListID, n int) int { return int(uint64(l) % uint64(n)) }

// ShardOfKey returns the index of the collector, of n, that has a key. It must be
// independent of the key's slot, or each collector would use only a part of its
// slots: the structures hash with multiplications, this is FNV-1a with another
// mixing step for its high bits.
func ShardOfKey(key []byte, n int) int {
	h := uint64(0xcbf29ce484222325)
	for _, b := range key {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	h ^= h >> 29
	h *= 0xff51afd7ed558ccd
	hi, _ := bits.Mul64(h, uint64(n))
	return int(hi)
}

// Limiter is a token bucket rate limiter. The zero Limiter has no limit.
type Limiter struct {
	gap   time.Duration // between reports at the full rate, in units of 1/scale ns
	burst time.Duration // how far ahead of the rate a burst may run, same unit
	clock model.Time    // time of the last update
	ahead time.Duration // how far ahead of the rate the reports are
}

// scale lets a Limiter handle gaps of fractions of a nanosecond.
const scale = 1024

// NewLimiter returns a Limiter with a rate in reports per second and a burst in
// reports. A rate of 0 means no limit.
func NewLimiter(perSecond float64, burst int) (Limiter, error) {
	if perSecond == 0 {
		return Limiter{}, nil
	}
	if !(perSecond >= 0.001 && perSecond <= 1e9) || burst < 1 { // NaN is neither
		return Limiter{}, fmt.Errorf("translate: rate of %g reports/s in bursts of %d, want 0.001 to 1e9 in bursts of at least 1", perSecond, burst)
	}
	gap := time.Duration(float64(time.Second) * scale / perSecond)
	return Limiter{gap: gap, burst: gap * time.Duration(burst)}, nil
}

// Allow reports whether a report may pass now, and counts it if so.
func (l *Limiter) Allow(now model.Time) bool {
	if l.gap == 0 {
		return true
	}
	if now > l.clock {
		// A long idle time empties the bucket; shorter ones cannot overflow.
		passed := now.Sub(l.clock)
		l.clock = now
		if passed > l.ahead/scale {
			l.ahead = 0
		} else {
			l.ahead -= passed * scale
		}
	}
	if l.ahead+l.gap > l.burst {
		return false
	}
	l.ahead += l.gap
	return true
}

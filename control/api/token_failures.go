package api

import (
	"cmp"
	"context"
	"hash/maphash"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// tokenFailures counts wrong tokens by client address, and delays further checks
// of an address with many. It is a delay and not a lock-out: others may share the
// address. Its memory is constant: an address that fails takes the place of the
// one of its row whose last failure is oldest.
type tokenFailures struct {
	free int // failures of an address before its checks are delayed
	now  func() time.Time
	seed maphash.Seed

	mu   sync.Mutex
	rows [failureRows][failureColumns]addressFailures
}

const (
	failureRows    = 256
	failureColumns = 4

	firstTokenDelay = 10 * time.Millisecond // doubles with every failure
	// maxTokenDelay bounds what someone with a valid token waits whose address
	// guesses. One address guesses at most twice per second and connection.
	maxTokenDelay = 500 * time.Millisecond
	// forgetFailures is the time without a failure after which an address starts
	// anew.
	forgetFailures = 10 * time.Minute
)

type addressFailures struct {
	address netip.Prefix // not valid: empty
	count   uint64
	last    time.Time
}

func newTokenFailures(free int) *tokenFailures {
	return &tokenFailures{free: free, now: time.Now, seed: maphash.MakeSeed()}
}

// find returns the entry of an address, or the one that it may replace.
func (t *tokenFailures) find(address netip.Prefix) (e *addressFailures, found bool) {
	row := &t.rows[maphash.Comparable(t.seed, address)%failureRows]
	e = &row[0]
	for i := range row {
		if row[i].address == address && row[i].address.IsValid() {
			return &row[i], t.now().Sub(row[i].last) < forgetFailures
		}
		if row[i].last.Before(e.last) {
			e = &row[i]
		}
	}
	return e, false
}

// delay returns how long a check of a token from an address must wait.
func (t *tokenFailures) delay(address netip.Prefix) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, found := t.find(address)
	if !found || e.count < uint64(t.free) {
		return 0
	}
	if doublings := e.count - uint64(t.free); doublings < 8 {
		return min(firstTokenDelay<<doublings, maxTokenDelay)
	}
	return maxTokenDelay
}

// wait delays a check of a token.
func (t *tokenFailures) wait(ctx context.Context, address netip.Prefix, conn *trackedConn) {
	d := t.delay(address)
	if d == 0 {
		return
	}
	conn.setPhase(checkingPhase)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// add counts a wrong token.
func (t *tokenFailures) add(address netip.Prefix) {
	if !address.IsValid() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e, found := t.find(address)
	if !found {
		*e = addressFailures{address: address}
	}
	e.count++
	e.last = t.now()
}

// reset forgets the failures of an address that has shown a valid token.
func (t *tokenFailures) reset(address netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, found := t.find(address); found {
		*e = addressFailures{}
	}
}

// most returns the addresses with the most failures, at most n of them.
func (t *tokenFailures) most(n int) (list []addressFailures) {
	t.mu.Lock()
	now := t.now()
	for i := range t.rows {
		for _, e := range t.rows[i] {
			if e.address.IsValid() && now.Sub(e.last) < forgetFailures {
				list = append(list, e)
			}
		}
	}
	t.mu.Unlock()
	slices.SortFunc(list, func(a, b addressFailures) int {
		return cmp.Or(cmp.Compare(b.count, a.count), a.address.Addr().Compare(b.address.Addr()))
	})
	return list[:min(n, len(list))]
}

// text is the address as people write it: without the length of a prefix that is
// one host.
func (f *addressFailures) text() string {
	if f.address.IsSingleIP() {
		return f.address.Addr().String()
	}
	return f.address.String()
}

package api

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestCoalescedAnswers: equal concurrent requests cause one store query, different
// ones cause one each, and errors are not kept.
func TestCoalescedAnswers(t *testing.T) { synctest.Test(t, testCoalescedAnswers) }

func testCoalescedAnswers(t *testing.T) {
	s, k := newServer(t)
	k.delay = 20 * time.Millisecond
	ask := func(path string) {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if w := do(s.Handler(), "GET", Prefix+path, ""); w.Code != 200 {
					t.Errorf("GET %s = %d %s", path, w.Code, w.Body)
				}
			})
		}
		all.Wait()
	}
	ask("/incidents")
	if k.queries != 1 {
		t.Errorf("20 equal requests caused %d store queries; want 1", k.queries)
	}
	k.queries = 0
	ask("/incidents?limit=1")
	if k.queries != 1 {
		t.Errorf("20 requests with another limit caused %d store queries; want 1", k.queries)
	}
	k.fail = errDisk
	if w := do(s.Handler(), "GET", Prefix+"/traces", ""); w.Code != 500 {
		t.Errorf("failing store = %d", w.Code)
	}
	k.fail = nil
	ask("/traces")
	time.Sleep(coalesceTTL)
	k.queries = 0
	ask("/incidents")
	if k.queries != 1 {
		t.Errorf("20 requests after the TTL caused %d store queries; want 1", k.queries)
	}
	s.ForgetAnswers()
	ask("/incidents")
	if k.queries != 2 {
		t.Errorf("40 requests, and forgotten answers between them, caused %d store queries; want 2", k.queries)
	}
	for i := range 2 * maxCoalesced { // the number of kept answers is bounded
		do(s.Handler(), "GET", Prefix+"/incidents?cause="+string(rune('a'+i%26))+string(rune('a'+i/26)), "")
	}
	if n := len(s.coalescer.answers); n > maxCoalesced {
		t.Errorf("%d answers are kept", n)
	}
}

package api

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSharedAnswers: requests of the same at one time are one question to the
// store, of different things as many, and an error is not kept.
func TestSharedAnswers(t *testing.T) { synctest.Test(t, testSharedAnswers) }

func testSharedAnswers(t *testing.T) {
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
		t.Errorf("20 equal requests made %d questions; want one", k.queries)
	}
	k.queries = 0
	ask("/incidents?limit=1")
	if k.queries != 1 {
		t.Errorf("20 requests of another thing made %d questions; want one", k.queries)
	}
	k.fail = errDisk
	if w := do(s.Handler(), "GET", Prefix+"/traces", ""); w.Code != 500 {
		t.Errorf("a store that fails = %d", w.Code)
	}
	k.fail = nil
	ask("/traces")
	time.Sleep(coalesceTTL)
	k.queries = 0
	ask("/incidents")
	if k.queries != 1 {
		t.Errorf("20 requests when the answer is old made %d questions; want one", k.queries)
	}
	for i := range 2 * maxCoalesced { // no more than so many are kept
		do(s.Handler(), "GET", Prefix+"/incidents?cause="+string(rune('a'+i%26))+string(rune('a'+i/26)), "")
	}
	if n := len(s.coalescer.answers); n > maxCoalesced {
		t.Errorf("%d answers are kept", n)
	}
}

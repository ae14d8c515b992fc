package count

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// TestReadIsNeverBelow compares a table with plain sums: never below, exact in a
// table large enough for all, and equal when read from two halves.
func TestReadIsNeverBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Layout: Weft, Cells: 4 * rapid.Uint64Range(1, 16).Draw(t, "rows")}
		if rapid.Bool().Draw(t, "prototype") {
			cfg = Config{Layout: Prototype, Cells: 16}
		}
		whole, left, right := open(t, cfg), open(t, cfg), open(t, cfg)
		defer whole.Region().Close()
		defer left.Region().Close()
		defer right.Region().Close()
		copies := rapid.IntRange(1, 4).Draw(t, "copies")
		truth := make(map[uint32]uint64)
		for range rapid.IntRange(0, 50).Draw(t, "reports") {
			k := rapid.Uint32Range(0, 20).Draw(t, "key")
			delta := rapid.Uint64Range(0, 1000).Draw(t, "delta")
			key := binary.BigEndian.AppendUint32(nil, k)
			half := left
			if rapid.Bool().Draw(t, "right") {
				half = right
			}
			_ = whole.Writer(0).Add(key, delta, copies)
			_ = half.Writer(1).Add(key, delta, copies)
			truth[k] += delta
		}
		for k := range uint32(21) {
			key := binary.BigEndian.AppendUint32(nil, k)
			got, err := whole.Read(key, copies)
			if err != nil || got.Sum < truth[k] {
				t.Fatalf("Read(%d) = %+v, %v; want at least %d", k, got, err, truth[k])
			}
			both, err := ReadSum(key, copies, left, right)
			if err != nil || both != got {
				t.Fatalf("Sum(%d) of two halves = %+v, %v; want %+v", k, both, err, got)
			}
		}
	})
}

// TestClaimCountMinBound measures how often a read exceeds the true sum by more
// than its bound.
func TestClaimCountMinBound(t *testing.T) {
	for copies := 1; copies <= 4; copies++ {
		tab := open(t, Config{Layout: Weft, Cells: 4096})
		r := rand.New(rand.NewPCG(1, uint64(copies)))
		truth := make(map[uint32]uint64)
		w := tab.Writer(0)
		for range 40_000 {
			// A few keys have most of the sum, as flows do.
			k := uint32(1 / (r.Float64() + 1e-5))
			_ = w.Add(binary.BigEndian.AppendUint32(nil, k), 10, copies)
			truth[k] += 10
		}
		beyond, far := 0, 0.0
		for k, want := range truth {
			a, _ := tab.Read(binary.BigEndian.AppendUint32(nil, k), copies)
			excess := float64(a.Sum - want)
			far = max(far, excess)
			if excess > a.Bound.Excess {
				beyond++
			}
			if float64(beyond) > a.Bound.Failing*float64(len(truth)) {
				t.Fatalf("N=%d: %d of %d keys are more than %.0f above; want a share of at most %.3f", copies, beyond, len(truth), a.Bound.Excess, a.Bound.Failing)
			}
		}
		if far == 0 && copies == 1 {
			t.Errorf("N=1: no key is above its sum; the test does not reach the bound")
		}
		_ = tab.Region().Close()
	}
}

// TestSharedWritersLoseNothing adds from several goroutines at once.
func TestSharedWritersLoseNothing(t *testing.T) {
	tab := open(t, Config{Layout: Weft, Cells: 8})
	defer tab.Region().Close()
	var wg sync.WaitGroup
	const each = 20_000
	for i := range 4 {
		w := tab.Writer(i)
		wg.Go(func() {
			for range each {
				_ = w.AddShared([]byte("key"), 1, 2)
			}
		})
	}
	for range 100 { // readers need no lock
		if _, err := tab.Read([]byte("key"), 2); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	got, err := tab.Read([]byte("key"), 2)
	if err != nil || got.Sum != 4*each {
		t.Errorf("Read = %+v, %v; want %d", got, err, 4*each)
	}
	if c := tab.Region().Counts(); c.Writes != 2*4*each || c.Total != 2*4*each {
		t.Errorf("Counts = %+v; want %d writes of 1", c, 2*4*each)
	}
}

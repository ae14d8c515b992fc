package postcard

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/collect/bound"
)

// slowRead is the reference reader: try every path of known values for one whose
// chunk is in memory. It needs few values and hops.
func slowRead(tab *Table, key []byte, q Query, values []uint32) (Outcome, []uint32, int) {
	copies := q.Copies
	if copies == 0 {
		copies = tab.Copies()
	}
	p, _ := tab.HashKey(key)
	var found [][]uint32
	valid := 0
	for n := range copies {
		chunk := make([]byte, tab.ChunkSize())
		_ = tab.Region().Read(tab.Offset(p, n), chunk)
		for path := range paths(append(values[:len(values):len(values)], Blank), tab.cfg.Hops) {
			whole, _ := tab.AppendChunk(nil, p, path)
			if string(whole) != string(chunk) {
				continue
			}
			for len(path) > 0 && path[len(path)-1] == Blank {
				path = path[:len(path)-1]
			}
			if slices.Contains(path, Blank) && !q.Partial {
				continue
			}
			valid++
			if !slices.ContainsFunc(found, func(f []uint32) bool { return slices.Equal(f, path) }) {
				found = append(found, slices.Clone(path))
			}
		}
	}
	switch len(found) {
	case 0:
		return Absent, nil, 0
	case 1:
		return Found, found[0], valid
	}
	return Conflict, nil, valid
}

// paths yields every sequence of n of the values.
func paths(values []uint32, n int) func(func([]uint32) bool) {
	return func(yield func([]uint32) bool) {
		path := make([]uint32, n)
		var fill func(i int) bool
		fill = func(i int) bool {
			if i == n {
				return yield(path)
			}
			for _, v := range values {
				path[i] = v
				if !fill(i + 1) {
					return false
				}
			}
			return true
		}
		fill(0)
	}
}

func TestReadEqualsSlowRead(t *testing.T) {
	values := []uint32{1, 2, 0xfffffffe}
	rapid.Check(t, func(t *rapid.T) {
		cfg := configs(t)
		if cfg.Layout != Prototype {
			cfg.Chunks = min(cfg.Chunks, 8)
			cfg.Hops = min(cfg.Hops, 4)
			cfg.Bits = max(cfg.Bits, 6)
		}
		known, err := NewValues(cfg.Bits, values...)
		if err != nil {
			t.Skip("two values have the same code")
		}
		tab := open(t, cfg)
		defer tab.Region().Close()
		w := tab.Writer(0)
		var keys [][]byte
		value := rapid.SampledFrom(append([]uint32{Blank}, values...))
		for range rapid.IntRange(0, 12).Draw(t, "paths") {
			key := keyOf(t, cfg)
			if len(keys) > 0 && rapid.Bool().Draw(t, "again") {
				key = rapid.SampledFrom(keys).Draw(t, "old key")
			}
			keys = append(keys, key)
			hops := rapid.SliceOfN(value, 0, cfg.Hops).Draw(t, "hops")
			if err := w.Write(key, hops, rapid.IntRange(1, tab.Copies()).Draw(t, "copies")); err != nil {
				t.Fatal(err)
			}
		}
		keys = append(keys, keyOf(t, cfg))
		for _, key := range keys {
			q := Query{Copies: rapid.IntRange(0, tab.Copies()).Draw(t, "copies"), Values: known, Partial: rapid.Bool().Draw(t, "partial")}
			outcome, hops, valid := slowRead(tab, key, q, values)
			got, err := tab.Read(key, q)
			if err != nil || got.Outcome != outcome || !slices.Equal(got.Hops, hops) || got.Valid != valid {
				t.Fatalf("Read(%x, %+v) = %+v, %v; want %v %v in %d copies", key, q, got, err, outcome, hops, valid)
			}
		}
	})
}

// TestSealedNeedsNoValues reads without a set of values.
func TestSealedNeedsNoValues(t *testing.T) {
	tab := open(t, DefaultConfig(1<<16))
	defer tab.Region().Close()
	hops := []uint32{5, 0, 0xfffffffe, Blank, 7}
	if err := tab.Writer(0).Write([]byte("key"), hops, 2); err != nil {
		t.Fatal(err)
	}
	if a, err := tab.Read([]byte("key"), Query{Copies: 2}); err != nil || a.Outcome != Absent {
		t.Errorf("Read of a path with a hole = %+v, %v; want none without Partial", a, err)
	}
	a, err := tab.Read([]byte("key"), Query{Copies: 2, Partial: true})
	if err != nil || a.Outcome != Found || !slices.Equal(a.Hops, hops) || a.Valid != 2 || a.Bound.Empty <= 0 {
		t.Errorf("Read = %+v, %v; want %v in 2 copies, with a bound", a, err, hops)
	}
	plain := open(t, Config{Layout: Plain, Chunks: 8, Hops: 5, Bits: 32})
	defer plain.Region().Close()
	if _, err := plain.Read([]byte("key"), Query{}); err != ErrValues {
		t.Errorf("Read of a plain table without values = %v; want ErrValues", err)
	}
}

func TestEmptyMemoryAnswersNothing(t *testing.T) {
	for _, layout := range []Layout{Sealed, Plain, Prototype} {
		tab := open(t, Config{Layout: layout, Chunks: 64, Hops: 5, Bits: 32})
		known, _ := NewValues(32, 1, 2, 3)
		for i := range uint32(1000) {
			a, err := tab.Read(binary.BigEndian.AppendUint32(nil, i), Query{Values: known})
			if err != nil || a.Outcome != Absent {
				t.Fatalf("an empty %s table answers %+v, %v", layout, a, err)
			}
		}
		_ = tab.Region().Close()
	}
}

// TestClaimErrorBounds measures how often a read fails and checks that it is below
// formulas (9) to (12), with so few bits that random matches happen. A seal
// makes wrong answers rarer than the paper's chunk by 2^32: none is observed.
func TestClaimErrorBounds(t *testing.T) {
	for _, tc := range []struct {
		layout        Layout
		values, bits  int
		hops, n, keys int
		alpha         float64
	}{
		{Plain, 15, 6, 2, 1, 20000, 1},
		{Plain, 15, 6, 2, 2, 20000, 0.5},
		{Plain, 40, 8, 2, 2, 20000, 1},
		{Plain, 100, 32, 5, 2, 10000, 0.1},
		{Sealed, 15, 6, 2, 2, 10000, 0.5},
	} {
		tab := open(t, Config{Layout: tc.layout, Chunks: 1 << 13, Hops: tc.hops, Bits: tc.bits})
		known := &Values{}
		var values []uint32
		for v := uint32(1); len(values) < tc.values; v++ { // those with a unique code
			if k, err := NewValues(tc.bits, append(values, v)...); err == nil {
				known, values = k, append(values, v)
			}
		}
		w := tab.Writer(0)
		hopsOf := func(i uint64) []uint32 {
			hops := make([]uint32, tc.hops)
			for h := range hops {
				hops[h] = values[(i*0x9e3779b97f4a7c15>>(8*h)&0xffff)%uint64(len(values))]
			}
			return hops
		}
		age := uint64(tc.alpha * (1 << 13))
		var empty, wrong float64
		for i := range age + uint64(tc.keys) {
			key := binary.LittleEndian.AppendUint64(nil, i)
			if err := w.Write(key, hopsOf(i), tc.n); err != nil {
				t.Fatal(err)
			}
			if i < age {
				continue
			}
			old := binary.LittleEndian.AppendUint64(nil, i-age)
			a, err := tab.Lookup(nil, old, Query{Copies: tc.n, Values: known})
			switch {
			case err != nil:
				t.Fatal(err)
			case a.Outcome != Found:
				empty++
			case !slices.Equal(a.Hops, hopsOf(i-age)):
				wrong++
			}
		}
		b := tab.Bound(bound.Load(tc.alpha*float64(tc.n)), Query{Copies: tc.n, Values: known})
		n := float64(tc.keys)
		slack := func(p float64) float64 { return 4 * math.Sqrt(p/n) }
		if empty/n > b.Empty+slack(b.Empty) || empty/n < 0.85*b.Empty-slack(b.Empty) {
			t.Errorf("%+v: %.4f empty; want close under %.4f", tc, empty/n, b.Empty)
		}
		if wrong/n > b.Wrong+slack(b.Wrong) {
			t.Errorf("%+v: %.5f wrong; want at most %.5f", tc, wrong/n, b.Wrong)
		}
		if tc.layout == Plain && tc.bits < 32 && wrong == 0 {
			t.Errorf("%+v: no wrong answer; the test does not reach the bound", tc)
		}
		_ = tab.Region().Close()
	}
}

// TestNoTornPath has writers that overwrite the same keys with paths whose hops
// all identify their write, and a reader that searches for mixtures.
func TestNoTornPath(t *testing.T) {
	tab := open(t, Config{Layout: Sealed, Chunks: 4, Hops: 15, Bits: 32})
	defer tab.Region().Close()
	keys := [][]byte{{1}, {2}, {3}}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for i := range 2 {
		w := tab.Writer(i)
		wg.Go(func() {
			hops := make([]uint32, 15)
			for v := uint32(i); !stop.Load(); v += 2 {
				for h := range hops {
					hops[h] = v
				}
				_ = w.Write(keys[v%3], hops, 2)
			}
		})
	}
	found := 0
	dst := make([]uint32, 0, 64)
	for i := range 100_000 {
		a, err := tab.Lookup(dst, keys[i%3], Query{Copies: 2})
		if err != nil {
			t.Fatal(err)
		}
		if a.Outcome != Found {
			continue
		}
		found++
		for _, v := range a.Hops {
			if v != a.Hops[0] || v%3 != uint32(i%3) {
				t.Fatalf("key %d has a path of several writes: %v", i%3, a.Hops)
			}
		}
	}
	stop.Store(true)
	wg.Wait()
	if found == 0 {
		t.Error("no path was found while writers ran; want some")
	}
}

func TestValues(t *testing.T) {
	if _, err := NewValues(2, 1, 2, 3, 4); err == nil {
		t.Error("NewValues of 4 values and a blank with codes of 2 bits works; want a clash")
	}
	var all []uint32
	for i := range uint32(1 << 12) {
		all = append(all, i*7)
	}
	v, err := NewValues(32, append(all, all...)...)
	if err != nil || v.Len() != len(all) {
		t.Fatalf("NewValues = %d values, %v; want %d", v.Len(), err, len(all))
	}
	for i := range uint32(1 << 15) {
		if got, want := v.contains(i), i%7 == 0 && i/7 < 1<<12; got != want {
			t.Fatalf("has(%d) = %v; want %v", i, got, want)
		}
	}
}

func TestLookupAllocs(t *testing.T) {
	tab := open(t, DefaultConfig(4096))
	defer tab.Region().Close()
	key, dst := make([]byte, 13), make([]uint32, 0, 32)
	_ = tab.Writer(0).Write(key, []uint32{1, 2, 3}, 2)
	if n := testing.AllocsPerRun(100, func() { _, _ = tab.Lookup(dst, key, Query{}) }); n != 0 {
		t.Errorf("Lookup allocates %v times", n)
	}
}

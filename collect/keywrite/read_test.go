package keywrite

import (
	"bytes"
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/collect/bound"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/slothash"
)

// slowRead is the reference reader: take the value of each slot, encode the slot
// that the key would have with it, and compare; then count.
func slowRead(tab *Table, key []byte, q Query) (Outcome, []byte, int) {
	copies := q.Copies
	if copies == 0 {
		copies = 4
	}
	p, _ := tab.HashKey(key)
	votes := make(map[string]int)
	for n := range copies {
		slot := make([]byte, tab.SlotSize())
		_ = tab.Region().Read(tab.Offset(p, n), slot)
		at := tab.cfg.sumBytes()
		value := slot[at : at+tab.cfg.Value]
		if whole, _ := tab.AppendSlot(nil, p, value); bytes.Equal(whole, slot) {
			votes[string(value)]++
		}
	}
	best, winners := 0, []string(nil)
	for v, n := range votes {
		if n > best {
			best, winners = n, nil
		}
		if n == best {
			winners = append(winners, v)
		}
	}
	switch {
	case best == 0:
		return Absent, nil, 0
	case len(winners) > 1:
		return Conflict, nil, best
	case best < q.Consensus:
		return NoConsensus, nil, best
	}
	return Found, []byte(winners[0]), best
}

func TestReadEqualsSlowRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := configs(t)
		cfg.Slots = min(cfg.Slots, 16)
		tab := open(t, cfg)
		defer tab.Region().Close()
		w := tab.Writer(0)
		var keys [][]byte
		for range rapid.IntRange(0, 20).Draw(t, "reports") {
			key := keyOf(t, cfg)
			if len(keys) > 0 && rapid.Bool().Draw(t, "again") {
				key = rapid.SampledFrom(keys).Draw(t, "old key")
			}
			keys = append(keys, key)
			value := rapid.SliceOfN(rapid.ByteRange(0, 2), cfg.Value, cfg.Value).Draw(t, "value")
			if err := w.Write(key, value, rapid.IntRange(1, 4).Draw(t, "copies")); err != nil {
				t.Fatal(err)
			}
		}
		keys = append(keys, keyOf(t, cfg))
		for _, key := range keys {
			q := Query{Copies: rapid.IntRange(0, 4).Draw(t, "copies"), Consensus: rapid.IntRange(0, 4).Draw(t, "consensus")}
			outcome, value, votes := slowRead(tab, key, q)
			got, err := tab.Read(key, q)
			if err != nil || got.Outcome != outcome || !bytes.Equal(got.Value, value) || got.Votes != votes {
				t.Fatalf("Read(%x, %+v) = %+v, %v; want %v %x by %d votes", key, q, got, err, outcome, value, votes)
			}
		}
	})
}

// TestEmptyMemoryAnswersNothing checks that memory that was never written is
// valid for no key, with checksums so short that zeros would match by chance.
func TestEmptyMemoryAnswersNothing(t *testing.T) {
	for _, check := range []int{1, 8, 32, 64} {
		tab := open(t, Config{Layout: Weft, Slots: 64, Value: 4, Check: check})
		for i := range uint32(2000) {
			if a, _ := tab.Read(binary.LittleEndian.AppendUint32(nil, i), Query{}); a.Outcome != Absent {
				t.Fatalf("an empty table of %d check bits answers %+v", check, a)
			}
		}
		_ = tab.Region().Close()
	}
}

// failures writes one generation of keys, then load more keys, and queries the
// first.
func failures(t *testing.T, cfg Config, n int, alpha float64) (empty, wrong float64, keys int) {
	tab := open(t, cfg)
	defer tab.Region().Close()
	w := tab.Writer(0)
	key := make([]byte, 8)
	value := make([]byte, cfg.Value)
	write := func(i uint64) {
		binary.LittleEndian.PutUint64(key, i)
		binary.LittleEndian.PutUint32(value, uint32(i*2654435761))
		if err := w.Write(key, value, n); err != nil {
			t.Fatal(err)
		}
	}
	// Queried keys are few among the later ones, so that each sees the same load.
	later := int(alpha * float64(cfg.Slots))
	keys = 200
	rounds := 40
	next := uint64(0)
	for range rounds {
		first := next
		for range later {
			write(next)
			next++
		}
		// Query the keys that are exactly later writes old: the oldest of this
		// round, each followed by one more write to keep its age.
		for i := range uint64(keys) {
			binary.LittleEndian.PutUint64(key, first+i)
			want := uint32((first + i) * 2654435761)
			a, err := tab.Read(key, Query{Copies: n})
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case a.Outcome != Found:
				empty++
			case binary.LittleEndian.Uint32(a.Value) != want:
				wrong++
			}
			write(next)
			next++
		}
	}
	total := float64(keys * rounds)
	return empty / total, wrong / total, keys * rounds
}

// TestClaimErrorBounds measures how often a read fails and checks that it is
// below the paper's formulas (1) to (4), and not far below: with checksums of 8
// bits, so that wrong answers happen.
func TestClaimErrorBounds(t *testing.T) {
	for _, tc := range []struct {
		n     int
		check int
		alpha float64
	}{{1, 32, 0.1}, {2, 32, 0.1}, {4, 32, 0.1}, {1, 8, 1}, {2, 8, 0.5}, {2, 8, 2}, {4, 6, 0.5}} {
		empty, wrong, n := failures(t, Config{Layout: Weft, Slots: 1 << 14, Value: 4, Check: tc.check}, tc.n, tc.alpha)
		b := bound.KnownCopies(bound.Load(tc.alpha*float64(tc.n)), tc.n, math.Exp2(-float64(tc.check)))
		slack := func(p float64) float64 { return 4 * math.Sqrt(p/float64(n)) }
		if empty > b.Empty+slack(b.Empty) || empty < 0.85*b.Empty-slack(b.Empty) {
			t.Errorf("N=%d b=%d α=%v: %.4f empty; want close under %.4f", tc.n, tc.check, tc.alpha, empty, b.Empty)
		}
		if wrong > b.Wrong+slack(b.Wrong) || (tc.check < 32 && wrong < b.Wrong/4-slack(b.Wrong)) {
			t.Errorf("N=%d b=%d α=%v: %.5f wrong; want at most %.5f", tc.n, tc.check, tc.alpha, wrong, b.Wrong)
		}
	}
}

// TestPrototypeCopiesCollideTogether checks a property of the prototype's hashes
// that defeats its redundancy: CRC is linear, so two keys that share the slot of
// one copy share those of all, and a key loses all its copies at once.
func TestPrototypeCopiesCollideTogether(t *testing.T) {
	s, _ := NewScheme(Config{Layout: Prototype, Slots: 1 << 10, Value: 4, Check: 32})
	first := make(map[uint64]slothash.KeyHash)
	for i := range uint32(5000) {
		p, _ := s.HashKey(binary.BigEndian.AppendUint32(nil, i*2654435761))
		slot := s.Offset(p, 0)
		if q, ok := first[slot]; ok {
			for n := 1; n < 4; n++ {
				if s.Offset(p, n) != s.Offset(q, n) {
					t.Fatalf("keys that share slot %d of copy 0 differ in copy %d", slot, n)
				}
			}
		}
		first[slot] = p
	}
}

// TestNoTornValue has writers that overwrite the same keys with values of
// several words, each word of which identifies its write, and readers that search
// for a mixture. It is the test of docs/decisions/0009.
func TestNoTornValue(t *testing.T) {
	tab := open(t, Config{Layout: Weft, Slots: 4, Value: 44, Check: 64})
	defer tab.Region().Close()
	keys := [][]byte{{1}, {2}, {3}}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for i := range 2 {
		w := tab.Writer(i)
		wg.Go(func() {
			value := make([]byte, 44)
			for v := uint32(i); !stop.Load(); v += 2 {
				for at := 0; at < len(value); at += 4 {
					binary.LittleEndian.PutUint32(value[at:], v)
				}
				_ = w.Write(keys[v%3], value, 2)
			}
		})
	}
	found := 0
	dst := make([]byte, 0, 256)
	for i := range 200_000 {
		a, err := tab.Lookup(dst, keys[i%3], Query{Copies: 2})
		if err != nil {
			t.Fatal(err)
		}
		if a.Outcome != Found {
			continue
		}
		found++
		v := binary.LittleEndian.Uint32(a.Value)
		for at := 4; at < 44; at += 4 {
			if got := binary.LittleEndian.Uint32(a.Value[at:]); got != v {
				t.Fatalf("a value torn between writes %d and %d", v, got)
			}
		}
		if v%3 != uint32(i%3) {
			t.Fatalf("key %d has the value of write %d", i%3, v)
		}
	}
	stop.Store(true)
	wg.Wait()
	if found == 0 {
		t.Error("no value was found while writers ran; want some")
	}
}

func TestLookupAllocs(t *testing.T) {
	for _, value := range []int{4, 20} {
		tab := open(t, Config{Layout: Weft, Slots: 1000, Value: value, Check: 32})
		key := make([]byte, 13)
		_ = tab.Writer(0).Write(key, make([]byte, value), 4)
		dst := make([]byte, 0, 128)
		if n := testing.AllocsPerRun(100, func() { _, _ = tab.Lookup(dst, key, Query{}) }); n != 0 {
			t.Errorf("Lookup of %d bytes allocates %v times", value, n)
		}
		_ = tab.Region().Close()
	}
}

func TestViewEqualsWriter(t *testing.T) {
	path := t.TempDir() + "/kw"
	cfg := DefaultConfig(1 << 16)
	tab, err := Open(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Region().Close()
	_ = tab.Writer(0).Write([]byte("key"), []byte("data"), 2)
	mem, err := region.View(path)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	view, err := View(mem)
	if err != nil {
		t.Fatal(err)
	}
	a, err := view.Read([]byte("key"), Query{Copies: 2})
	if err != nil || a.Outcome != Found || string(a.Value) != "data" || a.Votes != 2 || a.Bound.Empty <= 0 {
		t.Errorf("Read of a view = %+v, %v; want data by 2 votes, with a bound", a, err)
	}
}

package sketch

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestFilterRateIsTheoretical measures false positives at several fillings
// and seeds and holds them against the formula that Plan uses.
func TestFilterRateIsTheoretical(t *testing.T) {
	for _, tc := range []struct {
		hashes       uint8
		bits         uint32
		flows, seeds int
	}{
		{4, 64 * 400, 3000, 20},
		{8, 64 * 400, 2000, 40},
		{12, 64 * 1000, 4000, 60},
		{20, 64 * 4000, 16000, 40},
	} {
		g := Geometry{tc.hashes, tc.bits, 3, 1}
		r := rand.New(rand.NewPCG(7, uint64(tc.hashes)))
		const asked = 20000
		wrong := 0.0
		for seed := range tc.seeds {
			f, err := NewFamily(g, uint64(seed))
			if err != nil {
				t.Fatal(err)
			}
			b := NewFilter(g)
			for range tc.flows {
				b.Add(&f, HashOf(&f, &Key4{r.Uint64(), r.Uint64()}))
			}
			for range asked {
				if b.Has(&f, HashOf(&f, &Key4{r.Uint64(), r.Uint64()})) {
					wrong++
				}
			}
		}
		n := float64(asked * tc.seeds)
		want := g.FalsePositive(float64(tc.flows))
		// Five standard deviations of the count, and 2 % because the filling
		// of each filter varies too.
		if tolerance := 5*math.Sqrt(want/n) + 0.02*want; math.Abs(wrong/n-want) > tolerance {
			t.Errorf("%d hashes, %d bits, %d flows: %.0f of %.0f taken for known, %.3g; want %.3g ± %.2g",
				tc.hashes, tc.bits, tc.flows, wrong, n, wrong/n, want, tolerance)
		}
	}
}

// TestNoFalsePositive compares the integral with the exact product.
func TestNoFalsePositive(t *testing.T) {
	g := Geometry{12, 64 * 1000, 3, 1}
	want := 1.0
	for i := range 3000 {
		want *= 1 - g.FalsePositive(float64(i)+0.5)
	}
	if got := g.NoFalsePositive(3000); math.Abs(got-want) > 1e-4 {
		t.Errorf("NoFalsePositive(3000) = %v; want %v", got, want)
	}
}

// TestPeelingThresholdIsTheoretical holds the hash family against the
// thresholds of random hypergraphs, which better hashing cannot exceed.
func TestPeelingThresholdIsTheoretical(t *testing.T) {
	for _, tc := range []struct {
		tables      uint8
		peel, solve float64 // flows per cell
	}{
		{3, 0.81847, 0.91794},
		{4, 0.77228, 0.97677},
	} {
		g := Geometry{4, 64, tc.tables, 30_000 / uint32(tc.tables)}
		var m CapacityMeter
		for seed := range uint64(3) {
			peel, solve, err := m.MeasureCapacity(g, seed)
			if err != nil {
				t.Fatal(err)
			}
			p, s := float64(peel)/float64(g.Cells()), float64(solve)/float64(g.Cells())
			// At 30K cells the numbers vary by about 0.3 %.
			if math.Abs(p-tc.peel) > 0.008 || math.Abs(s-tc.solve) > 0.008 {
				t.Errorf("%d tables, seed %d: %.4f flows per cell peel and %.4f solve; theory says %.4f and %.4f",
					tc.tables, seed, p, s, tc.peel, tc.solve)
			}
		}
	}
}

// TestSmallTablesFailAsOftenAsTheory counts the events that limit small
// tables: two flows that share all their cells. They depend on the cells being
// independent of each other, which thresholds hardly show.
func TestSmallTablesFailAsOftenAsTheory(t *testing.T) {
	const flows, per, trials = 60, 40, 4000
	g := Geometry{4, 64, 3, per}
	pairs := 0
	for seed := range uint64(trials) {
		f, err := NewFamily(g, seed)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[[3]uint32]int{}
		for i := range uint64(flows) {
			// Flows that differ in one port: what a hash likes least.
			h := HashOf(&f, &Key4{0x0a000001_0a000002, (40000+i)<<48 | 80<<32 | 6<<24})
			cells := [3]uint32{f.Cell(h, 0), f.Cell(h, 1), f.Cell(h, 2)}
			pairs += seen[cells]
			seen[cells]++
		}
	}
	want := float64(trials) * flows * (flows - 1) / 2 / (per * per * per)
	if d := math.Abs(float64(pairs) - want); d > 5*math.Sqrt(want) {
		t.Errorf("%d pairs of flows shared all cells; want %.0f ± %.0f", pairs, want, 5*math.Sqrt(want))
	}
}

// TestSeedsAreIndependent asks how many pairs of flows that share a cell under
// one seed share one under the next: no more than chance.
func TestSeedsAreIndependent(t *testing.T) {
	const flows, per = 4000, 1000
	g := Geometry{4, 64, 3, per}
	for seed := range uint64(8) {
		a, _ := NewFamily(g, seed)
		b, _ := NewFamily(g, seed+1)
		both := map[[2]uint32]int{}
		pairs := 0
		for i := range uint64(flows) {
			k := Key4{0x0a000001_0a000002, i<<48 | 80<<32 | 6<<24}
			cells := [2]uint32{a.Cell(HashOf(&a, &k), 0), b.Cell(HashOf(&b, &k), 0)}
			pairs += both[cells]
			both[cells]++
		}
		want := float64(flows) * (flows - 1) / 2 / (per * per)
		if math.Abs(float64(pairs)-want) > 5*math.Sqrt(want)+2 {
			t.Errorf("seeds %d and %d: %d pairs share cells under both; want about %.0f", seed, seed+1, pairs, want)
		}
	}
}

// TestHashBitsAvalanche flips each bit of keys of both families: every bit of
// the hash must change about half the time.
func TestHashBitsAvalanche(t *testing.T) {
	t.Run("IPv4", func(t *testing.T) { avalanche[Key4](t) })
	t.Run("IPv6", func(t *testing.T) { avalanche[Key6](t) })
}

func avalanche[K Key](t *testing.T) {
	const keys = 500
	f, _ := NewFamily(small, 99)
	var k K
	r := rand.New(rand.NewPCG(5, 5))
	for bit := range len(k)*64 - 24 {
		var changed [128]int
		for range keys {
			// Keys with few bits, as addresses and ports have.
			for i := range len(k) {
				k[i] = r.Uint64() & r.Uint64() & r.Uint64()
			}
			a := HashOf(&f, &k)
			k[bit/64] ^= 1 << (63 - bit%64)
			b := HashOf(&f, &k)
			for i := range 64 {
				changed[i] += int((a.A ^ b.A) >> i & 1)
				changed[64+i] += int((a.B ^ b.B) >> i & 1)
			}
		}
		for i, n := range changed {
			if d := math.Abs(float64(n) - keys/2); d > 6*math.Sqrt(keys)/2 {
				t.Fatalf("key bit %d changes hash bit %d in %d of %d keys", bit, i, n, keys)
			}
		}
	}
}

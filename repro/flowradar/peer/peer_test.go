package peer

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

func randomKey(rng *rand.Rand) model.FlowKey {
	return model.FlowKey{
		Src: model.Addr4(rng.Uint32()), Dst: model.Addr4(rng.Uint32()),
		SrcPort: uint16(rng.Uint32()), DstPort: uint16(rng.Uint32()), Proto: model.Proto(rng.Uint32()),
	}
}

// A d-left table is a map of what fits: no flow is lost while one of its buckets
// has a free cell, and counts are exact.
func TestDLeftIsAMapThatOverflows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tables, bucketCells := rapid.IntRange(1, 5).Draw(t, "d"), rapid.IntRange(1, 5).Draw(t, "L")
		buckets := rapid.IntRange(1, 20).Draw(t, "buckets")
		table, err := NewDLeft(tables, bucketCells, buckets*tables*bucketCells*DLeftCellBytes, 9)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		keys := make([]model.FlowKey, rapid.IntRange(1, 200).Draw(t, "flows"))
		for i := range keys {
			keys[i] = randomKey(rng)
		}
		want, lost := map[model.FlowKey]uint32{}, 0
		load := map[int]int{}
		for range 600 {
			k := keys[rng.IntN(len(keys))]
			if _, in := want[k]; !in {
				// The reference: sort the buckets by load, then from the left.
				slots := make([]int, tables)
				for i := range slots {
					slots[i] = table.bucket(&k, i)
				}
				slices.SortStableFunc(slots, func(a, b int) int { return cmp.Compare(load[a], load[b]) })
				if load[slots[0]] == bucketCells {
					lost++
					if table.Add(&k, 1) {
						t.Fatalf("flow %v fits into full buckets", k)
					}
					continue
				}
				load[slots[0]]++
			}
			want[k]++
			if !table.Add(&k, 1) {
				t.Fatalf("flow %v did not fit", k)
			}
		}
		if table.Flows != len(want) || table.Overflowed != lost {
			t.Fatalf("table has %d flows, %d overflowed; want %d, %d", table.Flows, table.Overflowed, len(want), lost)
		}
		for k, n := range want {
			if got, ok := table.Packets(&k); got != n || !ok {
				t.Fatalf("flow %v has %d packets, %v; want %d", k, got, ok, n)
			}
		}
	})
}

func TestDLeftRefusesNonsense(t *testing.T) {
	for _, c := range [][3]int{{0, 1, 1000}, {4, 0, 1000}, {4, 256, 1 << 20}, {4, 1, 67}} {
		if table, err := NewDLeft(c[0], c[1], c[2], 1); err == nil {
			t.Errorf("NewDLeft(%v) = %+v; want an error", c, table)
		}
	}
}

// What an IBLT decodes is what was added; where it is large enough that is all.
func TestIBLTDecodesWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		flows := rapid.IntRange(0, 300).Draw(t, "flows")
		cells := rapid.IntRange(1, 900).Draw(t, "cells")
		table := NewIBLT(4, cells, rng.Uint64())
		want := map[model.FlowKey]uint32{}
		for range flows {
			k := randomKey(rng)
			for range 1 + rng.IntN(3) {
				n := 1 + rng.Uint32N(20)
				table.Add(&k, n)
				want[k] += n
			}
		}
		got, complete := table.Decode(nil)
		if complete != (len(got) == len(want)) {
			t.Fatalf("complete = %v with %d of %d flows", complete, len(got), len(want))
		}
		if !complete && cells > 4*flows+40 {
			t.Fatalf("%d flows in %d cells: %d decoded", flows, cells, len(got))
		}
		for _, f := range got {
			if want[f.Key] != f.Packets {
				t.Fatalf("decoded %v with %d packets; want %d", f.Key, f.Packets, want[f.Key])
			}
			delete(want, f.Key)
		}
	})
}

func TestIntegerHoldsTheWholeKey(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		k := randomKey(rng)
		n := 1 + rng.Uint32N(1<<24-1)
		a := integer(&k)
		if diff := gocmp.Diff(k, a.key()); diff != "" {
			t.Fatalf("key came back changed:\n%s", diff)
		}
		if q, rest := a.times(n).over(uint64(n)); q != a || rest != 0 {
			t.Fatalf("%+v × %d ÷ %d = %+v rest %d", a, n, n, q, rest)
		}
		if got := a.times(n).plus(a).minus(a.times(n)); got != a {
			t.Fatalf("sum and difference of %+v = %+v", a, got)
		}
	}
}

func TestModels(t *testing.T) {
	for name, tc := range map[string]struct{ got, want float64 }{
		"netflow":                    {float64(NetFlowBytes(100_000, true)), 2.5e6},
		"netflow without timestamps": {float64(NetFlowBytes(100_000, false)), 1.7e6},
		"plain hash":                 {PlainHashBytes(100_000, 0.99), 8.46e12},
		"iblt cell":                  {float64(IBLTCellBits(1023, 16)), 104 + 10 + 16 + 10 + 32},
	} {
		if math.Abs(tc.got/tc.want-1) > 1e-3 {
			t.Errorf("%s = %v; want %v", name, tc.got, tc.want)
		}
	}
}

// The plain table's formula, tried: about one table in 100 has a collision.
func TestPlainHashHasFewCollisions(t *testing.T) {
	const flows, trials = 30, 20000
	cells := PlainHashBytes(flows, 0.99) / (KeyBytes + CounterBytes)
	rng := rand.New(rand.NewPCG(3, 4))
	collided := 0
	for range trials {
		seen := map[uint64]bool{}
		for range flows {
			seen[rng.Uint64N(uint64(cells))] = true
		}
		if len(seen) < flows {
			collided++
		}
	}
	if share := float64(collided) / trials; share < 0.007 || share > 0.013 {
		t.Errorf("%v of tables had a collision; want 0.01", share)
	}
}

// A flow is mistaken for a known one exactly where its cells all hold flows.
func TestCombinedMissesFlows(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	table := NewCombined(3, 300, 1)
	missed := 0
	for range 500 {
		k := randomKey(rng)
		all := true
		for i := range 3 {
			all = all && table.flows[table.cell(&k, i)] > 0
		}
		if fresh := table.Add(&k); fresh == all {
			t.Fatalf("Add(%v) = %v with its cells taken: %v", k, fresh, all)
		}
		if table.Add(&k) {
			t.Fatalf("Add(%v) = true a second time", k)
		}
		if all {
			missed++
		}
	}
	if missed == 0 {
		t.Error("500 flows in 300 cells: none was taken for another")
	}
}

// The formula against tables: the share without a false positive, and that less
// memory has more.
func TestFilterSuccessIsMeasured(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	slots, hashes := FilterSlots(200, 0.7)
	clean := 0
	const trials = 2000
	for i := range trials {
		table, ok := NewCombined(hashes, int(slots), uint64(1000*i)), true
		for range 200 {
			k := randomKey(rng)
			ok = table.Add(&k) && ok
		}
		if ok {
			clean++
		}
	}
	if share := float64(clean) / trials; math.Abs(share-0.7) > 0.05 {
		t.Errorf("%v of tables of %.0f cells with %d hashes had no false positive; want 0.7", share, slots, hashes)
	}
	for _, k := range []int{hashes - 1, hashes, hashes + 1} {
		if got := filterSuccess(200, slots*0.99, k); got >= 0.7 {
			t.Errorf("%d hashes succeed with %v in less memory; want less than 0.7", k, got)
		}
	}
}

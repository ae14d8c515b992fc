package flowtable

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

func key(n int) model.FlowKey {
	return model.FlowKey{Src: model.Addr4(uint32(n)), Dst: model.Addr4(7), SrcPort: uint16(n), Proto: model.TCP}
}

// TestTableIsAMap compares the table with a map from keys to numbers.
func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table
		want := map[model.FlowKey]uint32{}
		used := map[uint32]bool{}
		hintOf := rapid.Uint32Range(1, 3).Draw(t, "flows of a hint")
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			k := key(rapid.IntRange(0, 60).Draw(t, "flow"))
			n, has := want[k]
			switch rapid.IntRange(0, 20).Draw(t, "do") {
			case 0:
				table.Clear()
				clear(want)
				clear(used)
			case 1, 2, 3, 4, 5, 6:
				if has {
					table.Delete(n)
					delete(want, k)
					delete(used, n)
				}
			default:
				got, added := table.FindOrAdd(&k, Hash(&k))
				if added == has || has && got != n || !has && used[got] {
					t.Fatalf("FindOrAdd(%v) = %d, %v; has %v as %d, numbers %v", k, got, added, has, n, used)
				}
				want[k], used[got] = got, true
			}
			if table.Len() != len(want) {
				t.Fatalf("Len() = %d; want %d", table.Len(), len(want))
			}
			for f := range 61 {
				k := key(f)
				n, has := want[k]
				if got, ok := table.Find(&k, Hash(&k)); ok != has || has && (got != n || *table.Key(n) != k) {
					t.Fatalf("Find(%v) = %d, %v; want %d, %v", k, got, ok, n, has)
				}
				hint := uint32(f) / hintOf // several flows have one hint
				if got, ok := table.FindHinted(&k, Hash(&k), hint); ok != has || has && got != n {
					t.Fatalf("FindHinted(%v, %d) = %d, %v; want %d, %v", k, hint, got, ok, n, has)
				}
			}
		}
	})
}

// TestAllocatesNothing once the memory is there, while flows come and go.
func TestAllocatesNothing(t *testing.T) {
	var table Table
	first := 0
	turn := func() {
		for n := range 1000 {
			k := key(first + n)
			table.FindOrAdd(&k, Hash(&k))
		}
		for n := range 500 {
			k := key(first + n)
			number, _ := table.Find(&k, Hash(&k))
			table.Delete(number)
		}
		first += 500
	}
	for range 10 {
		turn()
	}
	if n := testing.AllocsPerRun(100, turn); n != 0 {
		t.Errorf("a slot of 1000 flows allocates %v times; want 0", n)
	}
}

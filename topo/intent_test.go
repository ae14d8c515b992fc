package topo

import (
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

func TestIntentBetweenNamesAllRoutesOfASpan(t *testing.T) {
	f, _ := Dumbbell(1, DefaultLinks())
	var r [3]*Routes
	for i := range r {
		r[i], _ = NewRoutes(f, RouteConfig{Seed: uint64(i)})
	}
	in := NewIntent(r[0])
	_ = in.Set(100, r[1])
	_ = in.Set(200, r[2])
	for name, tc := range map[string]struct {
		from, to model.Time
		want     []*Routes
	}{
		"before all":        {0, 99, r[:1]},
		"up to a change":    {0, 100, r[:2]},
		"from a change on":  {100, 150, r[1:2]},
		"all":               {0, 300, r[:]},
		"after all":         {201, 300, r[2:]},
		"before time began": {-50, -10, r[:1]},
	} {
		if got := in.Between(tc.from, tc.to); !slices.Equal(got, tc.want) {
			t.Errorf("%s: Between(%v, %v) = %v; want %v", name, tc.from, tc.to, got, tc.want)
		}
	}
}

func TestIntentForgets(t *testing.T) {
	f, _ := Dumbbell(1, DefaultLinks())
	var r [4]*Routes
	for i := range r {
		r[i], _ = NewRoutes(f, RouteConfig{Seed: uint64(i)})
	}
	for before, want := range map[model.Time][]*Routes{0: r[:], 100: r[:], 101: r[1:], 250: r[2:], 1000: r[3:]} {
		in := NewIntent(r[0])
		for i := 1; i < len(r); i++ {
			_ = in.Set(model.Time(100*i), r[i])
		}
		in.Forget(before)
		if got := in.Between(0, 1000); !slices.Equal(got, want) {
			t.Errorf("Forget(%v) left %v; want %v", before, got, want)
		}
		if in.At(0) != want[0] || in.At(1000) != r[3] {
			t.Errorf("after Forget(%v): At(0) = %v, At(1000) = %v; want %v and %v", before, in.At(0), in.At(1000), want[0], r[3])
		}
		if err := in.Set(400, r[0]); err != nil || in.At(400) != r[0] {
			t.Errorf("after Forget(%v): Set = %v, At(400) = %v; want %v", before, err, in.At(400), r[0])
		}
	}
}

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

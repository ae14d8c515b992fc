package flows

import (
	"math"
	"testing"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// Tables with few more cells than flows are solved although a large share of the flows
// changes its count from switch to switch.
func TestCountsThatDifferAreSolved(t *testing.T) {
	race.LeaveToPlainRun(t)
	fabric := fatTree(t, 4)
	for _, differ := range []float64{0.15, 0.3} {
		tr := cross(t, fabric, trafficConfig{
			flows: 4800, even: true, differ: differ, seed: 11,
			geometry: sketch.Geometry{FilterHashes: 20, FilterBits: 48000, Tables: 4, TableCells: 324},
			layout:   flowset.Layout{Key: model.KeyLen4, Flows: 1, Packets: 4, Bytes: 8},
		})
		sets := tr.sets(t, 0, nil)
		for i, d := range NetDecode(sets, Options{Workers: 2}, NeighbourGuide(fabric, sets)) {
			exact := 0
			for _, r := range d.Records {
				if r.Grade == Exact {
					exact++
				}
			}
			checkRecords(t, tr.recorded[i], &d)
			if want := len(tr.recorded[i].truth); exact != want {
				t.Errorf("%.0f %% of flows differ on a link: switch %d has %d exact counts of %d flows; want all", 100*differ, d.Switch, exact, want)
			}
		}
	}
}

// The prior has the variance that it was made for, as far as its few values have it.
func TestDifferencePrior(t *testing.T) {
	for _, want := range []float64{0.01, 0.05, 0.2} {
		if got := differencePrior(want); math.Abs(got.variance-want) > want/10 || got.log[maxDifference] != 0 {
			t.Errorf("differencePrior(%v) = %+v; want this variance and 0 as the most probable difference", want, got)
		}
	}
	for _, odd := range []float64{0, 1e9, math.Inf(1)} {
		if got := differencePrior(odd).variance; !(got > 0 && got <= 2*maxDifference*maxDifference) {
			t.Errorf("variance of differencePrior(%v) = %v; want a positive, bounded one", odd, got)
		}
	}
}

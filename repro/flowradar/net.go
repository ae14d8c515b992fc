package flowradar

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sketch"
)

// netRate is the result of NetDecode on flowsets of whole fabrics. Flowsets that
// lack a flow because their filter mistook it for a known one are counted
// separately: a flow that is not in a table cannot be decoded from it.
type netRate struct {
	flows     claim.Rate    // of which all flows were found
	counts    claim.Rate    // and all counts were exact
	hidden    claim.Rate    // that lack a flow, of all
	lost      int           // flows that they lack
	sightings int           // flows of all flowsets
	cpu       time.Duration // of decoding, per flowset
}

// netDecode decodes fabrics of switches with a number of flows each, without
// knowledge of routes, until it has evaluated a number of flowsets.
func netDecode(ctx context.Context, seed uint64, k, perSwitch, flowsets int, g sketch.Geometry, o flows.Options,
	report func(done float64),
) (r netRate, err error) {
	var spent time.Duration
	for i := uint64(0); r.hidden.Of < flowsets; i++ {
		rng := claim.Rand(seed, i)
		l, err := newLoad(k, perSwitch, rng)
		if err != nil {
			return r, err
		}
		s, err := l.encode(ctx, g, rng.Uint64())
		if err != nil {
			return r, err
		}
		var decoded []flows.Decoded
		spent += claim.CPU(func() {
			decoded = flows.NetDecode(s.sets, o,
				flows.NeighbourGuide(l.routes.Fabric(), s.sets))
		})
		for j := range decoded {
			r.judge(&s.want[j], &decoded[j])
		}
		report(min(float64(r.hidden.Of)/float64(flowsets), 1))
		if err := ctx.Err(); err != nil {
			return r, err
		}
	}
	r.cpu = spent / time.Duration(r.hidden.Of)
	return r, nil
}

func (r *netRate) judge(want *contents, d *flows.Decoded) {
	r.hidden.Of++
	r.sightings += want.flows
	if want.hidden > 0 {
		r.hidden.Hits++
		r.lost += want.hidden
		return
	}
	r.flows.Of++
	r.counts.Of++
	if want.allFlows(d) {
		r.flows.Hits++
	}
	if want.allCounts(d) {
		r.counts.Hits++
	}
}

// all returns how many of all flowsets decoded completely, including those that lack a flow.
func (r *netRate) all() claim.Rate { return claim.Rate{Hits: r.counts.Hits, Of: r.hidden.Of} }

// cells4 is the number of cells per flow that a table of four sub-tables needs for
// 99 % of flowsets to decode by themselves; flowradar-more-flows measures the rate.
var cells4 = map[int]float64{1_000: 1.3525, 10_000: 1.312, 100_000: 1.300}

// paperGeometry returns a flowset for an expected number of flows, one of
// cells4's, as in the paper's evaluation: with four sub-tables, which suit
// NetDecode best. Plan takes three where they need less.
func paperGeometry(expected int) (sketch.Geometry, error) {
	plan, err := flowset.Plan(expected, 0.99, flowset.Single)
	g := plan.Geometry
	g.Tables, g.TableCells = 4, uint32(math.Ceil(cells4[expected]*float64(expected)/4))
	return g, err
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.3g ms", d.Seconds()*1e3) }

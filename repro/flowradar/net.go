package flowradar

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sketch"
)

// netRate is the result of NetDecode on flowsets of whole fabrics. Flowsets that
// lack a flow because their filter mistook it for a known one failed.
type netRate struct {
	flows     claim.Rate    // of which all flows were found
	counts    claim.Rate    // and all counts were exact
	hidden    claim.Rate    // that lack a flow because of their filter
	lost      int           // flows that they lack
	sightings int           // flows of all flowsets
	cpu       time.Duration // of decoding, per flowset
}

// netRun is fabrics to decode.
type netRun struct {
	k         int // of the fat-tree
	perSwitch int // flows
	flowsets  int // to evaluate at least
	geometry  sketch.Geometry
	options   flows.Options
	inFlight  uint64 // percentage of a switch's flows that differ there; 0: as usual
	deployed  []int  // tiers whose switches export flowsets; nil: all. Routes are then known.
}

// netDecode decodes fabrics without knowledge of routes, until it has evaluated
// the number of flowsets.
func netDecode(ctx context.Context, o claim.Options, run netRun, report func(done float64)) (r netRate, err error) {
	var spent time.Duration
	for i := uint64(0); r.hidden.Of < run.flowsets; i++ {
		rng := claim.Rand(o.Seed, i)
		l, err := newLoad(run.k, run.perSwitch, rng)
		if err != nil {
			return r, err
		}
		if run.inFlight > 0 {
			l.inFlight = run.inFlight
		}
		l.unrelated = o.Without(similarCounters)
		s, err := l.encode(ctx, run.geometry, rng.Uint64())
		if err != nil {
			return r, err
		}
		guides := []flows.Guide{flows.NeighbourGuide(l.routes.Fabric(), s.sets)}
		if run.deployed != nil {
			if s.keep(l, run.deployed); len(s.sets) == 0 {
				return r, fmt.Errorf("no switches on tiers %v", run.deployed)
			}
			guides = []flows.Guide{flows.RouteGuide(l.routes, s.sets)}
		}
		var decoded []flows.Decoded
		spent += claim.CPU(func() {
			if o.Without(neighbours) {
				decoded = decodeAlone(s.sets)
				return
			}
			decoded = flows.NetDecode(s.sets, run.options, guides...)
		})
		for j := range decoded {
			r.judge(&s.want[j], &decoded[j])
		}
		report(min(float64(r.hidden.Of)/float64(run.flowsets), 1))
		if err := ctx.Err(); err != nil {
			return r, err
		}
	}
	r.cpu = spent / time.Duration(r.hidden.Of)
	return r, nil
}

// keep removes the flowsets of switches on other tiers.
func (s *slot) keep(l *load, tiers []int) {
	sets, want := s.sets, s.want
	s.sets, s.want = nil, nil
	for i, sw := range l.switches {
		if slices.Contains(tiers, l.routes.Fabric().Node(sw).Tier) {
			s.sets, s.want = append(s.sets, sets[i]), append(s.want, want[i])
		}
	}
}

func (r *netRate) judge(want *contents, d *flows.Decoded) {
	r.hidden.Of++
	r.flows.Of++
	r.counts.Of++
	r.sightings += want.flows
	if want.hidden > 0 {
		r.hidden.Hits++
		r.lost += want.hidden
		return
	}
	if want.allFlows(d) {
		r.flows.Hits++
	}
	if want.allCounts(d) {
		r.counts.Hits++
	}
}

// decodeAlone decodes every flowset without the others.
func decodeAlone(sets []*flows.Flowset) (decoded []flows.Decoded) {
	for _, fs := range sets {
		decoded = append(decoded, flows.SingleDecode(fs))
	}
	return decoded
}

// cells4 is the number of cells per flow that a table of four sub-tables needs for
// 99 % of flowsets to decode by themselves; flowradar-more-flows measures the rate.
var cells4 = map[int]float64{1_000: 1.3525, 10_000: 1.312, 100_000: 1.300}

// paperGeometry returns a flowset whose cells are for an expected number of
// flows, one of cells4's, as in the paper's evaluation: with four sub-tables,
// which suit NetDecode best. Plan takes three where they need less. The filter is
// for the most flows that come: one for fewer mistakes some for known ones.
func paperGeometry(expected, most int) (sketch.Geometry, error) {
	plan, err := flowset.Plan(most, 0.99, flowset.Single)
	g := plan.Geometry
	g.Tables, g.TableCells = 4, uint32(math.Ceil(cells4[expected]*float64(expected)/4))
	return g, err
}

// withoutHiddenFlows is paperGeometry with a filter that hides a flow in at most one flowset of
// 1,000, for claims that are not about filters.
func withoutHiddenFlows(expected, most int) (sketch.Geometry, error) {
	g, err := paperGeometry(expected, most)
	if err != nil {
		return g, err
	}
	plan, err := flowset.Plan(most, 0.999, flowset.Single)
	g.FilterBits, g.FilterHashes = plan.FilterBits, plan.FilterHashes
	return g, err
}

// hiddenShare is the share of flowsets that lack a flow because of their filter, with a
// plan of flowset.Plan for a target.
func hiddenShare(target float64) float64 { return (1 - target) / 10 }

// missNote says how often a run of a number of flowsets misses 99 % by chance, where the
// filter alone makes flowsets fail.
func missNote(flowsets int, target float64) string {
	return fmt.Sprintf("%d flowsets of which the filter spoils %s miss 99 %% by chance in %s of runs", flowsets,
		percent(hiddenShare(target)), percent(claim.MissChance(flowsets, 1-hiddenShare(target), 0.99)))
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.3g ms", d.Seconds()*1e3) }

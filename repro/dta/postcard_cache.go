package dta

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	wire "github.com/weft-telemetry/weft/wire/dta"
)

var gather = claim.Claim{
	ID: "dta-postcard-cache", Where: "figure 14",
	Says:      "the share of paths whose postcards the translator aggregates falls with the number of concurrent flows, and rises with the rows of its cache; without concurrent flows all succeed",
	Published: "all with no intermediate flows, then falling; later the larger the cache (up to 32K rows)",
	Run:       runGather,
	Mutations: []claim.Mutation{rows},
}

// pathCounter is an outlet that counts paths and writes nothing. It implements
// only what postcards call.
type pathCounter struct {
	translate.MemoryWriter
	whole, parts int
}

func (t *pathCounter) WritePath(p *translate.Path) {
	if p.Complete() {
		t.whole++
	} else {
		t.parts++
	}
}

func (t *pathCounter) Flush(model.Time) {}

// pathsGathered lets groups of others+1 flows report hop by hop, each hop in a
// different order, and counts paths that left the cache complete. Within a group
// each flow has exactly others concurrent flows.
func pathsGathered(ctx context.Context, rng *rand.Rand, rows, others, paths int) (claim.Rate, error) {
	scheme, err := postcard.NewScheme(postcard.DefaultConfig(1 << 20))
	if err != nil {
		return claim.Rate{}, err
	}
	out := &pathCounter{}
	cfg := translate.DefaultConfig()
	cfg.Rows = rows
	t, err := translate.New(cfg, &translate.Plan{Postcards: scheme}, out)
	if err != nil {
		return claim.Rate{}, err
	}
	rate := claim.Rate{}
	key, data, batch := make([]byte, 13), make([]byte, 4), make([]wire.Report, 1)
	flows := make([]uint64, others+1)
	for rate.Of < paths && ctx.Err() == nil {
		for i := range flows {
			flows[i] = rng.Uint64()
		}
		for hop := range uint8(fiveHops) {
			rng.Shuffle(len(flows), func(i, j int) { flows[i], flows[j] = flows[j], flows[i] })
			for _, f := range flows {
				binary.LittleEndian.PutUint64(key, f)
				binary.BigEndian.PutUint32(data, uint32(hop)+1)
				batch[0] = wire.Report{
					Primitive: wire.Postcarding, Redundancy: 1, Hop: hop, Path: fiveHops, Key: key,
					Data: data,
				}
				t.Put(0, batch)
			}
		}
		t.Drain(0)
		rate.Of += len(flows)
	}
	rate.Hits = out.whole
	if st := t.Stats().Postcards; st.Postcards != st.Emitted || st.Postcards != uint64(fiveHops*rate.Of) {
		return rate, fmt.Errorf("%d postcards of %d left the cache, want %d", st.Emitted, st.Postcards,
			fiveHops*rate.Of)
	}
	return rate, ctx.Err()
}

func runGather(ctx context.Context, o claim.Options) (claim.Result, error) {
	paths := o.Pick(400_000, 40_000)
	sizes := []int{8 << 10, 16 << 10, 32 << 10}
	others := []int{0, 10, 100, 300, 1000, 3000, 10_000, 30_000}
	if o.Broken() {
		paths, others = 4_000, others[:7]
	}
	res := claim.Result{Pass: true, Notes: []string{
		fmt.Sprintf("at least %d paths of 5 hops for each point; all postcards of a path arrive while exactly the given number of other flows report theirs", paths),
		"a path succeeds when it leaves the cache whole; the others are still stored, in parts, each under its own key",
		"the figure gives rates of the paper's hardware, of which the text states only the highest, 90.5 M paths/s without concurrent flows; shares are compared here",
		"passes if all succeed without concurrent flows, shares fall with flows and rise with rows, and each is within 2 % of (1-1/rows)^flows, the probability that no other flow uses the row",
	}}
	table := claim.Table{Title: "paths aggregated", Header: []string{"concurrent flows"}}
	chart := plot.Chart{
		Title: "Paths aggregated by the translator", XTitle: "concurrent flows", YTitle: "% of paths",
		LogX: true,
	}
	var x []float64
	shares := make([][]float64, len(sizes))
	for i, n := range others {
		cells := []string{fmt.Sprint(n)}
		for s, size := range sizes {
			o.Report(float64(i*len(sizes)+s)/float64(len(others)*len(sizes)), fmt.Sprintf("%d flows, %d rows", n, size))
			made := size
			if o.Without(rows) {
				made = 1
			}
			rate, err := pathsGathered(ctx, claim.Rand(o.Seed, uint64(i*len(sizes)+s)), made, n, paths)
			if err != nil {
				return res, err
			}
			share, want := rate.Share(), math.Pow(1-1/float64(size), float64(n))
			// Small shares of failures differ by chance between sizes.
			falls := i == 0 && share == 1 || i > 0 && share <= shares[s][i-1]/100
			rises := s == 0 || share >= shares[s-1][i]/100-0.002
			res.Pass = res.Pass && falls && rises && math.Abs(share-want) <= 0.02
			shares[s] = append(shares[s], 100*share)
			cells = append(cells, percent(share), percent(want))
		}
		x = append(x, float64(max(n, 1)))
		table.Row(cells...)
	}
	for s, size := range sizes {
		name := fmt.Sprintf("%dK rows", size>>10)
		table.Header = append(table.Header, name, "formula")
		chart.Series = append(chart.Series, plot.Series{Name: name, X: x, Y: shares[s]})
	}
	at := func(s int) string { return percent(shares[s][5] / 100) }
	res.Measured = fmt.Sprintf("all with none; %s, %s and %s with %d flows and 8K, 16K and 32K rows", at(0), at(1),
		at(2), others[5])
	if shares[0][0] != 100 {
		res.Measured = percent(shares[0][0]/100) + res.Measured[len("all"):]
	}
	res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
	return res, nil
}

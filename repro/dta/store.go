package dta

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
)

var redundancy = claim.Claim{
	ID: "dta-redundancy", Where: "figure 12",
	Says:      "more copies help while the store is lightly loaded and harm when it is full: the best N falls as the load grows",
	Published: "best N: 4, then 3 or 2, then 1",
	Run:       runRedundancy,
	Mutations: []claim.Mutation{copies},
}

// meanFound returns the mean probability that a key is still found, over all keys
// of a store: their ages are uniform from zero to load keys per slot.
func meanFound(load float64, n int) float64 { return meanSuccess(0, load, n) }

// meanSuccess is the mean of 1-(1-e^-αN)^N for α from a to b.
func meanSuccess(a, b float64, n int) float64 {
	const steps = 2000
	sum := 0.0
	for i := range steps {
		alpha := a + (b-a)*(float64(i)+0.5)/steps
		sum += 1 - math.Pow(-math.Expm1(-alpha*float64(n)), float64(n))
	}
	return sum / steps
}

func runRedundancy(ctx context.Context, o claim.Options) (claim.Result, error) {
	slots, minKeys := o.Pick(1<<20, 1<<16), o.Pick(1<<20, 1<<18)
	if o.Broken() {
		minKeys = 1
	}
	loads := []float64{0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3}
	res := claim.Result{Pass: true, Notes: []string{
		fmt.Sprintf("%d slots, 32 bits of checksum; a store is filled with load·slots keys, and all of them are queried; as many stores as have %d keys together, since at light loads few keys are lost", slots, minKeys),
		"passes if the best N never rises with the load, 4 is best at the lightest and 1 at the heaviest, and every share is within four standard deviations of the formula's mean, and 0.05 %",
	}}
	table := claim.Table{Title: "keys that are found", Header: []string{"load", "N=1", "N=2", "N=3", "N=4", "best"}}
	chart := plot.Chart{Title: "Keys found in a Key-Write store", XTitle: "keys per slot", YTitle: "% found"}
	curves := make([][]float64, 5)
	last := 4
	var bands []string
	for i, load := range loads {
		o.Report(float64(i)/float64(len(loads)), fmt.Sprintf("load %v", load))
		cells := []string{fmt.Sprint(load)}
		best, most := 0, 0.0
		for n := 1; n <= 4; n++ {
			keys, share, stores := int(load*float64(slots)), 0.0, 0
			for total := 0; stores == 0 || total < minKeys; total += keys {
				found, err := shareFound(ctx, uint64(slots), keys, written(o, n), claim.Rand(o.Seed, uint64(stores)).Uint64())
				if err != nil {
					return res, err
				}
				share, stores = share+found, stores+1
			}
			share, keys = share/float64(stores), keys*stores
			// Keys overwrite each other, so that they are not quite independent.
			mean := meanFound(load, n)
			if math.Abs(share-mean) > 4*math.Sqrt(mean*(1-mean)/float64(keys))+0.0005 {
				res.Pass = false
			}
			if share > most {
				best, most = n, share
			}
			cells = append(cells, percent(share))
			curves[n] = append(curves[n], 100*share)
		}
		table.Row(append(cells, fmt.Sprint(best))...)
		if best > last {
			res.Pass = false
		}
		if best != last || i == 0 {
			bands = append(bands, fmt.Sprintf("%d from %v", best, load))
		}
		last = best
	}
	res.Pass = res.Pass && strings.HasPrefix(bands[0], "4") && last == 1
	for n := 1; n <= 4; n++ {
		chart.Series = append(chart.Series, plot.Series{Name: fmt.Sprintf("N=%d", n), X: loads, Y: curves[n]})
	}
	res.Measured = "best N: " + strings.Join(bands, ", ")
	res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
	return res, nil
}

// shareFound writes keys into a store and returns the share that is found.
func shareFound(ctx context.Context, slots uint64, keys, n int, seed uint64) (float64, error) {
	t, err := keywrite.Open("", keywrite.Config{Layout: keywrite.Weft, Slots: slots, Value: 4, Check: 32, Seed: seed})
	if err != nil {
		return 0, err
	}
	defer t.Region().Close()
	w, key, value, dst := t.Writer(0), make([]byte, 8), make([]byte, 4), make([]byte, 0, 32)
	for i := range uint64(keys) {
		writeKey(w, key, value, i, n)
	}
	found := 0
	for i := range uint64(keys) {
		if ok, _ := readKey(t, dst, key, i, n); ok {
			found++
		}
	}
	return float64(found) / float64(max(1, keys)), ctx.Err()
}

var longevity = claim.Claim{
	ID: "dta-longevity", Where: "figure 13",
	Says:      "5-hop paths (20 bytes, N = 2) in 3 GiB are found this often after 10 and 100 million later ones, and in 30 GiB this often",
	Published: "99.3 % and 44.5 %, 99.99 % and 98.2 %",
	Run:       runLongevity,
	Mutations: []claim.Mutation{copies},
}

func runLongevity(ctx context.Context, o claim.Options) (claim.Result, error) {
	const million, bucket = 1_000_000, 10
	scale := o.Pick(64, 1024)
	sizes := []float64{3, 30} // GiB
	published := [][2]float64{{0.993, 0.445}, {0.9999, 0.982}}
	cfg := keywrite.Config{Layout: keywrite.Weft, Value: 20, Check: 32, Seed: o.Seed, Slots: 1}
	slotSize := float64(cfg.Size())
	res := claim.Result{Pass: true, Notes: []string{
		fmt.Sprintf("memory and reports are 1/%d of the paper's: probabilities depend on their ratio alone; slots of %.0f bytes", scale, slotSize),
		"the figures fit the mean over ages of 0 to 10 and of 90 to 100 million, in steps of 10 million; so they are measured here",
		"passes if measured is within four standard deviations of the formula at the paper's size, and within 2.5 % of the published",
	}}
	table := claim.Table{
		Title:  "paths that are found, by millions of later ones",
		Header: []string{"memory", "age", "published", "formula", "measured"},
	}
	chart := plot.Chart{Title: "Paths found by age", XTitle: "million later paths", YTitle: "% found"}
	var shown []string
	for i, gib := range sizes {
		o.Report(float64(i)/2, fmt.Sprintf("%v GiB", gib))
		slots := gib * (1 << 30) / slotSize
		cfg.Slots = uint64(slots / float64(scale))
		shares, err := foundByAge(ctx, cfg, 100*million/scale, bucket*million/scale, written(o, 2))
		if err != nil {
			return res, err
		}
		var x, y []float64
		for b, share := range shares {
			formula := meanSuccess(float64(b)*bucket*million/slots, float64(b+1)*bucket*million/slots, 2)
			x, y = append(x, float64(b*bucket)+bucket/2), append(y, 100*share)
			if math.Abs(share-formula) > 4*math.Sqrt(formula*(1-formula)/float64(bucket*million/scale)) {
				res.Pass = false
			}
			said := ""
			if b == 0 || b == len(shares)-1 {
				p := published[i][min(b, 1)]
				said = percent(p)
				shown = append(shown, percent(share))
				if math.Abs(share-p) > 0.025 {
					res.Pass = false
				}
			}
			table.Row(fmt.Sprintf("%v GiB", gib), fmt.Sprintf("%d to %d", b*bucket, (b+1)*bucket), said,
				percent(formula), percent(share))
		}
		chart.Series = append(chart.Series, plot.Series{Name: fmt.Sprintf("%v GiB", gib), X: x, Y: y})
	}
	res.Measured = fmt.Sprintf("%s and %s, %s and %s", shown[0], shown[1], shown[2], shown[3])
	res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
	return res, nil
}

// foundByAge writes keys and returns the share found of each bucket, the newest
// first.
func foundByAge(ctx context.Context, cfg keywrite.Config, keys, bucket, copies int) ([]float64, error) {
	t, err := keywrite.Open("", cfg)
	if err != nil {
		return nil, err
	}
	defer t.Region().Close()
	w, key, value, dst := t.Writer(0), make([]byte, 8), make([]byte, cfg.Value), make([]byte, 0, 128)
	for i := range uint64(keys) {
		writeKey(w, key, value, i, copies)
	}
	var shares []float64
	for end := keys; end >= bucket; end -= bucket {
		found := 0
		for i := end - bucket; i < end; i++ {
			if ok, _ := readKey(t, dst, key, uint64(i), 2); ok {
				found++
			}
		}
		shares = append(shares, float64(found)/float64(bucket))
	}
	return shares, ctx.Err()
}

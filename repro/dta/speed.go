package dta

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/slothash"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
)

var payload = claim.Claim{
	ID: "dta-payload", Where: "figure 10",
	Says:      "the rate of Key-Write reports falls as the redundancy grows, in proportion: with N = 2 and 4 it is this share of N = 1",
	Published: "about 1/2 and 1/4, for reports of 4 bytes",
	Run:       runPayload,
	Mutations: []claim.Mutation{copies},
}

// reportRun is packed reports with a head of 4 bytes and keys of 13.
func reportRun(reports, value int) []byte {
	size := 4 + 13 + value
	run := make([]byte, reports*size)
	for i := range reports {
		binary.LittleEndian.PutUint64(run[i*size+4:], uint64(i)*0x9e3779b97f4a7c15)
	}
	return run
}

func runPayload(ctx context.Context, o claim.Options) (claim.Result, error) {
	memory := int64(o.Pick(1<<30, 1<<28))
	reports := o.Pick(1<<21, 1<<19)
	if o.Broken() {
		memory, reports = 1<<26, 1<<17
	}
	res := claim.Result{Pass: true, Notes: []string{
		fmt.Sprintf("packed reports written by one core into %d MiB; CPU time in 5 rounds, which alternate between all that is compared; ratios are those of the median round", memory>>20),
		"the paper's limit is the message rate of its NIC, 100 M/s; here it is how many memory writes a core has in flight",
		"the paper sees no difference between 4 and 20 bytes until the line is full; here 20 bytes make slots of 24, some of which span two cache lines",
		"passes if N = 2 is 0.35 to 0.75 and N = 4 is 0.15 to 0.45 of N = 1, for 4 bytes",
	}}
	table := claim.Table{Title: "million reports a second of one core", Header: []string{"N", "4 bytes", "20 bytes"}}
	chart := plot.Chart{Title: "Key-Write reports by redundancy and payload", XTitle: "N", YTitle: "million reports/s"}
	m := &timing{o: o}
	for _, value := range []int{4, 20} {
		cfg := keywrite.Config{Layout: keywrite.Weft, Value: value, Check: 32, Slots: 1, Seed: o.Seed}
		cfg.Slots = uint64(memory / cfg.Size())
		t, err := keywrite.Open("", cfg)
		if err != nil {
			return res, err
		}
		defer t.Region().Close()
		t.Region().Prefault()
		run, w := reportRun(reports, value), t.Writer(0)
		for n := 1; n <= 4; n++ {
			m.add(reports, nil, func() error { _, err := w.WriteRun(run, 4, 13, written(o, n)); return err })
		}
	}
	o.Report(0, "N = 1 to 4")
	all, err := m.rates()
	if err != nil {
		return res, err
	}
	rates := [2][]float64{all[:4], all[4:]}
	var x []float64
	for n := 1; n <= 4; n++ {
		x = append(x, float64(n))
		table.Row(fmt.Sprint(n), fmt.Sprintf("%.3g", rates[0][n-1]), fmt.Sprintf("%.3g", rates[1][n-1]))
	}
	chart.Series = []plot.Series{{Name: "4 bytes", X: x, Y: rates[0]}, {Name: "20 bytes", X: x, Y: rates[1]}}
	two, four := rates[0][1]/rates[0][0], rates[0][3]/rates[0][0]
	res.Pass = two > 0.35 && two < 0.75 && four > 0.15 && four < 0.45
	res.Measured = fmt.Sprintf("%.2f and %.2f (N = 1: %.3g M/s of one core)", two, four, rates[0][0])
	res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
	return res, ctx.Err()
}

// millions a second.
func millions(n int, took time.Duration) float64 { return float64(n) / 1e6 / max(took.Seconds(), 1e-9) }

var querySpeed = claim.Claim{
	ID: "dta-query-speed", Where: "figure 11",
	Says:      "a core answers this many Key-Write queries a second with N = 2, fewer with more copies; entries are inserted faster than they are queried",
	Published: "1.8 M/s a core (7.1 M/s with 4), most of the time in CRC hashes",
	Run:       runQuerySpeed,
	Mutations: []claim.Mutation{places},
}

func runQuerySpeed(ctx context.Context, o claim.Options) (claim.Result, error) {
	memory := int64(o.Pick(1<<30, 1<<28))
	queries := o.Pick(1<<20, 1<<18)
	res := claim.Result{Notes: []string{
		fmt.Sprintf("%d random keys in %d MiB, all copies read; the best of 5 rounds, in CPU time of one core",
			queries, memory>>20),
		"the paper queries 4 GiB, with one CRC for each copy and one for the checksum; here one hash gives all",
		"the rate of several cores is the sum of what each answers in its own CPU time while all query the same memory: it shows what cores cost each other, not what a busy machine leaves them",
		"passes if N = 2 reaches the published rate of one core, one query after the other as in the paper, N = 4 is slower than N = 1, a run of reports is written faster than it is queried, and several cores have at least 0.75 of as many times the rate of one; queries in batches are shown beside it",
	}}
	if o.Broken() {
		memory, queries = 1<<24, 1<<12
	}
	t, err := keywrite.Open("", keywrite.DefaultConfig(memory))
	if err != nil {
		return res, err
	}
	defer t.Region().Close()
	t.Region().Prefault()
	run, w := reportRun(queries, 4), t.Writer(0)
	keys := make([]byte, 0, queries*13)
	for i := range queries {
		keys = append(keys, run[i*21+4:i*21+17]...)
	}
	table := claim.Table{
		Title:  "million queries a second of one core",
		Header: []string{"N", "in batches", "one by one", "share of hashing"},
	}
	chart := plot.Chart{Title: "Key-Write queries by redundancy", XTitle: "N", YTitle: "million queries/s"}
	var x, many, single []float64
	var insert float64
	found := 0
	dst := make([]byte, 0, 64)
	for n := 1; n <= 4; n++ {
		o.Report(float64(n-1)/4, fmt.Sprintf("N=%d", n))
		written := claim.Best(5, nil, func() { _, err = w.WriteRun(run, 4, 13, n) })
		if err != nil {
			return res, err
		}
		if n == 2 {
			insert = millions(queries, written)
		}
		q := keywrite.Query{Copies: n}
		all := claim.Best(5, nil, func() { err = t.LookupAll(dst, keys, 13, q, func(int, keywrite.Answer) {}) })
		if err != nil {
			return res, err
		}
		one := claim.Best(3, nil, func() {
			for i := 0; i < len(keys) && err == nil; i += 13 {
				if o.Without(places) {
					found += searchReports(run, keys[i:i+13])
					continue
				}
				_, err = t.Lookup(dst, keys[i:i+13], q)
			}
		})
		if err != nil {
			return res, err
		}
		sum := uint64(0)
		hash := claim.Best(3, nil, func() {
			for i := 0; i < len(keys); i += 13 {
				h := slothash.HashKey(keys[i:i+13], o.Seed)
				for c := range n {
					sum += h.Slot(c, t.Config().Slots)
				}
			}
		})
		if sum == 0 {
			return res, fmt.Errorf("no key has a slot")
		}
		x, many, single = append(x, float64(n)), append(many, millions(queries, all)), append(single,
			millions(queries, one))
		table.Row(fmt.Sprint(n), fmt.Sprintf("%.3g", many[n-1]), fmt.Sprintf("%.3g", single[n-1]),
			percent(hash.Seconds()/max(all.Seconds(), 1e-9)))
	}
	chart.Series = []plot.Series{{Name: "in batches", X: x, Y: many}, {Name: "one by one", X: x, Y: single}}
	byCores := claim.Table{Title: "million queries a second with N = 2, one by one", Header: []string{"cores", "rate", "times one core's"}}
	var alone, times float64
	cores := min(runtime.GOMAXPROCS(0), 4)
	if o.Broken() {
		cores = 0
	}
	for n := 1; n <= cores; n++ {
		rate, err := queriesByCores(t, keys, n)
		if err != nil {
			return res, err
		}
		if n == 1 {
			alone = rate
		}
		times = rate / alone
		byCores.Row(fmt.Sprint(n), fmt.Sprintf("%.3g", rate), fmt.Sprintf("%.2f", times))
	}
	res.Pass = single[1] >= 7.1/4 && single[3] < single[0] && insert > single[1] && times >= 0.75*float64(cores)
	res.Measured = fmt.Sprintf("%.3g M/s a core (in batches %.3g), %.2f times that with %d cores; inserted at %.3g M/s", single[1], many[1], times, cores, insert)
	res.Tables, res.Plots = []claim.Table{table, byCores}, []claim.Plot{{Chart: chart}}
	return res, ctx.Err()
}

// queriesByCores returns how many million queries a second a number of cores answer at the
// same time, one by one, with keys of 13 bytes and two copies: the best of three rounds.
func queriesByCores(t *keywrite.Table, keys []byte, cores int) (best float64, err error) {
	for range 3 {
		rates, errs := make([]float64, cores), make([]error, cores)
		var all sync.WaitGroup
		for c := range cores {
			all.Go(func() {
				dst := make([]byte, 0, 64)
				took := claim.Thread(func() {
					for i := 0; i < len(keys) && errs[c] == nil; i += 13 {
						_, errs[c] = t.Lookup(dst, keys[i:i+13], keywrite.Query{Copies: 2})
					}
				})
				rates[c] = millions(len(keys)/13, took)
			})
		}
		all.Wait()
		sum := 0.0
		for c := range cores {
			sum, err = sum+rates[c], cmp.Or(err, errs[c])
		}
		best = max(best, sum)
	}
	return best, err
}

// searchReports returns the number of packed reports of 4 bytes before the one with
// a key.
func searchReports(run, key []byte) int {
	for i := 0; i < len(run); i += 21 {
		if bytes.Equal(run[i+4:i+17], key) {
			return i / 21
		}
	}
	return len(run) / 21
}

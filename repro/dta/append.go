package dta

import (
	"context"
	"fmt"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
	wire "github.com/weft-telemetry/weft/wire/dta"
)

var appendBatch = claim.Claim{
	ID: "dta-append-batch", Where: "figure 15",
	Says:      "the rate of Append reports grows with the batch, in proportion until the line is full with batches of 4: batches of 4 and 16 reach this multiple of the rate of single reports; the size of the list does not matter",
	Published: "4 and about 10 times; no difference between sizes",
	Run:       runAppendBatch,
	Mutations: []claim.Mutation{batches},
}

var appendLists = claim.Claim{
	ID: "dta-append-lists", Where: "section 6.7",
	Says:      "reports that go to 131K lists at once are appended about as fast as the memory takes lines at as many places; on a NIC, about as fast as to one list",
	Published: "negligible difference",
	Run:       runAppendLists,
	Mutations: []claim.Mutation{batches},
}

// openLists opens lists.
func openLists(lists, capacity, batch, entry int) (*list.Table, error) {
	cfg := list.DefaultConfig(lists, capacity)
	cfg.Batch, cfg.Classes[0].Entry = batch, entry
	t, err := list.Open("", cfg)
	if err == nil {
		t.Region().Prefault()
	}
	return t, err
}

// memoryRate returns millions of entries per second, from ready-made batches.
// spread returns the list of the i-th batch.
func memoryRate(t *list.Table, batches int, spread func(i int) uint32) (rate float64, err error) {
	cfg := t.Config()
	ready, w := make([]byte, cfg.Classes[0].Entry*cfg.Batch), t.Writer(0)
	took := claim.Best(5, nil, func() {
		for i := 0; i < batches && err == nil; i++ {
			ready[0] = byte(i)
			err = w.Append(spread(i), ready)
		}
	})
	return millions(batches*cfg.Batch, took), err
}

// translatorRate returns millions of reports per second through the translator,
// which makes the batches.
func translatorRate(t *list.Table, entries int, spread func(i int) uint32) (float64, error) {
	batch := t.Config().Batch
	out, err := translate.NewLocalWriter(&translate.Memory{Lists: []*list.Table{t}}, 0, false, nil)
	if err != nil {
		return 0, err
	}
	tr, err := translate.New(translate.DefaultConfig(), out.Plan, out)
	if err != nil {
		return 0, err
	}
	const together = 64 // reports of a datagram
	data, reports := make([]byte, t.Config().Classes[0].Entry), make([]wire.Report, together)
	took := claim.Best(5, nil, func() {
		for i := 0; i < entries; i += together {
			for j := range reports {
				reports[j] = wire.Report{Primitive: wire.Append, List: wire.ListID(spread((i + j) / batch)), Data: data}
			}
			tr.Put(0, reports)
		}
	})
	return millions(entries, took), nil
}

func alone(int) uint32 { return 0 }

// appendRates opens lists and returns both rates.
func appendRates(lists, capacity, batch, entry int, o claim.Options, spread func(i int) uint32) (memory,
	reports float64, err error,
) {
	t, err := openLists(lists, capacity, batchOf(o, batch), entry)
	if err != nil {
		return 0, 0, err
	}
	defer t.Region().Close()
	batches, entries := o.Pick(1<<23, 1<<22), o.Pick(1<<22, 1<<21)
	if o.Broken() {
		batches, entries = 1<<19, 1<<18
	}
	if memory, err = memoryRate(t, batches, spread); err != nil {
		return 0, 0, err
	}
	reports, err = translatorRate(t, entries, spread)
	return memory, reports, err
}

func runAppendBatch(ctx context.Context, o claim.Options) (claim.Result, error) {
	batches := []int{1, 2, 4, 8, 16}
	sizes := []int{1 << 16, 1 << 20, 1 << 24}
	res := claim.Result{Pass: true, Notes: []string{
		"one list, one core; the best of 5 rounds, in CPU time",
		"the paper's limit is the message rate of a NIC: here that is ready-made batches, written into memory by a core",
		"batches of 64 bytes, 16 entries of 4 or 8 of 8, are a cache line and are stored as one; others word by word",
		"the translator also costs time per report, which a switch does not: it has a separate column, and is no part of the verdict",
		"passes if batches of 4 reach 3 to 5 times the rate of single entries and those of 16 at least 8 times, no batch is slower than a smaller one, and no size of list is below 0.75 of another, all for 4 bytes into memory",
	}}
	table := claim.Table{Title: "million entries a second of one core (and times the rate of single ones), a list of 2^20", Header: []string{"batch", "4 bytes into memory", "8 bytes into memory", "4 bytes through the translator"}}
	chart := plot.Chart{
		Title: "Append by batch", XTitle: "entries in a batch", YTitle: "million entries/s",
		LogX: true, LogY: true,
	}
	var x, memory, words, reports []float64
	for i, batch := range batches {
		o.Report(float64(i)/8, fmt.Sprintf("batches of %d", batch))
		four, through, err := appendRates(1, 1<<20, batch, 4, o, alone)
		if err != nil {
			return res, err
		}
		eight, _, err := appendRates(1, 1<<20, batch, 8, o, alone)
		if err != nil {
			return res, err
		}
		res.Pass = res.Pass && (i == 0 || four > memory[i-1])
		x, memory, words, reports = append(x, float64(batch)), append(memory, four), append(words,
			eight), append(reports, through)
		cell := func(rates []float64) string { return fmt.Sprintf("%.4g (%.1f)", rates[i], rates[i]/rates[0]) }
		table.Row(fmt.Sprint(batch), cell(memory), cell(words), cell(reports))
	}
	bySize := claim.Table{
		Title:  "million entries of 4 bytes a second into memory, batches of 16",
		Header: []string{"entries of the list", "rate"},
	}
	var least, most float64
	for i, size := range sizes {
		o.Report(float64(len(batches)+i)/8, fmt.Sprintf("a list of %d", size))
		rate, _, err := appendRates(1, size, 16, 4, o, alone)
		if err != nil {
			return res, err
		}
		if most = max(most, rate); i == 0 || rate < least {
			least = rate
		}
		bySize.Row(fmt.Sprint(size), fmt.Sprintf("%.4g", rate))
	}
	four, sixteen, even := memory[2]/memory[0], memory[4]/memory[0], least/most
	res.Pass = res.Pass && four >= 3 && four <= 5 && sixteen >= 8 && even >= 0.75
	res.Measured = fmt.Sprintf("%.1f and %.1f times (of 8 bytes %.1f and %.1f, through the translator %.1f and %.1f); the slowest size of list has %.2f of the fastest's rate",
		four, sixteen, words[2]/words[0], words[4]/words[0], reports[2]/reports[0], reports[4]/reports[0], even)
	chart.Series = []plot.Series{
		{Name: "4 bytes into memory", X: x, Y: memory},
		{Name: "8 bytes into memory", X: x, Y: words},
		{Name: "4 bytes through the translator", X: x, Y: reports},
	}
	res.Tables, res.Plots = []claim.Table{table, bySize}, []claim.Plot{{Chart: chart}}
	return res, ctx.Err()
}

// bareWriteRate returns millions of entries per second written to the rings of
// lists drawn at random, 16 to a cache line, without any other work: each visit
// of a list writes its next line.
func bareWriteRate(lists, capacity int, o claim.Options) (float64, error) {
	t, err := openLists(lists, capacity, ofSixteen, 4)
	if err != nil {
		return 0, err
	}
	defer t.Region().Close()
	ring, rng := capacity*4/8, claim.Rand(o.Seed, 0)
	rings := t.Region().Words()
	rings = rings[len(rings)-lists*ring:]
	order := make([]int, 1<<16)
	for i := range order {
		order[i] = rng.IntN(lists) * ring
	}
	batches, ready := o.Pick(1<<23, 1<<22), new([64]byte)
	took := claim.Best(5, nil, func() {
		for i := range batches {
			to := rings[order[i&(len(order)-1)]+i/len(order)*8%ring:]
			region.StoreLine((*[8]uint64)(to), ready, &to[0])
		}
	})
	return millions(batches*ofSixteen, took), nil
}

func runAppendLists(ctx context.Context, o claim.Options) (claim.Result, error) {
	const capacity = 256 // 131K such lists are 128 MiB
	numbers := []int{1, 255, 1 << 12, 131_000}
	res := claim.Result{Notes: []string{
		"batches of 16 entries of 4 bytes, each to a list drawn at random, rings of 256; one core, the best of 5 rounds, in CPU time",
		"a core waits for a list's ring and head to be read from memory, and the paper's NIC does not: the ring of one list stays in the L1 cache and those of 131K do not. What carries over is that the lists' own work is negligible beside the memory's: bare lines, written to the same addresses without a head, are that limit, measured in the same run",
		"passes if 131K lists reach 0.75 of the rate of bare lines, into memory",
	}}
	table := claim.Table{
		Title:  "million entries a second of one core",
		Header: []string{"lists", "into memory", "through the translator"},
	}
	chart := plot.Chart{Title: "Append by number of lists", XTitle: "lists", YTitle: "million entries/s", LogX: true}
	var x, memory, reports []float64
	for i, n := range numbers {
		o.Report(float64(i)/float64(len(numbers)), fmt.Sprintf("%d lists", n))
		rng := claim.Rand(o.Seed, uint64(n))
		order := make([]uint32, 1<<16)
		for j := range order {
			order[j] = uint32(rng.IntN(n))
		}
		m, through, err := appendRates(n, capacity, ofSixteen, 4, o,
			func(i int) uint32 { return order[i&(len(order)-1)] })
		if err != nil {
			return res, err
		}
		x, memory, reports = append(x, float64(n)), append(memory, m), append(reports, through)
		table.Row(fmt.Sprint(n), fmt.Sprintf("%.4g", m), fmt.Sprintf("%.3g", through))
	}
	last := len(numbers) - 1
	bare, err := bareWriteRate(numbers[last], capacity, o)
	if err != nil {
		return res, err
	}
	share := memory[last] / bare
	res.Pass = share >= 0.75
	res.Measured = fmt.Sprintf("%.2f of the rate of bare lines; of one list's rate %.2f into memory, %.2f through the translator, bare lines %.2f", share, memory[last]/memory[0], reports[last]/reports[0], bare/memory[0])
	chart.Series = []plot.Series{
		{Name: "into memory", X: x, Y: memory},
		{Name: "through the translator", X: x, Y: reports},
	}
	res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
	return res, ctx.Err()
}

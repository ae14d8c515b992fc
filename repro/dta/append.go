package dta

import (
	"context"
	"fmt"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
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

// appendRounds is more than the usual number: a batch takes nanoseconds, and the caches of
// a busy machine change from round to round.
const appendRounds = 9

func runAppendBatch(ctx context.Context, o claim.Options) (claim.Result, error) {
	batches := []int{1, 2, 4, 8, 16}
	sizes := []int{1 << 16, 1 << 20, 1 << 24}
	res := claim.Result{Pass: true, Notes: []string{
		"one list, one core; CPU time in 9 rounds, which alternate between all that is compared; ratios are those of the median round",
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
	o.Report(0, "batches and sizes")
	m := &timing{o: o, turns: appendRounds}
	var at [][3]int
	for _, batch := range batches {
		four, eight := appendRun{1, 1 << 20, batch, 4, alone}, appendRun{1, 1 << 20, batch, 8, alone}
		t := m.lists(four)
		at = append(at, [3]int{m.addMemory(t, four), m.addMemory(m.lists(eight), eight), m.addTranslator(t, four)})
	}
	var atSize []int
	for _, size := range sizes {
		r := appendRun{1, size, 16, 4, alone}
		atSize = append(atSize, m.addMemory(m.lists(r), r))
	}
	rate, err := m.rates()
	if err != nil {
		return res, err
	}
	var x, memory, words, reports []float64
	for i, batch := range batches {
		res.Pass = res.Pass && (i == 0 || rate[at[i][0]] > memory[i-1])
		x, memory = append(x, float64(batch)), append(memory, rate[at[i][0]])
		words, reports = append(words, rate[at[i][1]]), append(reports, rate[at[i][2]])
		cell := func(rates []float64) string { return fmt.Sprintf("%.4g (%.1f)", rates[i], rates[i]/rates[0]) }
		table.Row(fmt.Sprint(batch), cell(memory), cell(words), cell(reports))
	}
	bySize := claim.Table{
		Title:  "million entries of 4 bytes a second into memory, batches of 16",
		Header: []string{"entries of the list", "rate"},
	}
	least, most := rate[atSize[0]], rate[atSize[0]]
	for i, size := range sizes {
		v := rate[atSize[i]]
		least, most = min(least, v), max(most, v)
		bySize.Row(fmt.Sprint(size), fmt.Sprintf("%.4g", v))
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

func runAppendLists(ctx context.Context, o claim.Options) (claim.Result, error) {
	const capacity = 256 // 131K such lists are 128 MiB
	numbers := []int{1, 255, 1 << 12, 131_000}
	res := claim.Result{Notes: []string{
		"batches of 16 entries of 4 bytes, each to a list drawn at random, rings of 256; one core, CPU time in 9 rounds, which alternate between all that is compared; ratios are those of the median round",
		"a core waits for a list's ring and head to be read from memory, and the paper's NIC does not: the ring of one list stays in the L1 cache and those of 131K do not. What carries over is that the lists' own work is negligible beside the memory's: bare lines, written to the same addresses without a head, are that limit, measured in the same run; bare lines whose list's head is also counted, in another line, show what of the difference is the head",
		"passes if 131K lists reach 0.75 of the rate of bare lines, into memory",
	}}
	table := claim.Table{
		Title:  "million entries a second of one core",
		Header: []string{"lists", "into memory", "through the translator"},
	}
	chart := plot.Chart{Title: "Append by number of lists", XTitle: "lists", YTitle: "million entries/s", LogX: true}
	o.Report(0, "one list to 131K")
	m := &timing{o: o, turns: appendRounds}
	var at [][2]int
	for _, n := range numbers {
		rng := claim.Rand(o.Seed, uint64(n))
		order := make([]uint32, 1<<16)
		for j := range order {
			order[j] = uint32(rng.IntN(n))
		}
		r := appendRun{n, capacity, ofSixteen, 4, func(i int) uint32 { return order[i&(len(order)-1)] }}
		t := m.lists(r)
		at = append(at, [2]int{m.addMemory(t, r), m.addTranslator(t, r)})
	}
	last := len(numbers) - 1
	bareLines, bareHeads := m.addBareLines(numbers[last], capacity, false), m.addBareLines(numbers[last], capacity, true)
	rate, err := m.rates()
	if err != nil {
		return res, err
	}
	var x, memory, reports []float64
	for i, n := range numbers {
		x, memory, reports = append(x, float64(n)), append(memory, rate[at[i][0]]), append(reports, rate[at[i][1]])
		table.Row(fmt.Sprint(n), fmt.Sprintf("%.4g", memory[i]), fmt.Sprintf("%.3g", reports[i]))
	}
	bare := rate[bareLines]
	share := memory[last] / bare
	table.Row("bare lines of 131000", fmt.Sprintf("%.4g", bare), "")
	table.Row("bare lines and heads of 131000", fmt.Sprintf("%.4g", rate[bareHeads]), "")
	res.Pass = share >= 0.75
	res.Measured = fmt.Sprintf("%.2f of the rate of bare lines, %.2f of that of bare lines and heads; of one list's rate %.2f into memory, %.2f through the translator, bare lines %.2f",
		share, memory[last]/rate[bareHeads], memory[last]/memory[0], reports[last]/reports[0], bare/memory[0])
	chart.Series = []plot.Series{
		{Name: "into memory", X: x, Y: memory},
		{Name: "through the translator", X: x, Y: reports},
	}
	res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
	return res, ctx.Err()
}

package dta

import (
	"context"
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
)

var cpuCollectors = claim.Claim{
	ID: "dta-cpu-collectors", Where: "figure 2",
	Says:      "a core that only fills a cuckoo table takes more reports than one that keeps an indexed log, which spends this share of its time on inserting",
	Published: "more; 72.8 % (Atomic MultiLog)",
	Run:       runCPUCollectors,
	Mutations: []claim.Mutation{indexes},
}

var collection = claim.Claim{
	ID: "dta-collection", Where: "figure 7a",
	Says:      "Key-Write, Postcarding and Append take this many times the reports of an indexed log",
	Published: "at least 4, 16 and 41 times (16 cores of MultiLog against the NIC alone)",
	Run:       runCollection,
	Mutations: []claim.Mutation{indexes},
}

var switches = claim.Claim{
	ID: "dta-switches", Where: "table 1, figures 3 and 7b",
	Says:      "a core with an indexed log serves a small part of a switch that reports INT postcards; with DTA it serves this many times the switches, of every system in table 1",
	Published: "0.1 switches a core (10K cores for 1,000 switches); 10 to 100 times the switches",
	Run:       runSwitches,
	Mutations: []claim.Mutation{indexes},
}

var postcarding = claim.Claim{
	ID: "dta-postcarding", Where: "section 6.6",
	Says:      "Postcarding takes at least as many reports as Key-Write with N = 1, because the five of a path are written at once",
	Published: "up to 4.3 times",
	Run:       runPostcarding,
	Mutations: []claim.Mutation{gathering},
}

// sharedRates are evaluated by four claims.
var sharedRates claim.Shared[rates]

// rateNotes describe how collectors measures.
func rateNotes(r rates) []string {
	return []string{
		fmt.Sprintf("%d reports of 4 bytes from %d flows of a fat-tree, packed in memory, parsed and stored by one core; %d MiB for Key-Write and for Postcarding; CPU time in 5 rounds, which alternate between all that is compared; ratios are those of the median round", r.reports, r.flows, r.mib),
		"the log is ours: in the manner of Atomic MultiLog, with indexes by flow, which is what the paper's queries use, and by each field of its key, but without atomic operations, filters and aggregates",
		fmt.Sprintf("the paper's MultiLog takes 1.9 M/s a core (10K cores for 1,000 switches of 19 M/s), this log %.3g M/s: it is the harder one to beat", r.log),
		"nothing is received from a network on either side; in the paper, DTA's translator is a switch and takes no core at all",
	}
}

func rateTable(r rates) (t claim.Table, chart plot.Chart) {
	t = claim.Table{
		Title:  "million reports a second of one core",
		Header: []string{"collector", "rate", "times the log"},
	}
	chart = plot.Chart{Title: "Reports that a core collects", YTitle: "million reports/s"}
	var y []float64
	for _, row := range []struct {
		name string
		rate float64
	}{
		{"indexed log", r.log},
		{"hash table", r.hash},
		{"cuckoo table", r.cuckoo},
		{"Key-Write, N=2", r.write2},
		{"Key-Write, N=1", r.write},
		{"Postcarding", r.postcard},
		{"Postcarding, hop by hop", r.scattered},
		{"Append", r.append},
	} {
		t.Row(row.name, fmt.Sprintf("%.3g", row.rate), fmt.Sprintf("%.2f", row.rate/r.log))
		chart.Groups, y = append(chart.Groups, row.name), append(y, row.rate)
	}
	chart.Series = []plot.Series{{Name: "measured", Y: y}}
	return t, chart
}

func runCPUCollectors(ctx context.Context, o claim.Options) (claim.Result, error) {
	r, err := sharedRates.Get(o, func() (rates, error) { return collectors(ctx, o) })
	if err != nil {
		return claim.Result{}, err
	}
	inserting := 1 - r.log/r.parse
	table, chart := rateTable(r)
	return claim.Result{
		Measured: fmt.Sprintf("%.2f times (a hash table %.2f); %s of the log's time", r.cuckoo/r.log, r.hash/r.log,
			percent(inserting)),
		Pass: r.cuckoo > r.log && inserting > 0.5,
		Notes: append(rateNotes(r),
			"the paper's share is of all cycles, those for input among them; here inserting is what is not parsing",
			"the memory limit of a cuckoo table with 11 cores and more is not measured",
			"passes if the cuckoo table is faster and the log spends most of its time on inserting"),
		Tables: []claim.Table{table}, Plots: []claim.Plot{{Chart: chart}},
	}, nil
}

func runCollection(ctx context.Context, o claim.Options) (claim.Result, error) {
	r, err := sharedRates.Get(o, func() (rates, error) { return collectors(ctx, o) })
	if err != nil {
		return claim.Result{}, err
	}
	table, chart := rateTable(r)
	write, cards, entries := r.write/r.log, r.postcard/r.log, r.append/r.log
	return claim.Result{
		Measured: fmt.Sprintf("%.1f, %.1f and %.1f times, one core on both sides", write, cards, entries),
		Pass:     write >= 4 && cards >= 16 && entries >= 41,
		Notes: append(rateNotes(r),
			"Postcarding counts postcards, five to a path, which follow each other as a switch sends them that ends a path; the table has beside it those of five switches that report separately, 64 paths at a time; Append has batches of 16",
			"passes if all three reach what was published"),
		Tables: []claim.Table{table}, Plots: []claim.Plot{{Chart: chart}},
	}, nil
}

func runPostcarding(ctx context.Context, o claim.Options) (claim.Result, error) {
	r, err := sharedRates.Get(o, func() (rates, error) { return collectors(ctx, o) })
	if err != nil {
		return claim.Result{}, err
	}
	table, chart := rateTable(r)
	ratio := r.postcard / r.write
	return claim.Result{
		Measured: fmt.Sprintf("%.2f times: %.3g against %.3g M/s of one core", ratio, r.postcard, r.write),
		Pass:     ratio >= 1,
		Notes: append(rateNotes(r),
			"the paper's limit is the message rate of its NIC, of which a path takes one and five Key-Writes take five; here it is the time of a core, which waits for memory as long as it parses, compares and copies the five postcards of a path",
			"passes from 1 on: 4.3 is the best of the paper's cases"),
		Tables: []claim.Table{table}, Plots: []claim.Plot{{Chart: chart}},
	}, nil
}

func runSwitches(ctx context.Context, o claim.Options) (claim.Result, error) {
	r, err := sharedRates.Get(o, func() (rates, error) { return collectors(ctx, o) })
	if err != nil {
		return claim.Result{}, err
	}
	res := claim.Result{Pass: true, Notes: append(rateNotes(r),
		"reports of each system go to the primitive that the paper's table 2 gives it; entries of lists hold key and value",
		"passes if the log serves less than one switch with INT postcards, and DTA at least 10 times as many as the log with every system")}
	table := claim.Table{Title: "switches of 6.4 Tbit/s that a core serves", Header: []string{
		"system", "million reports/s a switch", "indexed log", "cuckoo table", "DTA", "primitive", "times the log", "cores for 1,000 switches: log", "DTA",
	}}
	chart := plot.Chart{Title: "Switches that a core serves", YTitle: "switches", LogY: true}
	var logs, ours []float64
	var times []string
	for _, s := range []struct {
		name      string
		rate      float64 // table 1, millions a second
		primitive string
		dta       float64
	}{
		{"INT postcards", 19, "Postcarding", r.postcard},
		{"Marple flowlet sizes", 7.2, "Append", r.appendKey},
		{"Marple TCP out-of-sequence", 6.7, "Key-Write", r.write},
		{"NetSeer loss events", 0.95, "Append", r.appendKey},
	} {
		log, dta := r.log/s.rate, s.dta/s.rate
		table.Row(s.name, fmt.Sprint(s.rate), fmt.Sprintf("%.2f", log), fmt.Sprintf("%.2f", r.cuckoo/s.rate),
			fmt.Sprintf("%.2f", dta),
			s.primitive, fmt.Sprintf("%.1f", dta/log), fmt.Sprintf("%.0f", 1000/log), fmt.Sprintf("%.0f", 1000/dta))
		res.Pass = res.Pass && dta >= 10*log
		times = append(times, fmt.Sprintf("%.1f", dta/log))
		chart.Groups, logs, ours = append(chart.Groups, s.name), append(logs, log), append(ours, dta)
	}
	chart.Series = []plot.Series{{Name: "indexed log", Y: logs}, {Name: "DTA", Y: ours}}
	res.Pass = res.Pass && logs[0] < 1
	res.Measured = fmt.Sprintf("%.2f switches a core; %s times the switches", logs[0], strings.Join(times, ", "))
	res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
	return res, nil
}

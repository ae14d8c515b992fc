// Package claim defines a paper's claim: what was published, how to measure it
// here, and the verdict. The claims themselves are in the folders of their
// papers; repro lists and runs them.
package claim

import (
	"context"

	"github.com/weft-telemetry/weft/internal/plot"
)

// Claim is one sentence of a paper that can be measured.
type Claim struct {
	ID        string // as on the command line, begins with the paper's name
	Where     string // section or figure of the paper
	Says      string // the claim in our words
	Published string // the paper's value
	// Run measures the claim. It must depend on its options alone, except for
	// times. An error means that nothing could be measured; a claim that does
	// not hold is no error, but a Result that did not pass.
	Run func(ctx context.Context, o Options) (Result, error)
	// Mutations are mechanisms without any of which Run must not pass.
	Mutations []Mutation
}

// Options are the same for every claim.
type Options struct {
	Seed  uint64
	Quick bool // fewer trials or smaller sizes: under a minute
	// Progress receives the share done, 0 to 1, and the current step. It may be
	// nil and is called from one goroutine at a time.
	Progress func(done float64, doing string)
	// Parts continues an interrupted measurement; nil: it starts anew.
	Parts Parts

	removed string // the name of a mutation, whose mechanism is missing
}

// Report calls Progress, if there is one.
func (o Options) Report(done float64, doing string) {
	if o.Progress != nil {
		o.Progress(done, doing)
	}
}

// Pick returns full, or quick where the options say so.
func (o Options) Pick(full, quick int) int {
	if o.Quick {
		return quick
	}
	return full
}

// Result is the outcome of a measurement.
type Result struct {
	Measured string // comparable with Published by eye
	Pass     bool
	Notes    []string // how it was measured, and what differs from the paper
	Tables   []Table
	Plots    []Plot
}

// Table is the evidence in rows.
type Table struct {
	Title  string     `json:"title"`
	Header []string   `json:"header"`
	Rows   [][]string `json:"rows"`
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// Plot is a chart and the suffix of its file's name; a claim's only plot has none.
type Plot struct {
	Suffix string
	Chart  plot.Chart
}

package report

import (
	"bufio"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/internal/plot"
)

//go:embed style.css
var styleSheet string

//go:embed report.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"count":    showCount[int],
	"packets":  showCount[uint64],
	"bytes":    showBytes,
	"rate":     showRate,
	"duration": showDuration,
	"percent":  showPercent,
	"slowdown": showSlowdown,
	"port":     portName,
	"bar":      func(share float64) string { return plot.Num(min(max(share, 0), 1) * 100) },
}).Parse(pageText))

// Rows of the report's tables; a line below each says how many more there are.
const (
	slowFlows = 25
	dropRows  = 30
)

// page is the data of the template.
type page struct {
	Summary
	Style      template.CSS
	HopsText   string
	CDF        template.HTML
	Size       template.HTML
	Queues     template.HTML
	Pauses     template.HTML
	SizeNote   string
	QueueNote  string
	PauseNote  string
	DropTotal  uint64
	DropRows   []Drop
	DropsMore  int
	Slow       []slowFlow
	Unfinished int
	Ports      int

	Diagnoses []string
	Injected  []string
	Expected  []Judged
	Verdict   string
	Missed    int
}

// slowFlow is a row of the table of flows.
type slowFlow struct {
	*FlowResult
	Start  time.Duration // since the start of the run
	Factor float64       // slowdown, or its lower bound at the end
	Done   float64       // share of the bytes delivered
}

// WriteHTML writes one self-contained page with plots and tables: no script, no
// font, no address. Its size is bounded: plots are downsampled to the
// resolution of a screen, tables list the worst, and both say so.
func (r *Run) WriteHTML(w io.Writer) error {
	queues := r.pausedQueues()
	s := r.Summarize()
	pauses := plotPauses(r, queues)
	p := page{
		Summary: s, Style: template.CSS(plot.Style + styleSheet), HopsText: s.hops(),
		// Safe as HTML: svg escapes every name.
		CDF: template.HTML(plotCDF(r)), Size: template.HTML(plotSize(r)),
		Queues: template.HTML(plotQueues(r, s.Deepest)), Pauses: template.HTML(pauses.svg),
		SizeNote: r.sizeNote(s), QueueNote: r.queueNote(s.Deepest), PauseNote: pauses.note(),
		Slow: r.slowest(slowFlows), Unfinished: s.Flows.Total - s.Flows.Finished, Ports: len(r.Ports),
		Diagnoses: r.Diagnoses, Injected: r.Injected, Expected: r.Expected, Verdict: r.Verdict,
	}
	for _, e := range r.Expected {
		if !e.Pass {
			p.Missed++
		}
	}
	for _, d := range s.Drops {
		p.DropTotal += d.Packets
	}
	p.DropRows = slices.DeleteFunc(slices.Clone(r.Drops), func(d Drop) bool { return d.Packets == 0 })
	slices.SortStableFunc(p.DropRows, func(a, b Drop) int { return cmp.Compare(b.Packets, a.Packets) })
	if n := len(p.DropRows); n > dropRows {
		p.DropRows, p.DropsMore = p.DropRows[:dropRows], n-dropRows
	}
	out := bufio.NewWriter(w)
	if err := pageTemplate.Execute(out, p); err != nil {
		return fmt.Errorf("report page: %w", err)
	}
	return out.Flush()
}

// slowest lists the n flows with the largest slowdown, unfinished ones by their
// lower bound.
func (r *Run) slowest(n int) []slowFlow {
	rows := make([]slowFlow, 0, len(r.Flows))
	for i := range r.Flows {
		f := &r.Flows[i]
		row := slowFlow{FlowResult: f, Start: f.Start.Sub(0), Factor: f.slowdownSoFar(r.End)}
		if f.Bytes > 0 {
			row.Done = float64(f.delivered()) / float64(f.Bytes)
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b slowFlow) int { return cmp.Compare(b.Factor, a.Factor) })
	return rows[:min(n, len(rows))]
}

func (r *Run) sizeNote(s Summary) string {
	n := s.Slowdown.All.Flows
	var parts []string
	if n > maxDots {
		parts = append(parts, fmt.Sprintf("%s, counted in cells of %d pixels; darker cells hold more (log scale).",
			countOf(n, "flow"), cellSize))
	} else {
		parts = append(parts, "One dot per finished flow.")
	}
	if left := s.Flows.Total - n; left > 0 {
		parts = append(parts, countOf(left, "flow")+" without a slowdown (unfinished, or no ideal time) not drawn.")
	}
	return strings.Join(parts, " ")
}

func (r *Run) queueNote(deepest []PortSummary) string {
	if len(r.Ports) == 0 {
		return "No port was sampled."
	}
	shown := min(len(deepest), plot.Colours)
	all, longest := 0, 0
	for i := range r.Ports {
		all += len(r.Ports[i].Samples)
	}
	for _, p := range deepest[:shown] {
		longest = max(longest, len(p.series.Samples))
	}
	note := fmt.Sprintf("The %d deepest of %s, sampled every %s (%s in all).",
		shown, countOf(len(r.Ports), "port"), showDuration(r.Interval), countOf(all, "sample"))
	if longest > 2*columns {
		note += " Each pixel column keeps the smallest and the largest of its samples."
	}
	return note
}

func (p pausePlot) note() string {
	if p.shown == 0 {
		return ""
	}
	note := "By the paused port, in order of its first pause; at the left the share of time it was paused."
	if p.queues > p.shown {
		note += fmt.Sprintf(" The %d longest paused of %s.", p.shown, countOf(p.queues, "queue"))
	}
	if p.merged {
		note += fmt.Sprintf(" %s merged: a darker bar is a larger paused share of two pixels.", countOf(p.visible, "pause"))
	}
	return note
}

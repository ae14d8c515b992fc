package report

import "github.com/weft-telemetry/weft/internal/plot"

// chart is a plot of the report, with what only a run has to draw.
type chart struct{ *plot.Frame }

func newChart(w, h float64, m plot.Margins, label string) *chart {
	return &chart{plot.NewFrame(w, h, m, label)}
}

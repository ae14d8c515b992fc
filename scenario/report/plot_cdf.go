package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/internal/plot"
)

// series is a named list of ascending values.
type series struct {
	name   string
	class  string
	values []float64
}

// plotCDF draws the share of flows at or below each slowdown: all flows, and
// each size bin that has some.
func plotCDF(r *Run) string {
	p := newChart(540, 330, plot.Margins{Left: 60, Top: 12, Right: 16, Bottom: 46}, "CDF of FCT slowdown")
	all, bins := r.slowdownsBySize()
	lines := []series{{"all flows", "all", all}}
	for i, b := range sizeBins {
		if len(bins[i]) > 0 {
			lines = append(lines, series{b.name, plot.Colour(i), bins[i]})
		}
	}
	if len(lines) == 2 {
		lines = lines[:1] // one bin is all flows
	}
	worst := 1.0
	for _, l := range lines {
		slices.Sort(l.values)
		if n := len(l.values); n > 0 {
			worst = max(worst, l.values[n-1])
		}
	}
	p.X = plot.Logarithmic(1, worst*1.05, p.Left, p.Right)
	p.Y = plot.Linear(0, 1, p.Bottom, p.Top)
	p.XAxis(plot.Axis{Title: "FCT slowdown (FCT ÷ ideal FCT, log)", Unit: plot.Plain, Ticks: 8})
	p.YAxis(plot.Axis{Title: "share of flows", Ticks: 5, Label: func(v float64) string {
		return plot.Unit{
			Name: "",
			Size: 0.01,
		}.Label(v) + " %"
	}})
	if len(all) == 0 {
		p.Nothing("no finished flows")
		return p.End()
	}
	p.Strips(48, func(_, to float64) string { return cdfTitle(lines, to) })
	for i := len(lines) - 1; i >= 0; i-- { // all flows on top
		p.Path(p.Stairs(lines[i].values), plot.Attr{Class: "line " + lines[i].class})
	}
	for _, permille := range []int{500, 950, 990} {
		v := percentile(all, permille)
		p.Dot(p.X.At(v), p.Y.At(float64(permille)/1000), 3.4, plot.Attr{
			Class: "mark", Title: fmt.Sprintf("all flows, p%d: %s", permille/10, showSlowdown(v)),
		})
	}
	// Curves leave the lower right corner free: they end at the top.
	y := p.Bottom - 12 - 16*float64(len(lines)-1)
	for _, l := range lines {
		p.LegendRow(p.Right-150, y, l.class, l.name+" · "+showCount(len(l.values)))
		y += 16
	}
	return p.End()
}

func cdfTitle(lines []series, at float64) string {
	var b strings.Builder
	b.WriteString("slowdown up to " + showSlowdown(at))
	for _, l := range lines {
		n, _ := slices.BinarySearch(l.values, at)
		b.WriteString("\n" + l.name + ": " + showPercent(float64(n)/float64(len(l.values))))
	}
	return b.String()
}

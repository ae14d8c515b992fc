package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
)

const (
	// maxDots is the number of flows that are drawn individually, each with a
	// tooltip of some 150 bytes; beyond it the plot counts flows per cell.
	maxDots = 1500
	// cellSize is the side of such a cell in pixels.
	cellSize = 4
	// densities is the number of shades of a cell in style.css.
	densities = 5
	// sizeColumns divide the sizes for the percentile lines.
	sizeColumns = 16
)

// plotSize draws slowdown against flow size, with the median and the 99th
// percentile of flows of similar size.
func plotSize(r *Run) string {
	p := newChart(540, 330, plot.Margins{Left: 60, Top: 30, Right: 16, Bottom: 46}, "FCT slowdown against flow size")
	var flows []*FlowResult
	small, large, worst := model.Bytes(math.MaxInt64), model.Bytes(0), 1.0
	for i := range r.Flows {
		if f := &r.Flows[i]; f.Slowdown() > 0 {
			flows = append(flows, f)
			small, large = min(small, f.Bytes), max(large, f.Bytes)
			worst = max(worst, f.Slowdown())
		}
	}
	if len(flows) == 0 {
		small, large = 1000, 1e6
	}
	p.X = plot.Logarithmic(max(float64(small), 1)/1.1, float64(large)*1.1, p.Left, p.Right)
	p.Y = plot.Logarithmic(1, worst*1.1, p.Bottom, p.Top)
	p.XAxis(plot.Axis{Title: "flow size (log)", Unit: plot.Plain, Ticks: 7, Label: func(v float64) string {
		return showBytes(model.Bytes(math.Round(v)))
	}})
	p.YAxis(plot.Axis{Title: "FCT slowdown (log)", Unit: plot.Plain, Ticks: 7})
	if len(flows) == 0 {
		p.Nothing("no finished flows")
		return p.End()
	}
	cols := p.bySize(flows)
	p.Strips(sizeColumns, func(from, to float64) string { return sizeTitle(cols, p.X.At(math.Sqrt(from*to)), from, to) })
	if len(flows) <= maxDots {
		p.dots(flows)
	} else {
		p.cells(flows)
	}
	if len(flows) >= 4*sizeColumns { // fewer are noise
		p.percentiles(cols)
	}
	return p.End()
}

// sizeColumn is the flows of one column of sizes; values ascend.
type sizeColumn struct {
	middle float64 // pixel
	values []float64
}

func (p *chart) bySize(flows []*FlowResult) []sizeColumn {
	w := (p.Right - p.Left) / sizeColumns
	cols := make([]sizeColumn, sizeColumns)
	for _, f := range flows {
		c := min(int((p.X.At(float64(f.Bytes))-p.Left)/w), sizeColumns-1)
		cols[c].values = append(cols[c].values, f.Slowdown())
	}
	for i := range cols {
		cols[i].middle = p.Left + (float64(i)+0.5)*w
		slices.Sort(cols[i].values)
	}
	return cols
}

func sizeTitle(cols []sizeColumn, middle, from, to float64) string {
	for _, c := range cols {
		if math.Abs(c.middle-middle) < 1 && len(c.values) > 0 {
			return fmt.Sprintf("%s to %s: %s\nslowdown p50 %s, p99 %s, max %s",
				showBytes(model.Bytes(from)), showBytes(model.Bytes(to)), countOf(len(c.values), "flow"),
				showSlowdown(percentile(c.values, 500)), showSlowdown(percentile(c.values, 990)),
				showSlowdown(percentile(c.values, 1000)))
		}
	}
	return ""
}

func (p *chart) percentiles(cols []sizeColumn) {
	for i, permille := range []int{500, 990} {
		var d []byte
		command := byte('M')
		for _, c := range cols {
			if len(c.values) > 0 {
				d = plot.PathTo(d, command, c.middle, p.Y.At(percentile(c.values, permille)))
				command = 'L'
			}
		}
		class := [...]string{"p50", "p99"}[i]
		p.Path(string(d), plot.Attr{Class: "line halo"})
		p.Path(string(d), plot.Attr{Class: "line " + class})
		p.LegendRow(p.Right-110+60*float64(i), p.Top-12, class, class)
	}
}

// dots draws each flow in the colour of its group.
func (p *chart) dots(flows []*FlowResult) {
	names := groupNames(flows)
	for _, f := range flows {
		p.Dot(p.X.At(float64(f.Bytes)), p.Y.At(f.Slowdown()), 2.6, plot.Attr{
			Class: "dot " + plot.Colour(slices.Index(names, f.Group)),
			Title: fmt.Sprintf("%s → %s\n%s%s\nFCT %s, ideal %s, slowdown %s", f.Src, f.Dst, showBytes(f.Bytes),
				suffix(", ", f.Group), showDuration(f.FCT()), showDuration(f.Ideal), showSlowdown(f.Slowdown())),
		})
	}
	if len(names) < 2 {
		return
	}
	x := p.Left
	for i, name := range names {
		name = plot.Clip(cmp.Or(name, "(no group)"), 14)
		if width := 34 + 7*float64(utf8.RuneCountInString(name)); x+width > p.Right-120 {
			p.Text(x, p.Top-12, "tick", "…")
			break
		} else {
			p.LegendRow(x, p.Top-12, plot.Colour(i), name)
			x += width
		}
	}
}

// groupNames lists the groups by name; beyond the number of colours, colours
// repeat.
func groupNames(flows []*FlowResult) []string {
	seen := make(map[string]bool)
	var names []string
	for _, f := range flows {
		if !seen[f.Group] {
			seen[f.Group] = true
			names = append(names, f.Group)
		}
	}
	slices.Sort(names)
	return names
}

func suffix(separator, s string) string {
	if s == "" {
		return ""
	}
	return separator + s
}

// cells shades small squares by the logarithm of the flows in them. One path
// per shade keeps a square at some 20 bytes.
func (p *chart) cells(flows []*FlowResult) {
	cols := int((p.Right-p.Left)/cellSize) + 1
	rows := int((p.Bottom-p.Top)/cellSize) + 1
	counts := make([]int, cols*rows)
	most := 1
	for _, f := range flows {
		c := int((p.X.At(float64(f.Bytes)) - p.Left) / cellSize)
		r := int((p.Y.At(f.Slowdown()) - p.Top) / cellSize)
		counts[r*cols+c]++
		most = max(most, counts[r*cols+c])
	}
	var shades [densities][]byte
	for i, n := range counts {
		if n == 0 {
			continue
		}
		s := min(int(math.Log(float64(n))/math.Log(float64(most)+1)*densities), densities-1)
		x, y := p.Left+float64(i%cols*cellSize), p.Top+float64(i/cols*cellSize)
		shades[s] = fmt.Appendf(plot.PathTo(shades[s], 'M', x, min(y, p.Bottom-cellSize)), "h%dv%dh-%dz", cellSize, cellSize,
			cellSize)
	}
	for s, d := range shades {
		p.Path(string(d), plot.Attr{Class: fmt.Sprintf("cell d%d", s)})
	}
}

package report

import (
	"fmt"
	"slices"
	"strings"
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
	p := newPlot(540, 330, margins{60, 12, 16, 46}, "CDF of FCT slowdown")
	all, bins := r.slowdownsBySize()
	lines := []series{{"all flows", "all", all}}
	for i, b := range sizeBins {
		if len(bins[i]) > 0 {
			lines = append(lines, series{b.name, colour(i), bins[i]})
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
	p.x = logarithmic(1, worst*1.05, p.left, p.right)
	p.y = linear(0, 1, p.bottom, p.top)
	p.xAxis(axis{title: "FCT slowdown (FCT ÷ ideal FCT, log)", unit: plain, ticks: 8})
	p.yAxis(axis{title: "share of flows", ticks: 5, label: func(v float64) string { return unit{"", 0.01}.label(v) + " %" }})
	if len(all) == 0 {
		p.nothing("no finished flows")
		return p.end()
	}
	p.strips(48, func(_, to float64) string { return cdfTitle(lines, to) })
	for i := len(lines) - 1; i >= 0; i-- { // all flows on top
		p.path(p.steps(lines[i].values), attr{class: "line " + lines[i].class})
	}
	for _, permille := range []int{500, 950, 990} {
		v := percentile(all, permille)
		p.dot(p.x.at(v), p.y.at(float64(permille)/1000), 3.4, attr{
			class: "mark", title: fmt.Sprintf("all flows, p%d: %s", permille/10, showSlowdown(v)),
		})
	}
	// Curves leave the lower right corner free: they end at the top.
	y := p.bottom - 12 - 16*float64(len(lines)-1)
	for _, l := range lines {
		p.legendRow(p.right-150, y, l.class, l.name+" · "+showCount(len(l.values)))
		y += 16
	}
	return p.end()
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

// steps draws the empirical CDF of ascending values as stairs. It leaves out
// stairs under half a pixel, which nobody could see, so its length depends on
// the size of the plot and not on the number of flows.
func (p *plot) steps(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	lastX, lastY := p.x.at(values[0]), p.bottom
	d := pathTo(nil, 'M', lastX, lastY)
	for i, v := range values {
		if i+1 < len(values) && values[i+1] == v {
			continue
		}
		x, y := p.x.at(v), p.y.at(float64(i+1)/float64(len(values)))
		if i+1 < len(values) && x-lastX < 0.5 && lastY-y < 0.5 {
			continue
		}
		d = append(append(d, 'H'), num(x)...)
		d = append(append(d, 'V'), num(y)...)
		lastX, lastY = x, y
	}
	d = append(append(d, 'H'), num(p.right)...)
	return string(d)
}

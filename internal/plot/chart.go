package plot

import (
	_ "embed"
	"math"
	"slices"
	"strconv"
)

// Style is the CSS of all drawings: colours for light and dark, text, lines. A
// page with drawings includes it before its own.
//
//go:embed style.css
var Style string

// Chart is a whole plot as data.
type Chart struct {
	Title          string
	XTitle, YTitle string
	LogX, LogY     bool
	Groups         []string // of bars: names along X, one value of each series per group
	XNames         []string // of lines: names of X = 0, 1, 2 and so on, instead of numbers
	Series         []Series
}

// Series is one line, CDF or set of bars.
type Series struct {
	Name string
	X, Y []float64 // points of a line; bars have Y only
	// Low and High, if given, are a band around a line, such as a confidence interval.
	Low, High []float64
	Values    []float64 // or values whose distribution is drawn, in any order
	Dashed    bool      // published by others, for comparison
}

const (
	chartWidth  = 640.0
	chartHeight = 400.0
	legendStep  = 16.0
)

// SVG draws the chart as a standalone file.
func (c Chart) SVG() string {
	top := 40 + legendStep*float64(len(c.Series))
	w, h := chartWidth, chartHeight+top
	f := Margins{Left: 74, Top: top, Right: 20, Bottom: 46}.frame(NewFile(w, h, c.Title), w, h)
	f.Text(f.Left, 22, "heading", c.Title)
	for i, s := range c.Series {
		f.LegendRow(f.Left, 40+legendStep*float64(i)+4, c.class(i), s.Name)
	}
	c.scales(f)
	c.axes(f)
	if c.empty() {
		f.Nothing("no data")
		return f.End()
	}
	for i, s := range c.Series {
		switch {
		case len(c.Groups) > 0:
			c.bars(f, i)
		case len(s.Values) > 0:
			sorted := slices.Sorted(slices.Values(s.Values))
			f.Path(f.Stairs(sorted), Attr{Class: "line " + c.class(i)})
		default:
			c.line(f, i)
		}
	}
	return f.End()
}

// fileStyle is the style of a standalone drawing.
const fileStyle = `.back { fill: var(--card); } .heading { font-size: 15px; font-weight: 600; } .dashed { stroke-dasharray: 5 4; } .swatch.dashed { opacity: .5; } .bar.dashed { fill-opacity: .35; stroke: currentColor; } .bar { fill: currentColor; } .band { fill: currentColor; fill-opacity: .18; stroke: none; }`

func (c Chart) class(i int) string {
	if c.Series[i].Dashed {
		return Colour(i) + " dashed"
	}
	return Colour(i)
}

func (c Chart) empty() bool {
	return !slices.ContainsFunc(c.Series, func(s Series) bool { return len(s.Y)+len(s.Values) > 0 })
}

// scales fits both axes to the data: Y from zero where it is linear.
func (c Chart) scales(f *Frame) {
	var xs, ys []float64
	for _, s := range c.Series {
		xs = append(append(xs, s.X...), s.Values...)
		ys = append(append(append(ys, s.Y...), s.Low...), s.High...)
		if len(s.Values) > 0 {
			ys = append(ys, 0, 1)
		}
	}
	f.X = fit(xs, c.LogX, false, f.Left, f.Right)
	f.Y = fit(ys, c.LogY, true, f.Bottom, f.Top)
}

func fit(values []float64, log, fromZero bool, from, to float64) Scale {
	values = slices.DeleteFunc(values, func(v float64) bool {
		return math.IsNaN(v) || math.IsInf(v, 0) || log && v <= 0
	})
	if len(values) == 0 {
		values = []float64{1}
	}
	lo, hi := bounded(slices.Min(values)), bounded(slices.Max(values))
	switch {
	case log:
		return Logarithmic(lo/1.15, hi*1.15, from, to)
	case fromZero:
		headroom := 1.05
		if hi == 1 {
			headroom = 1 // shares end at the top
		}
		return Linear(min(lo, 0), hi*headroom, from, to)
	}
	margin := (hi - lo) * 0.03
	if lo >= 0 && lo < hi/3 {
		return Linear(0, hi+margin, from, to)
	}
	return Linear(lo-margin, hi+margin, from, to)
}

func (c Chart) axes(f *Frame) {
	f.YAxis(Axis{Title: c.YTitle, Unit: Plain, Ticks: 7, Label: short})
	if len(c.XNames) > 0 {
		for i, name := range c.XNames {
			x := f.X.At(float64(i))
			f.Line(x, f.Top, x, f.Bottom, "grid")
			f.Text(x, f.Bottom+16, "tick middle", Clip(name, 16))
		}
		f.Line(f.Left, f.Bottom, f.Right, f.Bottom, "axis")
		f.Text((f.Left+f.Right)/2, f.Bottom+35, "label middle", c.XTitle)
		return
	}
	if len(c.Groups) == 0 {
		f.XAxis(Axis{Title: c.XTitle, Unit: Plain, Ticks: 8, Label: short})
		return
	}
	w := (f.Right - f.Left) / float64(len(c.Groups))
	for i, name := range c.Groups {
		f.Text(f.Left+(float64(i)+0.5)*w, f.Bottom+16, "tick middle", name)
	}
	f.Line(f.Left, f.Bottom, f.Right, f.Bottom, "axis")
	f.Text((f.Left+f.Right)/2, f.Bottom+35, "label middle", c.XTitle)
}

// band draws the area between Low and High.
func (c Chart) band(f *Frame, i int) {
	s := c.Series[i]
	n := min(len(s.X), len(s.Low), len(s.High))
	var d []byte
	command := byte('M')
	for j := range n {
		d = PathTo(d, command, f.X.At(s.X[j]), f.Y.At(s.High[j]))
		command = 'L'
	}
	for j := n - 1; j >= 0; j-- {
		d = PathTo(d, 'L', f.X.At(s.X[j]), f.Y.At(s.Low[j]))
	}
	if n > 0 {
		d = append(d, 'Z')
	}
	f.Path(string(d), Attr{Class: "band " + c.class(i)})
}

func (c Chart) line(f *Frame, i int) {
	c.band(f, i)
	s := c.Series[i]
	var d []byte
	command := byte('M')
	for j := range min(len(s.X), len(s.Y)) {
		d = PathTo(d, command, f.X.At(s.X[j]), f.Y.At(s.Y[j]))
		command = 'L'
	}
	f.Path(string(d), Attr{Class: "line " + c.class(i)})
	for j := range min(len(s.X), len(s.Y)) {
		f.Dot(f.X.At(s.X[j]), f.Y.At(s.Y[j]), 3.2, Attr{
			Class: "dot " + Colour(i), Title: s.Name + ": " + short(s.X[j]) + ", " + short(s.Y[j]),
		})
	}
}

func (c Chart) bars(f *Frame, i int) {
	s := c.Series[i]
	group := (f.Right - f.Left) / float64(len(c.Groups))
	w := group * 0.8 / float64(len(c.Series))
	for j := range min(len(s.Y), len(c.Groups)) {
		x := f.Left + group*(float64(j)+0.1) + w*float64(i)
		y := f.Y.At(s.Y[j])
		f.Rect(x, y, w*0.94, f.Bottom-y, Attr{
			Class: "bar " + c.class(i), Title: c.Groups[j] + ", " + s.Name + ": " + short(s.Y[j]),
		})
	}
}

// short prints a tick with at most four digits: 1500 as 1.5k.
func short(v float64) string {
	for _, u := range []Unit{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if math.Abs(v) >= u.Size {
			return strconv.FormatFloat(v/u.Size, 'g', 4, 64) + u.Name
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

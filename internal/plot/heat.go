package plot

import "strconv"

// Heat is a heatmap of rows over time: the deeper a cell's colour, the larger
// its value.
type Heat struct {
	Title  string
	XTitle string
	X      []float64   // where columns begin, and where the last one ends
	Rows   []string    // names, from the top
	Values [][]float64 // by row and column; below zero: unknown
	Label  func(v float64) string
}

// Sizes of a heat map, in pixels, and how many shades it has.
const (
	heatWidth  = 860.0
	heatRow    = 14.0
	heatShades = 10
)

// SVG draws the map as a standalone file.
func (h Heat) SVG() string {
	height := 92 + heatRow*float64(max(len(h.Rows), 3))
	f := Margins{Left: 150, Top: 44, Right: 20, Bottom: 48}.frame(NewFile(heatWidth, height, h.Title), heatWidth, height)
	f.Raw("<style>")
	for i := range heatShades + 1 {
		f.Raw(".h", strconv.Itoa(i), "{fill:var(--c4);fill-opacity:", strconv.FormatFloat(0.04+0.96*float64(i)/heatShades,
			'f', 2, 64), "}")
	}
	f.Raw("</style>")
	f.Text(f.Left, 22, "heading", h.Title)
	if len(h.Rows) == 0 || len(h.X) < 2 {
		f.Nothing("no data")
		return f.End()
	}
	f.X = Linear(h.X[0], h.X[len(h.X)-1], f.Left, f.Right)
	f.XAxis(Axis{Title: h.XTitle, Unit: Plain, Ticks: 8})
	most := h.most()
	for i, name := range h.Rows {
		y := f.Top + heatRow*float64(i)
		f.Text(f.Left-7, y+heatRow-3, "tick end", Clip(name, 22))
		for j, v := range h.Values[i] {
			if v < 0 {
				continue
			}
			x := f.X.At(h.X[j])
			a := Attr{Class: "h" + strconv.Itoa(shade(v, most, heatShades)), Title: name + ": " + h.Label(v)}
			f.Rect(x, y, f.X.At(h.X[j+1])-x, heatRow-1, a)
		}
	}
	return f.End()
}

// heatInk is the shades of text, from unknown to the maximum.
const heatInk = " .:-=+*#%@"

// Text prints the map for a terminal: one line per row, one character per
// column. A space is unknown, a dot is zero, @ is the maximum.
func (h Heat) Text() (lines []string) {
	most := h.most()
	for _, row := range h.Values {
		line := make([]byte, len(row))
		for j, v := range row {
			line[j] = heatInk[0]
			if v >= 0 {
				line[j] = heatInk[1+shade(v, most, len(heatInk)-2)]
			}
		}
		lines = append(lines, string(line))
	}
	return lines
}

func (h Heat) most() (most float64) {
	for _, row := range h.Values {
		for _, v := range row {
			most = max(most, v)
		}
	}
	return most
}

// shade returns 0 for zero and n for the maximum; a positive value is never 0.
func shade(v, most float64, n int) int {
	if v <= 0 || most <= 0 {
		return 0
	}
	return 1 + min(int(v/most*float64(n)), n-1)
}

package plot

// Frame is a drawing with two axes around a box. Set X and Y before drawing
// the axes.
type Frame struct {
	*SVG
	X, Y                     Scale
	Left, Top, Right, Bottom float64 // pixels of the box
}

// Axis is the label and the ticks of an axis.
type Axis struct {
	Title string
	Unit  Unit
	Ticks int                    // approximate maximum number of ticks
	Label func(v float64) string // formats a tick, instead of Unit
}

// Margins are the space around a plot's box.
type Margins struct{ Left, Top, Right, Bottom float64 }

// NewFrame begins a drawing of w by h pixels; label is its text for screen
// readers.
func NewFrame(w, h float64, m Margins, label string) *Frame {
	return m.frame(newSVG(w, h, label), w, h)
}

func (m Margins) frame(s *SVG, w, h float64) *Frame {
	return &Frame{SVG: s, Left: m.Left, Top: m.Top, Right: w - m.Right, Bottom: h - m.Bottom}
}

// XAxis draws grid, ticks and title below the box. The scale must be set.
func (f *Frame) XAxis(a Axis) {
	for _, v := range f.X.Ticks(a.Ticks) {
		x := f.X.At(v)
		f.Line(x, f.Top, x, f.Bottom, "grid")
		f.Text(x, f.Bottom+16, "tick middle", a.print(v))
	}
	f.Line(f.Left, f.Bottom, f.Right, f.Bottom, "axis")
	f.Text((f.Left+f.Right)/2, f.Bottom+35, "label middle", a.heading())
}

// YAxis draws grid, ticks and title at the left.
func (f *Frame) YAxis(a Axis) {
	for _, v := range f.Y.Ticks(a.Ticks) {
		y := f.Y.At(v)
		f.Line(f.Left, y, f.Right, y, "grid")
		f.Text(f.Left-7, y+4, "tick end", a.print(v))
	}
	f.UpText(13, (f.Top+f.Bottom)/2, "label middle", a.heading())
}

func (a Axis) print(v float64) string {
	if a.Label != nil {
		return a.Label(v)
	}
	return a.Unit.Label(v)
}

func (a Axis) heading() string {
	if a.Unit.Name == "" {
		return a.Title
	}
	return a.Title + " (" + a.Unit.Name + ")"
}

// Plain is the unit of plain numbers.
var Plain = Unit{"", 1}

// Nothing prints why a box is empty.
func (f *Frame) Nothing(why string) {
	f.Text((f.Left+f.Right)/2, (f.Top+f.Bottom)/2, "empty middle", why)
}

// Strips divides the box into n columns with tooltips: title gets the value of
// x at the middle of each. Draw them before elements with their own tooltips,
// which then lie on top.
func (f *Frame) Strips(n int, title func(from, to float64) string) {
	w := (f.Right - f.Left) / float64(n)
	f.Raw(`<g class="hit">`)
	for i := range n {
		x := f.Left + float64(i)*w
		if t := title(f.X.Invert(x), f.X.Invert(x+w)); t != "" {
			f.Rect(x, f.Top, w, f.Bottom-f.Top, Attr{Title: t})
		}
	}
	f.Raw("</g>")
}

// LegendRow draws a swatch and its text.
func (f *Frame) LegendRow(x, y float64, class, name string) {
	f.Rect(x, y-8, 12, 4, Attr{Class: "swatch " + class})
	f.Text(x+18, y, "legend", name)
}

// Stairs draws the empirical CDF of ascending values on a Y of 0 to 1. It omits
// stairs under half a pixel, so its length depends on the size of the plot and
// not on the number of values.
func (f *Frame) Stairs(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	lastX, lastY := f.X.At(values[0]), f.Bottom
	d := PathTo(nil, 'M', lastX, lastY)
	for i, v := range values {
		if i+1 < len(values) && values[i+1] == v {
			continue
		}
		x, y := f.X.At(v), f.Y.At(float64(i+1)/float64(len(values)))
		if i+1 < len(values) && x-lastX < 0.5 && lastY-y < 0.5 {
			continue
		}
		d = append(append(d, 'H'), Num(x)...)
		d = append(append(d, 'V'), Num(y)...)
		lastX, lastY = x, y
	}
	d = append(append(d, 'H'), Num(f.Right)...)
	return string(d)
}

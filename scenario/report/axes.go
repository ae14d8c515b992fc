package report

// plot is a drawing with two axes around a box.
type plot struct {
	*svg
	x, y                     scale
	left, top, right, bottom float64
}

// axis says how to label one.
type axis struct {
	title string
	unit  unit
	ticks int // at most about so many
	label func(v float64) string
}

// margins are the space around a plot's box.
type margins struct{ left, top, right, bottom float64 }

func newPlot(w, h float64, m margins, label string) *plot {
	return &plot{
		svg:  newSVG(w, h, label),
		left: m.left, top: m.top, right: w - m.right, bottom: h - m.bottom,
	}
}

// xAxis draws grid, ticks and title below the box. The scale must be set.
func (p *plot) xAxis(a axis) {
	for _, v := range p.x.ticks(a.ticks) {
		x := p.x.at(v)
		p.line(x, p.top, x, p.bottom, "grid")
		p.text(x, p.bottom+16, "tick middle", a.print(v))
	}
	p.line(p.left, p.bottom, p.right, p.bottom, "axis")
	p.text((p.left+p.right)/2, p.bottom+35, "label middle", a.heading())
}

// yAxis draws grid, ticks and title at the left.
func (p *plot) yAxis(a axis) {
	for _, v := range p.y.ticks(a.ticks) {
		y := p.y.at(v)
		p.line(p.left, y, p.right, y, "grid")
		p.text(p.left-7, y+4, "tick end", a.print(v))
	}
	p.upText(13, (p.top+p.bottom)/2, "label middle", a.heading())
}

func (a axis) print(v float64) string {
	if a.label != nil {
		return a.label(v)
	}
	return a.unit.label(v)
}

func (a axis) heading() string {
	if a.unit.name == "" {
		return a.title
	}
	return a.title + " (" + a.unit.name + ")"
}

// plain is the unit of numbers without one.
var plain = unit{"", 1}

// nothing says why a box is empty.
func (p *plot) nothing(why string) {
	p.text((p.left+p.right)/2, (p.top+p.bottom)/2, "empty middle", why)
}

// strips divides the box into n columns that answer the mouse: title gets the
// value of x at the middle of each. Draw them before what has tooltips of its
// own, which then lies on top.
func (p *plot) strips(n int, title func(from, to float64) string) {
	w := (p.right - p.left) / float64(n)
	p.raw(`<g class="hit">`)
	for i := range n {
		x := p.left + float64(i)*w
		if t := title(p.x.invert(x), p.x.invert(x+w)); t != "" {
			p.rect(x, p.top, w, p.bottom-p.top, attr{title: t})
		}
	}
	p.raw("</g>")
}

// legendRow draws a swatch and its text.
func (p *plot) legendRow(x, y float64, class, name string) {
	p.rect(x, y-8, 12, 4, attr{class: "swatch " + class})
	p.text(x+18, y, "legend", name)
}

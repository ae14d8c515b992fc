package plot

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"strings"
)

// SVG draws into a buffer. Colours and weights are classes of style.css, so
// that one drawing serves light and dark; coordinates have one decimal.
type SVG struct{ bytes.Buffer }

// Attr is what an element has beside its position: class names and a tooltip.
type Attr struct{ Class, Title string }

// newSVG begins a drawing of w by h pixels for a page that holds Style.
func newSVG(w, h float64, label string) *SVG {
	s := &SVG{}
	s.Raw("<svg")
	s.head(w, h, label)
	return s
}

// NewFile begins a standalone drawing.
func NewFile(w, h float64, label string) *SVG {
	s := &SVG{}
	s.Raw(`<svg xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif"`)
	s.head(w, h, label)
	s.Raw("<style>", Style, fileStyle, "</style>")
	s.Raw(`<rect class="back" width="100%" height="100%"/>`)
	return s
}

func (s *SVG) head(w, h float64, label string) {
	s.Raw(` viewBox="0 0 `, Num(w), " ", Num(h), `" role="img" aria-label="`, Escape(label), `">`)
}

// End closes the drawing and returns it.
func (s *SVG) End() string {
	s.Raw("</svg>")
	return s.String()
}

// Raw writes parts as they are; names must be escaped.
func (s *SVG) Raw(parts ...string) {
	for _, p := range parts {
		s.WriteString(p)
	}
}

// element writes name, its numeric attributes, class and tooltip.
func (s *SVG) element(name, numbers string, a Attr) {
	s.Raw("<", name, " ", numbers)
	if a.Class != "" {
		s.Raw(` class="`, a.Class, `"`)
	}
	if a.Title == "" {
		s.Raw("/>")
		return
	}
	s.Raw("><title>", Escape(a.Title), "</title></", name, ">")
}

// Line draws one straight line.
func (s *SVG) Line(x1, y1, x2, y2 float64, class string) {
	s.element("path", `d="M`+Num(x1)+" "+Num(y1)+"L"+Num(x2)+" "+Num(y2)+`"`, Attr{Class: class})
}

// Rect draws a rectangle; a negative size counts as none.
func (s *SVG) Rect(x, y, w, h float64, a Attr) {
	s.element("rect", `x="`+Num(x)+`" y="`+Num(y)+`" width="`+Num(max(w, 0))+`" height="`+Num(max(h, 0))+`"`, a)
}

// Dot draws a disc.
func (s *SVG) Dot(x, y, r float64, a Attr) {
	s.element("circle", `cx="`+Num(x)+`" cy="`+Num(y)+`" r="`+Num(r)+`"`, a)
}

// Path draws nothing for empty data.
func (s *SVG) Path(d string, a Attr) {
	if d != "" {
		s.element("path", `d="`+d+`"`, a)
	}
}

// Text anchors at x by class: "start" unless the class holds middle or end.
func (s *SVG) Text(x, y float64, class, content string) {
	s.Raw(`<text x="`, Num(x), `" y="`, Num(y), `" class="`, class, `">`, Escape(content), "</text>")
}

// UpText is text that reads upwards, for the axis on the left.
func (s *SVG) UpText(x, y float64, class, content string) {
	s.Raw(`<text transform="translate(`, Num(x), " ", Num(y), `) rotate(-90)" class="`, class, `">`, Escape(content),
		"</text>")
}

// Num prints a coordinate.
func Num(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// PathTo appends a path command and its point.
func PathTo(b []byte, command byte, x, y float64) []byte {
	b = append(b, command)
	b = append(b, Num(x)...)
	b = append(b, ' ')
	return append(b, Num(y)...)
}

// Escape makes any string fit for text and attributes, in HTML and in XML:
// characters that neither allows become U+FFFD.
func Escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}

// Clip shortens a name to the width of a legend entry.
func Clip(s string, runes int) string {
	if r := []rune(s); len(r) > runes {
		return string(r[:runes-1]) + "…"
	}
	return s
}

// Colour is the class of the i-th series.
func Colour(i int) string { return "c" + strconv.Itoa(i%Colours) }

// Colours is how many style.css defines.
const Colours = 6

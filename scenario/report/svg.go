package report

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"strings"
)

// svg draws into a buffer. Colours and weights are classes of style.css, so
// that one drawing serves light and dark; coordinates have one decimal.
type svg struct{ bytes.Buffer }

// attr is what an element has beside its place: class names and a tooltip.
type attr struct{ class, title string }

func newSVG(w, h float64, label string) *svg {
	s := &svg{}
	s.raw(`<svg viewBox="0 0 `, num(w), " ", num(h), `" role="img" aria-label="`, escape(label), `">`)
	return s
}

func (s *svg) end() string {
	s.raw("</svg>")
	return s.String()
}

func (s *svg) raw(parts ...string) {
	for _, p := range parts {
		s.WriteString(p)
	}
}

// element writes name, its numeric attributes, class and tooltip.
func (s *svg) element(name, numbers string, a attr) {
	s.raw("<", name, " ", numbers)
	if a.class != "" {
		s.raw(` class="`, a.class, `"`)
	}
	if a.title == "" {
		s.raw("/>")
		return
	}
	s.raw("><title>", escape(a.title), "</title></", name, ">")
}

func (s *svg) line(x1, y1, x2, y2 float64, class string) {
	s.element("path", `d="M`+num(x1)+" "+num(y1)+"L"+num(x2)+" "+num(y2)+`"`, attr{class: class})
}

func (s *svg) rect(x, y, w, h float64, a attr) {
	s.element("rect", `x="`+num(x)+`" y="`+num(y)+`" width="`+num(max(w, 0))+`" height="`+num(max(h, 0))+`"`, a)
}

func (s *svg) dot(x, y, r float64, a attr) {
	s.element("circle", `cx="`+num(x)+`" cy="`+num(y)+`" r="`+num(r)+`"`, a)
}

// path draws nothing for empty data.
func (s *svg) path(d string, a attr) {
	if d != "" {
		s.element("path", `d="`+d+`"`, a)
	}
}

// text anchors at x by class: "start" unless the class holds middle or end.
func (s *svg) text(x, y float64, class, content string) {
	s.raw(`<text x="`, num(x), `" y="`, num(y), `" class="`, class, `">`, escape(content), "</text>")
}

// upText is text that reads upwards, for the axis on the left.
func (s *svg) upText(x, y float64, class, content string) {
	s.raw(`<text transform="translate(`, num(x), " ", num(y), `) rotate(-90)" class="`, class, `">`, escape(content), "</text>")
}

// num prints a coordinate.
func num(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// pathTo appends a path command and its point.
func pathTo(b []byte, command byte, x, y float64) []byte {
	b = append(b, command)
	b = append(b, num(x)...)
	b = append(b, ' ')
	return append(b, num(y)...)
}

// escape makes any string fit for text and attributes, in HTML and in XML:
// characters that neither allows become U+FFFD.
func escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}

// clip shortens a name to what a legend has room for.
func clip(s string, runes int) string {
	if r := []rune(s); len(r) > runes {
		return string(r[:runes-1]) + "…"
	}
	return s
}

// colour is the class of the i-th series.
func colour(i int) string { return "c" + strconv.Itoa(i%colours) }

// colours is how many style.css defines.
const colours = 6

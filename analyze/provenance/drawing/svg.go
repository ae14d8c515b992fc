package drawing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
)

// Sizes of the picture, in pixels.
const (
	boxWidth  = 184.0
	boxHeight = 40.0
	columnGap = 92.0
	rowGap    = 16.0
	margin    = 24.0
	heading   = 64.0
	lane      = 14.0 // of an edge that leads back
)

// box is a port or flow at its position.
type box struct {
	id, name, note, class string
	round                 bool
	level                 int
	x, y                  float64
	pull                  float64 // mean height of what leads here
}

func (b *box) left() (x, y float64)  { return b.x, b.y + boxHeight/2 }
func (b *box) right() (x, y float64) { return b.x + boxWidth, b.y + boxHeight/2 }

// SVG returns a picture as a complete file. Columns go from the victim to the
// cause; within one, boxes are as close as possible to what leads to them.
func (d *Drawing) SVG() string {
	columns := d.columns()
	edges := d.drawnEdges()
	placeBoxes(columns, edges)
	w, h := margin+float64(max(len(columns), 1))*(boxWidth+columnGap), heading
	at := map[string]*box{}
	for _, column := range columns {
		for _, b := range column {
			at[b.id] = b
			h = max(h, b.y+boxHeight)
		}
	}
	back := 0
	for _, e := range edges {
		if from, to := at[e.From], at[e.To]; from != nil && to != nil && to.level <= from.level {
			back++
		}
	}
	h += margin + lane*float64(back+1)
	s := plot.NewFile(w, h, "provenance of "+d.Victim)
	s.Raw(style)
	s.Text(margin, 26, "heading", "PFC provenance of "+d.Victim)
	drawLegend(s)
	below := h - margin - lane*float64(back)
	for i := range edges {
		e := &edges[i]
		from, to := at[e.From], at[e.To]
		if from == nil || to == nil {
			continue
		}
		if to.level > from.level {
			drawForward(s, e, from, to)
			continue
		}
		drawBackward(s, e, from, to, below)
		below += lane
	}
	for _, column := range columns {
		for _, b := range column {
			b.draw(s)
		}
	}
	return s.End()
}

// maxPausedFlows is how many flows beside the victim may have edges to where
// they were paused. More of them would hide the rest; the text form has them
// all.
const maxPausedFlows = 6

// drawnEdges returns the edges that the picture shows.
func (d *Drawing) drawnEdges() []Edge {
	others := 0
	for _, e := range d.Edges {
		if e.Kind == FlowPort && e.From != d.Victim {
			others++
		}
	}
	return slices.DeleteFunc(slices.Clone(d.Edges), func(e Edge) bool {
		return others > maxPausedFlows && e.Kind == FlowPort && e.From != d.Victim
	})
}

// columns returns the boxes by level.
func (d *Drawing) columns() (columns [][]*box) {
	put := func(b *box) {
		for len(columns) <= b.level {
			columns = append(columns, nil)
		}
		columns[b.level] = append(columns[b.level], b)
	}
	for i := range d.Ports {
		p := &d.Ports[i]
		class, note := "idle", fmt.Sprintf("%d packets", p.Packets)
		if p.Paused > 0 {
			class, note = "paused", fmt.Sprintf("%d of %d paused", p.Paused, p.Packets)
		}
		if p.PausedNow {
			class, note = "paused now", fmt.Sprintf("paused, %s queued", model.FormatBytes(model.Bytes(p.Queued)))
		}
		put(&box{id: p.ID, name: p.ID, note: note, class: class, level: p.Level})
	}
	for _, f := range d.Flows {
		b := &box{id: f.ID, name: f.ID, note: "flow", class: "flow", round: true, level: f.Level}
		if f.Victim {
			b.note, b.class = "victim", "flow victim"
		}
		put(b)
	}
	return columns
}

// placeBoxes positions boxes: each column in the order of what leads to it.
func placeBoxes(columns [][]*box, edges []Edge) {
	at := map[string]*box{}
	for c, column := range columns {
		for _, b := range column {
			sum, n := 0.0, 0.0
			for _, e := range edges {
				if from := at[e.From]; e.To == b.id && from != nil {
					sum, n = sum+from.y, n+1
				}
			}
			if n > 0 {
				b.pull = sum / n
			}
		}
		slices.SortStableFunc(column, func(a, b *box) int { return cmp.Compare(a.pull, b.pull) })
		y := heading
		for _, b := range column {
			b.x = margin + float64(c)*(boxWidth+columnGap)
			b.y = max(y, b.pull-boxHeight)
			y = b.y + boxHeight + rowGap
			at[b.id] = b
		}
	}
}

func (b *box) draw(s *plot.SVG) {
	radius := "4"
	if b.round {
		radius = plot.Num(boxHeight / 2)
	}
	s.Raw(`<rect x="`, plot.Num(b.x), `" y="`, plot.Num(b.y), `" width="`, plot.Num(boxWidth), `" height="`,
		plot.Num(boxHeight),
		`" rx="`, radius, `" class="box `, b.class, `"/>`)
	s.Text(b.x+boxWidth/2, b.y+17, "middle", plot.Clip(b.name, 28))
	s.Text(b.x+boxWidth/2, b.y+32, "middle tick", b.note)
}

// class returns an edge's CSS classes.
func (e *Edge) class() string {
	switch {
	case e.Kind == FlowPort:
		return "edge flowport"
	case e.Kind == PortPort:
		return "edge portport"
	case e.Weight > 0:
		return "edge fills"
	}
	return "edge delays"
}

func (e *Edge) title() string {
	words := []string{fmt.Sprintf("from %s to %s: %s", e.From, e.To, compact(e.Weight))}
	if e.Held > 0 {
		words = append(words, model.FormatBytes(model.Bytes(e.Held))+" held now")
	}
	return strings.Join(words, ", ")
}

// drawForward draws an edge to a later column.
func drawForward(s *plot.SVG, e *Edge, from, to *box) {
	x1, y1 := from.right()
	x2, y2 := to.left()
	bend := (x2 - x1) / 2
	drawPath(s, e, fmt.Sprintf("M%s %sC%s %s %s %s %s %s", plot.Num(x1), plot.Num(y1), plot.Num(x1+bend), plot.Num(y1),
		plot.Num(x2-bend), plot.Num(y2), plot.Num(x2-4), plot.Num(y2)))
	s.Text(x2-8, y2-4, "end tick", e.label())
}

// drawBackward draws an edge to the same or an earlier column, in a separate
// lane below everything: it closes a cycle.
func drawBackward(s *plot.SVG, e *Edge, from, to *box, lane float64) {
	x1, y1 := from.right()
	x2, y2 := to.left()
	out, in := x1+columnGap/3, x2-columnGap/3
	drawPath(s, e, fmt.Sprintf("M%s %sL%s %sL%s %sL%s %sL%s %sL%s %s", plot.Num(x1), plot.Num(y1), plot.Num(out),
		plot.Num(y1),
		plot.Num(out), plot.Num(lane), plot.Num(in), plot.Num(lane), plot.Num(in), plot.Num(y2), plot.Num(x2-4), plot.Num(y2)))
	s.Text(in+6, lane-3, "tick", e.label())
}

func drawPath(s *plot.SVG, e *Edge, d string) {
	s.Raw(`<path d="`, d, `" class="`, e.class(), `" marker-end="url(#tip)"><title>`, plot.Escape(e.title()),
		`</title></path>`)
}

// drawLegend explains the edges.
func drawLegend(s *plot.SVG) {
	x := margin
	for _, l := range []struct{ class, text string }{
		{"edge flowport", "paused at"},
		{"edge portport", "waits for"},
		{"edge fills", "filled by"},
		{"edge delays", "delays"},
	} {
		s.Line(x, 44, x+24, 44, l.class)
		s.Text(x+30, 48, "tick", l.text)
		x += 130
	}
}

const style = `<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6" markerHeight="6" orient="auto">` +
	`<path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker></defs><style>` +
	`.box{fill:var(--card);stroke:var(--axis)}.paused{stroke:var(--c1);stroke-width:1.6}.now{fill:var(--warnback)}` +
	`.flow{stroke:var(--c0)}.victim{stroke-width:2.4}.edge{fill:none;stroke-width:1.4}` +
	`.flowport{stroke:var(--c0);stroke-dasharray:2 3}.portport{stroke:var(--c1);stroke-width:2}` +
	`.fills{stroke:var(--c4)}.delays{stroke:var(--axis)}</style>`

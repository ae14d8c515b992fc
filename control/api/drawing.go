package api

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// dot writes the graph for Graphviz.
func (g *Graph) dot() []byte {
	var b bytes.Buffer
	b.WriteString("digraph provenance {\n  rankdir=LR;\n  node [fontname=\"sans-serif\"];\n")
	for i := range g.Ports {
		p := &g.Ports[i]
		fmt.Fprintf(&b, "  %s [shape=box, label=%s%s];\n", strconv.Quote("port "+p.ID),
			strconv.Quote(fmt.Sprintf("%s\n%d paused of %d", p.ID, p.PausedPackets, p.Packets)), emphasis(p))
	}
	for i := range g.Flows {
		f := &g.Flows[i]
		fmt.Fprintf(&b, "  %s [shape=ellipse, label=%s];\n", strconv.Quote("flow "+f.ID), strconv.Quote(f.name()+"\n"+f.Role))
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		from, to := e.ends()
		fmt.Fprintf(&b, "  %s -> %s [label=%s];\n", strconv.Quote(from), strconv.Quote(to), strconv.Quote(weight(e.Weight)))
	}
	b.WriteString("}\n")
	return b.Bytes()
}

func emphasis(p *GraphPort) string {
	switch {
	case p.Initial:
		return ", style=bold, color=red"
	case p.InLoop:
		return ", color=purple"
	case p.InPath:
		return ", color=orange"
	}
	return ""
}

// name is how a flow is written in a drawing: short, where its ends have names.
func (f *GraphFlow) name() string {
	if f.Src != "" && f.Dst != "" {
		return f.Src + " > " + f.Dst
	}
	return f.ID
}

// ends are the drawing's names of what an edge joins.
func (e *GraphEdge) ends() (from, to string) {
	switch e.Kind {
	case "flow-port":
		return "flow " + e.From, "port " + e.To
	case "port-flow":
		return "port " + e.From, "flow " + e.To
	}
	return "port " + e.From, "port " + e.To
}

func weight(w float64) string { return strconv.FormatFloat(w, 'g', 3, 64) }

// box is something in the drawing.
type box struct {
	id, text, note string
	column         int
	x, y           float64
	class          string
}

// Sizes of the drawing, in pixels.
const (
	boxWide, boxHigh = 190.0, 42.0
	gapWide, gapHigh = 70.0, 16.0
	margin           = 20.0
)

// svg draws the graph in columns: what waits stands left of what it waits for,
// flows that were held up leftmost and flows that filled a queue rightmost.
func (g *Graph) svg() []byte {
	boxes := g.place()
	at := map[string]*box{}
	wide, high := 0.0, 0.0
	for i := range boxes {
		at[boxes[i].id] = &boxes[i]
		wide, high = max(wide, boxes[i].x+boxWide), max(high, boxes[i].y+boxHigh)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">`, wide+margin, high+margin)
	b.WriteString(`<title>Who waited for whom</title><style>rect{fill:#fff;stroke:#555}.initial{stroke:#c00;stroke-width:3}.loop{stroke:#808;stroke-width:2}` +
		`.path{stroke:#b60;stroke-width:2}.flow{fill:#eef}.culprit{fill:#fdd}.victim{fill:#dfd}line{stroke:#666}.note{fill:#444;font-size:10px}</style>` +
		`<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="#666"/></marker></defs>`)
	most := 0.0
	for i := range g.Edges {
		most = max(most, math.Abs(g.Edges[i].Weight))
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		from, to := e.ends()
		if p, q := at[from], at[to]; p != nil && q != nil {
			drawEdge(&b, p, q, 1+3*math.Abs(e.Weight)/max(most, 1e-9), e)
		}
	}
	for i := range boxes {
		x := &boxes[i]
		fmt.Fprintf(&b, `<g><rect class="%s" x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="5"/><text x="%.0f" y="%.0f">`,
			x.class, x.x, x.y, boxWide, boxHigh, x.x+8, x.y+17)
		_ = xml.EscapeText(&b, []byte(clip(x.text, 28)))
		fmt.Fprintf(&b, `</text><text class="note" x="%.0f" y="%.0f">`, x.x+8, x.y+33)
		_ = xml.EscapeText(&b, []byte(x.note))
		b.WriteString("</text><title>")
		_ = xml.EscapeText(&b, []byte(x.text))
		b.WriteString("</title></g>")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// drawEdge draws a line from the side of one box to the near side of another.
func drawEdge(b *bytes.Buffer, p, q *box, width float64, e *GraphEdge) {
	x1, x2 := p.x+boxWide, q.x
	if q.column < p.column {
		x1, x2 = p.x, q.x+boxWide
	} else if q.column == p.column {
		x1, x2 = p.x+boxWide, q.x+boxWide
	}
	fmt.Fprintf(b, `<line x1="%.0f" y1="%.0f" x2="%.0f" y2="%.0f" stroke-width="%.1f" marker-end="url(#a)"><title>`,
		x1, p.y+boxHigh/2, x2, q.y+boxHigh/2, width)
	_ = xml.EscapeText(b, []byte(e.Kind+" "+weight(e.Weight)))
	b.WriteString("</title></line>")
}

// place gives everything its column and row.
func (g *Graph) place() []box {
	columns := g.columns()
	last := 0
	var boxes []box
	for i := range g.Ports {
		p := &g.Ports[i]
		class := "port"
		switch {
		case p.Initial:
			class = "initial"
		case p.InLoop:
			class = "loop"
		case p.InPath:
			class = "path"
		}
		c := 1 + columns[p.ID]
		last = max(last, c)
		boxes = append(boxes, box{
			id: "port " + p.ID, text: p.ID, class: class, column: c,
			note: fmt.Sprintf("%d paused of %d, to %s", p.PausedPackets, p.Packets, p.Peer),
		})
	}
	for i := range g.Flows {
		f := &g.Flows[i]
		c := 0
		if f.Role == "culprit" || f.Role == "other" {
			c = last + 1
		}
		boxes = append(boxes, box{id: "flow " + f.ID, text: f.name(), note: f.Role, class: "flow " + f.Role, column: c})
	}
	slices.SortStableFunc(boxes, func(a, b box) int { return cmp.Compare(a.column, b.column) })
	row, column := 0, -1
	for i := range boxes {
		x := &boxes[i]
		if x.column != column {
			row, column = 0, x.column
		}
		x.x = margin + float64(x.column)*(boxWide+gapWide)
		x.y = margin + float64(row)*(boxHigh+gapHigh)
		row++
	}
	return boxes
}

// columns numbers ports from the left by how far pauses have spread to them:
// those from which the initial port is furthest first. In a graph without one,
// or where it cannot be reached, a port stands in the first column.
func (g *Graph) columns() map[string]int {
	into := map[string][]string{}
	for i := range g.Edges {
		if e := &g.Edges[i]; e.Kind == "port-port" {
			into[e.To] = append(into[e.To], e.From)
		}
	}
	depth := map[string]int{}
	var queue []string
	for i := range g.Ports {
		if g.Ports[i].Initial {
			depth[g.Ports[i].ID] = 0
			queue = append(queue, g.Ports[i].ID)
		}
	}
	most := 0
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		for _, from := range into[id] {
			if _, seen := depth[from]; !seen {
				depth[from] = depth[id] + 1
				most = max(most, depth[from])
				queue = append(queue, from)
			}
		}
	}
	column := map[string]int{}
	for i := range g.Ports {
		if d, reached := depth[g.Ports[i].ID]; reached {
			column[g.Ports[i].ID] = most - d
		}
	}
	return column
}

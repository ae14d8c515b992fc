package drawing

import (
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/model"
)

// Dot returns the drawing in Graphviz's language: boxes are ports, ellipses
// flows; dotted edges lead from flows to where they were paused, red ones to
// flows that filled a queue, grey ones to flows that it delayed.
func (d *Drawing) Dot() string {
	var b strings.Builder
	b.WriteString("digraph provenance {\n\trankdir=LR;\n\tnode [fontname=\"sans-serif\", fontsize=10];\n\tedge " +
		"[fontname=\"sans-serif\", fontsize=8];\n")
	for i := range d.Ports {
		p := &d.Ports[i]
		style := ""
		if p.Paused > 0 || p.PausedNow {
			style = ", style=filled, fillcolor=\"#fff0d9\""
		}
		fmt.Fprintf(&b, "\t%s [shape=box, label=%s%s];\n", quote(p.ID),
			quote(p.ID+"\n"+strings.ReplaceAll(p.state(), ", ", "\n")), style)
	}
	for _, f := range d.Flows {
		style := ""
		if f.Victim {
			style = ", style=bold"
		}
		fmt.Fprintf(&b, "\t%s [shape=ellipse%s];\n", quote(f.ID), style)
	}
	for _, e := range d.Edges {
		style := "style=bold"
		switch {
		case e.Kind == FlowPort:
			style = "style=dotted"
		case e.Kind == PortFlow && e.Weight > 0:
			style = "color=red"
		case e.Kind == PortFlow:
			style = "color=gray"
		}
		fmt.Fprintf(&b, "\t%s -> %s [%s, label=%s];\n", quote(e.From), quote(e.To), style, quote(e.label()))
	}
	b.WriteString("}\n")
	return b.String()
}

// label returns the weight of an edge, or the bytes held if it leads from a
// paused port.
func (e *Edge) label() string {
	if e.Held > 0 {
		return model.FormatBytes(model.Bytes(e.Held))
	}
	return compact(e.Weight)
}

// quote returns a string in Graphviz's language, in which only quotes,
// backslashes and line breaks are escaped.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

package file

import (
	"fmt"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// roleStyle holds the Graphviz attributes of a role.
var roleStyle = map[topo.Role]string{
	topo.Host:   `shape=box, fillcolor="#f1f3f5", color="#adb5bd", height=0.25, width=0.4, fontsize=8`,
	topo.Mux:    `shape=hexagon, fillcolor="#fff3bf", color="#f08c00", height=0.3, width=0.5, fontsize=8`,
	topo.ToR:    `fillcolor="#d3f9d8", color="#2f9e44"`,
	topo.Leaf:   `fillcolor="#d0ebff", color="#1971c2"`,
	topo.Spine:  `fillcolor="#e5dbff", color="#6741d9"`,
	topo.Border: `fillcolor="#ffe3e3", color="#e03131"`,
	topo.Switch: `fillcolor="#d0ebff", color="#1971c2"`,
}

// appendDot draws a fabric for Graphviz: one rank per tier with the hosts at
// the bottom, pods in boxes, faster links thicker, lossy links red.
func appendDot(b []byte, f *topo.Fabric) []byte {
	title := f.Name()
	if title != "" {
		title += ": "
	}
	b = fmt.Appendf(b, "graph %q {\n", f.Name())
	b = fmt.Appendf(b, "  label=\"%s%d hosts, %d switches, %d links\"; labelloc=t; fontname=Helvetica;\n",
		title, len(f.Hosts()), len(f.Switches()), len(f.Links()))
	b = append(b, "  newrank=true; ranksep=1.2; nodesep=0.2; splines=line;\n"...)
	b = append(b, "  node [shape=box, style=\"rounded,filled\", fontname=Helvetica, fontsize=10, height=0.35];\n"...)
	b = append(b, "  edge [color=\"#868e96\"];\n"...)
	b = appendPods(b, f)
	b = appendTiers(b, f)
	thin := slowest(f)
	for _, l := range f.Links() {
		b = appendEdge(b, f, l, thin)
	}
	return append(b, "}\n"...)
}

// appendPods writes every node, those of a pod inside its box.
func appendPods(b []byte, f *topo.Fabric) []byte {
	pods := make(map[int][]*topo.Node)
	var order []int
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if pods[n.Pod] == nil {
			order = append(order, n.Pod)
		}
		pods[n.Pod] = append(pods[n.Pod], n)
	}
	slices.Sort(order)
	for _, pod := range order {
		indent := "  "
		if pod != topo.NoPod {
			b = fmt.Appendf(b, "  subgraph cluster_pod%d {\n    label=\"pod %d\"; style=rounded; color=\"#ced4da\"; fontsize=10;\n", pod, pod)
			indent = "    "
		}
		for _, n := range pods[pod] {
			b = fmt.Appendf(b, "%s%q [%s, tooltip=\"%s %v %v\"];\n", indent, n.Name, roleStyle[n.Role], n.Role, n.IPv4, n.IPv6)
		}
		if pod != topo.NoPod {
			b = append(b, "  }\n"...)
		}
	}
	return b
}

func appendTiers(b []byte, f *topo.Fabric) []byte {
	tiers := make(map[int][]string)
	top := 0
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		tiers[n.Tier] = append(tiers[n.Tier], n.Name)
		top = max(top, n.Tier)
	}
	for tier := top; tier >= 0; tier-- {
		if len(tiers[tier]) == 0 {
			continue
		}
		b = append(b, "  { rank=same;"...)
		for _, name := range tiers[tier] {
			b = fmt.Appendf(b, " %q;", name)
		}
		b = append(b, " }\n"...)
	}
	return b
}

// slowest is the least rate of any link: the thinnest line.
func slowest(f *topo.Fabric) model.Rate {
	least := model.Rate(math.MaxInt64)
	for _, l := range f.Links() {
		least = min(least, l.Rate)
	}
	return least
}

// appendEdge writes a link from the higher tier down, which is how Graphviz
// ranks.
func appendEdge(b []byte, f *topo.Fabric, l topo.Link, thin model.Rate) []byte {
	up, down := l.A, l.B
	if f.Node(up.Node).Tier < f.Node(down.Node).Tier {
		up, down = down, up
	}
	width := min(1+math.Log2(float64(l.Rate)/float64(thin))/2, 4)
	b = fmt.Appendf(b, "  %q -- %q [penwidth=%.1f, tooltip=\"%s - %s %v %s\"", f.Node(up.Node).Name, f.Node(down.Node).Name,
		width, f.PortRef(up), f.PortRef(down), l.Rate, shortDelay(l.Delay))
	if l.ErrorRate > 0 {
		b = fmt.Appendf(b, ", color=\"#e03131\", style=dashed, label=\"%g\", fontsize=8, fontcolor=\"#e03131\"", l.ErrorRate)
	}
	return append(b, "];\n"...)
}

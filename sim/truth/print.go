package truth

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/model"
)

// Name returns a node's name: "s0:3>s1/3" is the queue of priority 3 on port 3
// of s0, which leads to s1.
func (g *Graph) Name(n Node) string {
	switch n.Kind {
	case KindQueue:
		peer := g.fabric.Port(n.Port).Peer
		return fmt.Sprintf("%s:%d>%s/%d", g.fabric.Node(n.Port.Node).Name, n.Port.Port, g.fabric.Node(peer.Node).Name,
			n.Priority)
	case KindHost:
		return g.fabric.Node(n.Port.Node).Name
	}
	if i, ok := g.index[n]; ok {
		return g.Nodes[i].Name
	}
	return fmt.Sprintf("flow %d", n.Flow)
}

// String prints every node with what it waits for, and the cycles.
func (g *Graph) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wait-for at %v: %d nodes, %d edges\n", g.At.Model(), len(g.Nodes), len(g.Edges))
	for _, n := range g.Nodes {
		fmt.Fprintf(&b, "%-22s %s\n", n.Name, n.describe())
		for _, e := range g.EdgesFrom(n.Node) {
			fmt.Fprintf(&b, "    %-16s %-22s", e.Reason, g.Name(e.To))
			if e.Count.Packets > 0 {
				fmt.Fprintf(&b, " %v", e.Count)
			}
			b.WriteByte('\n')
		}
	}
	for _, loop := range g.Cycles() {
		b.WriteString("cycle:")
		for _, n := range loop {
			fmt.Fprintf(&b, " %s ->", g.Name(n))
		}
		fmt.Fprintf(&b, " %s\n", g.Name(loop[0]))
	}
	return b.String()
}

// String prints "3 packets, 3.2KB".
func (c Count) String() string {
	if c.Packets == 1 {
		return fmt.Sprintf("1 packet, %v", c.Bytes)
	}
	return fmt.Sprintf("%d packets, %v", c.Packets, c.Bytes)
}

// describe returns the node's state in words.
func (s *State) describe() string {
	switch {
	case s.Kind == KindHost:
		return "pauses its switch"
	case s.Kind == KindFlow:
		return s.Count.String()
	case s.Paused:
		return "paused, " + s.Count.String()
	}
	return "drains, " + s.Count.String()
}

// jsonNode and jsonEdge are the stable form for files: names instead of
// numbers.
type jsonNode struct {
	Name     string          `json:"name"`
	Kind     NodeKind        `json:"kind"`
	Node     string          `json:"node,omitempty"` // of a queue or host
	Port     model.PortID    `json:"port,omitempty"`
	Peer     string          `json:"peer,omitempty"`
	Priority *model.Priority `json:"priority,omitempty"`
	Flow     *int            `json:"flow,omitempty"`
	Reverse  bool            `json:"reverse,omitempty"`
	Paused   bool            `json:"paused,omitempty"`
	Packets  int64           `json:"packets"`
	Bytes    int64           `json:"bytes"`
}

type jsonEdge struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Reason  Reason `json:"reason"`
	Packets int64  `json:"packets"`
	Bytes   int64  `json:"bytes"`
}

// MarshalJSON writes nodes, edges and cycles by name.
func (g *Graph) MarshalJSON() ([]byte, error) {
	out := struct {
		At     model.Time `json:"at"`
		Nodes  []jsonNode `json:"nodes"`
		Edges  []jsonEdge `json:"edges"`
		Cycles [][]string `json:"cycles"`
	}{At: g.At.Model(), Nodes: []jsonNode{}, Edges: []jsonEdge{}, Cycles: [][]string{}}
	for _, n := range g.Nodes {
		j := jsonNode{Name: n.Name, Kind: n.Kind, Paused: n.Paused, Packets: n.Count.Packets, Bytes: int64(n.Count.Bytes)}
		switch n.Kind {
		case KindQueue:
			j.Node, j.Port, j.Priority = g.fabric.Node(n.Port.Node).Name, n.Port.Port, &n.Priority
			j.Peer = g.fabric.Node(g.fabric.Port(n.Port).Peer.Node).Name
		case KindHost:
			j.Node = n.Name
		case KindFlow:
			j.Flow, j.Reverse = &n.Flow, n.Reverse
		}
		out.Nodes = append(out.Nodes, j)
	}
	for _, e := range g.Edges {
		out.Edges = append(out.Edges, jsonEdge{g.Name(e.From), g.Name(e.To), e.Reason, e.Count.Packets, int64(e.Count.Bytes)})
	}
	for _, loop := range g.Cycles() {
		names := make([]string, len(loop))
		for i, n := range loop {
			names[i] = g.Name(n)
		}
		out.Cycles = append(out.Cycles, names)
	}
	return json.Marshal(out)
}

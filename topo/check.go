package topo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// Severity is the severity of a Finding.
type Severity uint8

// Severities.
const (
	Warning Severity = iota // unusual; it may be intended
	Fault                   // some packets cannot arrive
)

// String prints the severity.
func (s Severity) String() string {
	if s == Fault {
		return "fault"
	}
	return "warning"
}

// Problem is a kind of Finding.
type Problem string

// Problems that Check finds.
const (
	Isolated    Problem = "isolated"    // a node without links
	Partitioned Problem = "partitioned" // the fabric is in several parts
	Unreachable Problem = "unreachable" // hosts without a route to others
	Loop        Problem = "loop"        // a forwarding loop
	BufferCycle Problem = "cycle"       // a cyclic buffer dependency
	Detour      Problem = "detour"      // static routes off the shortest paths
	Uneven      Problem = "uneven"      // equal shares over unequal links
	Lossy       Problem = "lossy"       // links with packet loss
	Unchecked   Problem = "unchecked"   // a check that was skipped
)

// Finding is a result of Check, as a sentence and as data.
type Finding struct {
	Severity Severity
	Problem  Problem
	Text     string
	Nodes    []model.NodeID // the nodes of a loop in order; otherwise examples
	Ports    []model.Port   // the egress ports of a cycle in order; otherwise examples
}

// String prints "fault: forwarding loop …".
func (f Finding) String() string { return f.Severity.String() + ": " + f.Text }

// Check finds faults and oddities of routes and their fabric. It returns faults
// first, and an empty list if it finds none. A problem of many nodes is one
// finding with a count and an example.
func Check(r *Routes) []Finding {
	c := newChecker(r)
	c.bufferDeps = newDependencies(r)
	c.findIsolated()
	c.findPartitions()
	for _, t := range c.trafficClasses() {
		c.followTraffic(t)
	}
	c.reportLoops()
	c.reportReach()
	c.reportCycles()
	c.findDetours()
	c.findUnevenECMP()
	c.findLossyLinks()
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
	return c.findings
}

func (c *checker) addFinding(f Finding) { c.findings = append(c.findings, f) }

func (c *checker) name(id model.NodeID) string { return c.f.nodes[id].Name }

// someNames prints at most four names and the number of the others.
func (c *checker) someNames(ids []model.NodeID) string {
	const most = 4
	var names []string
	for _, id := range ids[:min(len(ids), most)] {
		names = append(names, c.name(id))
	}
	out := strings.Join(names, ", ")
	if len(ids) > most {
		out += fmt.Sprintf(" and %d others", len(ids)-most)
	}
	return out
}

func (c *checker) findIsolated() {
	var ids []model.NodeID
	for i := range c.f.nodes {
		if len(c.f.nodes[i].Ports) == 0 {
			ids = append(ids, model.NodeID(i))
		}
	}
	// A fabric of a single node is not a fault.
	if len(ids) > 0 && len(c.f.nodes) > 1 {
		c.addFinding(Finding{Fault, Isolated, plural.Count(len(ids), "node") + " without links: " + c.someNames(ids), ids, nil})
	}
}

// findPartitions counts the connected parts of the fabric, without isolated
// nodes and without links that are down.
func (c *checker) findPartitions() {
	part := make([]int, len(c.f.nodes)) // 0: not seen
	var first []model.NodeID            // of each part
	var sizes []int
	for i := range c.f.nodes {
		if part[i] != 0 || len(c.f.nodes[i].Ports) == 0 {
			continue
		}
		first, sizes = append(first, model.NodeID(i)), append(sizes, 0)
		part[i] = len(first)
		queue := []int{i}
		for len(queue) > 0 {
			n := &c.f.nodes[queue[0]]
			queue = queue[1:]
			sizes[len(sizes)-1]++
			for j := range n.Ports {
				peer := int(n.Ports[j].Peer.Node)
				if part[peer] == 0 && !c.isDown(n.Ports[j].Link) {
					part[peer] = len(first)
					queue = append(queue, peer)
				}
			}
		}
	}
	if len(first) < 2 {
		return
	}
	var parts []string
	for i := range first[:min(len(first), 4)] {
		parts = append(parts, plural.Count(sizes[i], "node")+" with "+c.name(first[i]))
	}
	c.addFinding(Finding{Fault, Partitioned, fmt.Sprintf("fabric is partitioned into %d parts: %s",
		len(first), strings.Join(parts, ", ")), first, nil})
}

// findDetours finds static routes off the shortest paths.
func (c *checker) findDetours() {
	var ports []model.Port
	example := ""
	for _, o := range c.r.cfg.Overrides {
		d := c.r.dest(model.AddrOf(o.To.Addr()))
		if d == nil {
			continue
		}
		computed := c.r.ports(c.r.computed(uint32(c.r.row[o.At]), d))
		for _, p := range o.Ports {
			if slices.Contains(computed, p) {
				continue
			}
			ports = append(ports, model.Port{Node: o.At, Port: p})
			if example == "" {
				example = fmt.Sprintf("%s forwards packets to %v via %s",
					c.name(o.At), o.To, c.name(c.f.nodes[o.At].Ports[p-1].Peer.Node))
			}
			break
		}
	}
	if len(ports) > 0 {
		c.addFinding(Finding{Warning, Detour, fmt.Sprintf("%d of %d static routes leave the shortest paths, for example %s",
			len(ports), len(c.r.cfg.Overrides), example), nil, ports})
	}
}

// findUnevenECMP finds switches that spread flows evenly over links of different
// rates.
func (c *checker) findUnevenECMP() {
	var ids []model.NodeID
	var example []model.Port
	seen := make([]int, len(c.r.slab)) // by offset: row + 1 of the last visit
	for row, id := range c.f.switches {
		found := false
		for _, set := range c.r.table[row*c.r.classes : (row+1)*c.r.classes] {
			if found || seen[set] == row+1 {
				continue
			}
			seen[set] = row + 1
			ports := c.r.ports(set)
			if len(ports) < 2 {
				continue
			}
			slow, fast := ports[0], ports[0]
			for _, p := range ports {
				if c.rate(id, p) < c.rate(id, slow) {
					slow = p
				}
				if c.rate(id, p) > c.rate(id, fast) {
					fast = p
				}
			}
			if c.rate(id, slow) != c.rate(id, fast) {
				found = true
				ids = append(ids, id)
				if example == nil {
					example = []model.Port{{Node: id, Port: slow}, {Node: id, Port: fast}}
				}
			}
		}
	}
	if len(ids) > 0 {
		slow, fast := example[0], example[1]
		c.addFinding(Finding{Warning, Uneven, fmt.Sprintf(
			"ECMP spreads flows evenly over links of different rates on %s, for example %s (%s) and %s (%s)",
			c.someNames(ids), c.f.PortName(slow), model.FormatRate(c.f.Port(slow).Rate),
			c.f.PortName(fast), model.FormatRate(c.f.Port(fast).Rate)), ids, example})
	}
}

func (c *checker) rate(id model.NodeID, p model.PortID) model.Rate {
	return c.f.nodes[id].Ports[p-1].Rate
}

func (c *checker) findLossyLinks() {
	var ports []model.Port
	worst := -1
	for i := range c.f.links {
		if c.f.links[i].ErrorRate > 0 {
			ports = append(ports, c.f.links[i].A)
			if worst < 0 || c.f.links[i].ErrorRate > c.f.links[worst].ErrorRate {
				worst = i
			}
		}
	}
	if len(ports) > 0 {
		l := &c.f.links[worst]
		c.addFinding(Finding{Warning, Lossy, fmt.Sprintf("packet loss on %s; the worst is %s (%s lost)",
			plural.Count(len(ports), "link"), c.f.PortName(l.A), model.FormatShare(l.ErrorRate)), nil, ports})
	}
}

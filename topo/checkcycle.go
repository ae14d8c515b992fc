package topo

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/internal/scc"
	"github.com/weft-telemetry/weft/model"
)

// bufferDependencies is the graph of which link's buffer depends on which. A
// packet that arrived over one link and is queued for another occupies buffer of
// the first until the second drains. Where links depend on each other in a cycle
// and PFC may pause them, they can deadlock (a cyclic buffer dependency, CBD).
//
// Links between switches are numbered in each direction; only those can be part
// of a cycle, because hosts do not forward.
type bufferDependencies struct {
	links     []directed
	start     []int32    // first link out of each row; one more at the end
	dependsOn [][]uint64 // by link: bits of the links out of its far end, from start
	linkOut   [][]int32  // by row and port: the link out of it, or -1; links that are down have numbers, too

	// Of the traffic being added, by row.
	reached  []bool
	linksOut [][]uint64 // bits of the links that it takes, from start
}

// directed is a link in one direction.
type directed struct {
	from model.Port
	to   uint32 // row of the far end
	link int    // index in Fabric.Links
}

// maxDependencies limits the bits of dependsOn: 128 MiB. A fat-tree of k=64 has
// 21 million.
const maxDependencies = 1 << 30

func newDependencies(r *Routes) *bufferDependencies {
	d := &bufferDependencies{start: []int32{0}}
	for _, id := range r.f.switches {
		ports := make([]int32, len(r.f.nodes[id].Ports)+1)
		for i := range ports {
			ports[i] = -1
		}
		for i := range r.f.nodes[id].Ports {
			p := &r.f.nodes[id].Ports[i]
			if row := r.row[p.Peer.Node]; row >= 0 {
				ports[p.ID] = int32(len(d.links))
				d.links = append(d.links, directed{model.Port{Node: id, Port: p.ID}, uint32(row), p.Link})
			}
		}
		d.linkOut = append(d.linkOut, ports)
		d.start = append(d.start, int32(len(d.links)))
	}
	size := 0
	for _, l := range d.links {
		size += int(d.start[l.to+1] - d.start[l.to])
	}
	if size > maxDependencies {
		return nil
	}
	return d.withoutTraffic()
}

// withoutTraffic returns a graph of the same links without dependencies.
func (d *bufferDependencies) withoutTraffic() *bufferDependencies {
	out := *d
	out.reached, out.linksOut = make([]bool, len(d.linkOut)), make([][]uint64, len(d.linkOut))
	words := 0
	for row := range d.linkOut {
		words += int(d.start[row+1]-d.start[row]+63) / 64
	}
	for _, l := range d.links {
		words += int(d.start[l.to+1]-d.start[l.to]+63) / 64
	}
	all := make([]uint64, words)
	for row := range d.linkOut {
		n := int(d.start[row+1]-d.start[row]+63) / 64
		out.linksOut[row], all = all[:n:n], all[n:]
	}
	out.dependsOn = make([][]uint64, len(d.links))
	for i, l := range d.links {
		n := int(d.start[l.to+1]-d.start[l.to]+63) / 64
		out.dependsOn[i], all = all[:n:n], all[n:]
	}
	return &out
}

// addTraffic adds the dependencies of traffic to dst from the switches where it
// enters the fabric.
func (d *bufferDependencies) addTraffic(r *Routes, dst model.Addr, entries []uint32) {
	if d == nil {
		return
	}
	clear(d.reached)
	var queue []uint32
	reach := func(row uint32) {
		if d.reached[row] {
			return
		}
		d.reached[row] = true
		queue = append(queue, row)
		out := d.linksOut[row]
		clear(out)
		for _, p := range r.ports(r.lookup(row, r.f.switches[row], dst)) {
			if link := d.linkOut[row][p]; link >= 0 && !d.isDown(r, link) {
				i := link - d.start[row]
				out[i/64] |= 1 << (i % 64)
			}
		}
	}
	for _, row := range entries {
		reach(row)
	}
	for len(queue) > 0 {
		row := queue[0]
		queue = queue[1:]
		for i, word := range d.linksOut[row] {
			for ; word != 0; word &= word - 1 {
				link := d.start[row] + int32(i*64+bits.TrailingZeros64(word))
				far := d.links[link].to
				reach(far)
				for j, out := range d.linksOut[far] {
					d.dependsOn[link][j] |= out
				}
			}
		}
	}
}

// isDown reports whether a link is down: only a static route can still name it.
func (d *bufferDependencies) isDown(r *Routes, link int32) bool {
	return r.down != nil && r.down[d.links[link].link]
}

// visitDependencies calls visit for each link that a link depends on.
func (d *bufferDependencies) visitDependencies(link int32, visit func(int32)) {
	first := d.start[d.links[link].to]
	for i, word := range d.dependsOn[link] {
		for b := int32(0); word != 0; b, word = b+1, word>>1 {
			if word&1 != 0 {
				visit(first + int32(i)*64 + b)
			}
		}
	}
}

// cycles returns one cycle of links for each set of links that all depend on
// each other, directly or not.
func (d *bufferDependencies) cycles() (out [][]int32) {
	if d == nil {
		return nil
	}
	for _, part := range d.components() {
		if len(part) > 1 {
			out = append(out, d.shortestCycle(part, part[0]))
		}
	}
	return out
}

// components returns the sets of links that depend on each other, each
// ascending, in the order of their least links.
func (d *bufferDependencies) components() [][]int32 {
	all := func(yield func(int32) bool) {
		for link := range d.links {
			if !yield(int32(link)) {
				return
			}
		}
	}
	out := scc.Components(len(d.links), all, func(link int32, list []int32) []int32 {
		d.visitDependencies(link, func(n int32) { list = append(list, n) })
		return list
	})
	slices.SortFunc(out, func(a, b []int32) int { return int(a[0] - b[0]) })
	return out
}

// shortestCycle finds a shortest cycle through a link of a component.
func (d *bufferDependencies) shortestCycle(part []int32, through int32) []int32 {
	came := map[int32]int32{}
	queue := []int32{through}
	for len(queue) > 0 {
		link := queue[0]
		queue = queue[1:]
		closed := false
		d.visitDependencies(link, func(n int32) {
			if n == through {
				closed = true
			} else if _, seen := came[n]; !seen {
				if _, inside := slices.BinarySearch(part, n); inside {
					came[n] = link
					queue = append(queue, n)
				}
			}
		})
		if closed {
			cycle := []int32{link}
			for link != through {
				link = came[link]
				cycle = append(cycle, link)
			}
			slices.Reverse(cycle)
			return cycle
		}
	}
	panic("topo: links that depend on each other form no cycle")
}

func (c *checker) reportCycles() {
	if c.bufferDeps == nil {
		c.addFinding(Finding{Warning, Unchecked, "fabric is too large for the check for cyclic buffer dependencies", nil, nil})
	}
	for _, cycle := range c.bufferDeps.cycles() {
		var names []string
		var ports []model.Port
		for _, link := range cycle {
			ports = append(ports, c.bufferDeps.links[link].from)
			names = append(names, c.f.PortName(c.bufferDeps.links[link].from))
		}
		c.addFinding(Finding{
			Warning, BufferCycle,
			fmt.Sprintf("cyclic buffer dependency of %d ports: %s; PFC can deadlock them",
				len(names), strings.Join(names, ", ")),
			nil, ports,
		})
	}
}

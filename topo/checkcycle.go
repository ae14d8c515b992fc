package topo

import (
	"fmt"
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
	linkOut   [][]int32  // by row and port: the link out of it, or -1
	reached   []bool     // scratch, by row
}

// directed is a link in one direction.
type directed struct {
	from model.Port
	to   uint32 // row of the far end
}

// maxDependencies limits the bits of dependsOn: 128 MiB. A fat-tree of k=64 has
// 21 million.
const maxDependencies = 1 << 30

func newDependencies(r *Routes) *bufferDependencies {
	d := &bufferDependencies{start: []int32{0}, reached: make([]bool, len(r.f.switches))}
	for _, id := range r.f.switches {
		ports := make([]int32, len(r.f.nodes[id].Ports)+1)
		for i := range ports {
			ports[i] = -1
		}
		for i := range r.f.nodes[id].Ports {
			p := &r.f.nodes[id].Ports[i]
			if row := r.row[p.Peer.Node]; row >= 0 && (r.down == nil || !r.down[p.Link]) {
				ports[p.ID] = int32(len(d.links))
				d.links = append(d.links, directed{model.Port{Node: id, Port: p.ID}, uint32(row)})
			}
		}
		d.linkOut = append(d.linkOut, ports)
		d.start = append(d.start, int32(len(d.links)))
	}
	bits := 0
	for _, l := range d.links {
		bits += int(d.start[l.to+1] - d.start[l.to])
	}
	if bits > maxDependencies {
		return nil
	}
	d.dependsOn = make([][]uint64, len(d.links))
	for i, l := range d.links {
		d.dependsOn[i] = make([]uint64, (d.start[l.to+1]-d.start[l.to]+63)/64)
	}
	return d
}

// addTraffic adds the dependencies of traffic to dst from the switches where it
// enters the fabric.
func (d *bufferDependencies) addTraffic(r *Routes, dst model.Addr, entries []uint32) {
	if d == nil {
		return
	}
	clear(d.reached)
	queue := slices.Clone(entries)
	for _, row := range queue {
		d.reached[row] = true
	}
	for len(queue) > 0 {
		row := queue[0]
		queue = queue[1:]
		for _, p := range r.ports(r.lookup(row, r.f.switches[row], dst)) {
			link := d.linkOut[row][p]
			if link < 0 {
				continue
			}
			far := d.links[link].to
			for _, q := range r.ports(r.lookup(far, r.f.switches[far], dst)) {
				if next := d.linkOut[far][q]; next >= 0 {
					i := next - d.start[far]
					d.dependsOn[link][i/64] |= 1 << (i % 64)
				}
			}
			if !d.reached[far] {
				d.reached[far] = true
				queue = append(queue, far)
			}
		}
	}
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
			out = append(out, d.shortestCycle(part))
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

// shortestCycle finds a shortest cycle through the first link of a component.
func (d *bufferDependencies) shortestCycle(part []int32) []int32 {
	came := map[int32]int32{}
	queue := []int32{part[0]}
	for len(queue) > 0 {
		link := queue[0]
		queue = queue[1:]
		closed := false
		d.visitDependencies(link, func(n int32) {
			if n == part[0] {
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
			for link != part[0] {
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

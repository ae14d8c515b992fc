package paths

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// Part is what a Detector found in its part of the flows of a slot: findings by location
// and counts by port. A Merger makes the slot's findings of all parts.
type Part struct {
	slot   int64
	ports  *Ports
	list   []Finding
	places []uint32 // of list: the place of the first flow, which determines what flows differ in
	index  map[findingKey]int

	passed     counts // by port: flows that passed it
	asIntended counts // by node: times that it forwarded a flow as intended
}

type findingKey struct {
	kind Kind
	slot int64
	at   model.Port
	loop string
}

// reset begins a slot.
func (c *Part) reset(slot int64) {
	c.slot, c.list, c.places = slot, nil, c.places[:0]
	clear(c.index)
	c.passed.reset(c.ports.Len())
	c.asIntended.reset(c.ports.Len())
}

// addFinding adds a flow, which is at a place among those of its slot, to a finding.
func (c *Part) addFinding(f Finding, key *model.FlowKey, place uint32) {
	i := c.find(&f, place)
	c.list[i].Flows = append(c.list[i].Flows, *key)
	c.list[i].Confirmed = c.list[i].Confirmed || f.Confirmed // one flow's proof is enough
}

// find returns the index of the finding at the same location, f itself if there is none.
func (c *Part) find(f *Finding, place uint32) int {
	p := findingKey{kind: f.Kind, slot: f.Slot, at: f.At, loop: loopID(f.Switches)}
	i, ok := c.index[p]
	if !ok {
		if c.index == nil {
			c.index = map[findingKey]int{}
		}
		i = len(c.list)
		c.index[p] = i
		c.list, c.places = append(c.list, *f), append(c.places, place)
		c.list[i].Flows = nil
	} else if place < c.places[i] {
		flows, confirmed := c.list[i].Flows, c.list[i].Confirmed
		c.list[i], c.places[i] = *f, place
		c.list[i].Flows, c.list[i].Confirmed = flows, confirmed
	}
	return i
}

// loopID identifies a loop whatever switch it starts from.
func loopID(loop []model.NodeID) string {
	if len(loop) == 0 {
		return ""
	}
	least := slices.Index(loop, slices.Min(loop))
	var b []byte
	for i := range loop {
		id := loop[(least+i)%len(loop)]
		b = append(b, byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
	}
	return string(b)
}

// Merger makes findings of what Detectors found in their parts of successive slots. The
// result is the same for any division of the flows.
type Merger struct {
	before counts // by port: flows that passed it in the last slot
	sum    Part
}

// Merge returns the findings of a slot, sorted by kind, location and slot.
func (g *Merger) Merge(parts ...*Part) []Finding {
	g.sum.ports = parts[0].ports
	g.sum.reset(parts[0].slot)
	for _, p := range parts {
		g.sum.passed.add(&p.passed)
		g.sum.asIntended.add(&p.asIntended)
		for i := range p.list {
			f := &p.list[i]
			at := g.sum.find(f, p.places[i])
			g.sum.list[at].Flows = append(g.sum.list[at].Flows, f.Flows...)
			g.sum.list[at].Confirmed = g.sum.list[at].Confirmed || f.Confirmed
		}
	}
	list := g.complete()
	g.before, g.sum.passed = g.sum.passed, g.before
	return list
}

// complete counts the other flows of each finding, and sorts.
func (g *Merger) complete() []Finding {
	c := &g.sum
	for i := range c.list {
		f := &c.list[i]
		switch f.Kind {
		case WrongRoute:
			f.Others = c.ports.count(&c.asIntended, model.Port{Node: f.At.Node})
		case BlackHole:
			f.Others = c.ports.count(&g.before, f.At)
			if f.Slot == c.slot {
				f.Others = c.ports.count(&c.passed, f.At)
			}
			if f.Others == 0 && f.HasNext {
				f.Kind = Silent
			}
		}
		slices.SortFunc(f.Flows, model.FlowKey.Compare)
	}
	slices.SortFunc(c.list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.At.Node, b.At.Node), cmp.Compare(a.At.Port, b.At.Port),
			cmp.Compare(a.Slot, b.Slot), cmp.Compare(loopID(a.Switches), loopID(b.Switches)))
	})
	return c.list
}

// counts holds a number for every port. It is reset in the time of those that are not 0.
type counts struct {
	n    []int32
	used []uint32
}

func (c *counts) reset(ports int) {
	if len(c.n) != ports {
		c.n = make([]int32, ports)
	}
	for _, i := range c.used {
		c.n[i] = 0
	}
	c.used = c.used[:0]
}

func (c *counts) addOne(i uint32) { c.addMany(i, 1) }

func (c *counts) addMany(i uint32, n int32) {
	if c.n[i] == 0 {
		c.used = append(c.used, i)
	}
	c.n[i] += n
}

func (c *counts) add(o *counts) {
	for _, i := range o.used {
		c.addMany(i, o.n[i])
	}
}

// count returns the number of a port.
func (t *Ports) count(c *counts, p model.Port) int {
	if n, ok := t.Number(p.Node, p.Port); ok && len(c.n) > 0 {
		return int(c.n[n])
	}
	return 0
}

package flowwatch

import (
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// gather groups flowsets of all switches, in whatever order they come, by slot
// and gives the slots out in order: once everybody who reported the slot before
// has reported this one, or when waiting is over.
type gather struct {
	length time.Duration
	wait   int64
	next   int64 // slot to give out next
	newest int64
	begun  bool
	open   map[int64][]*flows.Flowset
	before map[source]bool // reported the slot that was given out last

	late, odd uint64
}

// source is who makes flowsets: a switch, or a port of one, for one family.
type source struct {
	sw    model.NodeID
	scope model.PortID
	key   uint8 // width of keys, which is the family
}

func sourceOf(fs *flows.Flowset) source { return source{fs.Switch, fs.Scope, fs.Layout.Key} }

// far is how many slots ahead of the others a flowset may be: more is a broken
// clock, and would make as many empty slots.
const far = 1 << 12

func (g *gather) add(fs *flows.Flowset) {
	slot := paths.SlotAt(fs.Start, fs.Length)
	if !g.begun {
		g.begun, g.next, g.newest = true, slot, slot
		g.open = map[int64][]*flows.Flowset{}
	}
	switch {
	case fs.Length != g.length || slot > g.newest+far:
		g.odd++
		return
	case slot < g.next:
		g.late++
		return
	}
	g.newest = max(g.newest, slot)
	g.open[slot] = append(g.open[slot], fs)
}

// ready tells whether the next slot's time has come.
func (g *gather) ready() bool {
	if !g.begun || g.next > g.newest {
		return false
	}
	if g.newest >= g.next+g.wait {
		return true
	}
	if len(g.before) == 0 {
		return false
	}
	here := 0
	for _, fs := range g.open[g.next] {
		if g.before[sourceOf(fs)] {
			here++
		}
	}
	return here == len(g.before)
}

// left tells whether anything was reported that was not given out.
func (g *gather) left() bool { return g.begun && g.next <= g.newest }

// take gives out the next slot. One of which nothing came is empty.
func (g *gather) take() (int64, []*flows.Flowset) {
	slot, sets := g.next, g.open[g.next]
	delete(g.open, slot)
	g.next++
	g.before = make(map[source]bool, len(sets))
	for _, fs := range sets {
		g.before[sourceOf(fs)] = true
	}
	return slot, sets
}

package flowwatch

import (
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// slotGatherer groups flowsets of all switches, in any order of arrival, by slot and
// returns the slots in order: when every recent reporter has reported a slot, or
// when its wait is over.
type slotGatherer struct {
	length time.Duration
	wait   int64
	skew   time.Duration // how long after now a flowset may begin; 0: no limit
	next   int64         // slot to return next
	newest int64
	seen   int64 // newest at a tick that is a slot's length ago, or more
	mark   int64 // newest at the tick that will be next
	marked model.Time
	begun  bool
	given  bool // a slot was returned: the reporters are known
	open   map[int64][]*flows.Flowset
	heard  map[flowsetSource]int64 // newest slot of each recent reporter, in time or late
	absent map[flowsetSource]bool  // of those: the ones that have not reported next

	late, odd uint64
	release   func(*flows.Flowset) // for flowsets that are not returned; may be nil
}

// flowsetSource makes flowsets: a switch, or a port of one, for one address family.
type flowsetSource struct {
	sw    model.NodeID
	scope model.PortID
	key   uint8 // width of keys, which is the family
}

func sourceOf(fs *flows.Flowset) flowsetSource {
	return flowsetSource{fs.Switch, fs.Scope, fs.Layout.Key}
}

// far is how many slots ahead of the others a flowset may be: more would make
// as many empty slots.
const far = 1 << 12

func (g *slotGatherer) addFlowset(now model.Time, fs *flows.Flowset) {
	slot := paths.SlotAt(fs.Start, fs.Length)
	if fs.Length != g.length || g.skew > 0 && fs.Start.Sub(now) > g.skew {
		g.odd++
		g.discard(fs)
		return
	}
	if !g.begun {
		g.begun = true
		g.open, g.heard, g.absent = map[int64][]*flows.Flowset{}, map[flowsetSource]int64{}, map[flowsetSource]bool{}
		g.startSlot(slot)
	}
	if slot > g.newest+far {
		if g.skew == 0 { // its clock may be wrong
			g.odd++
			g.discard(fs)
			return
		}
		// It is not ahead of the collector: the others lag, or no switch has
		// reported for long. Their slots are far in the past.
		for _, sets := range g.open {
			g.late += uint64(len(sets))
			for _, fs := range sets {
				g.discard(fs)
			}
		}
		clear(g.open)
		g.startSlot(slot)
	}
	source := sourceOf(fs)
	if last, known := g.heard[source]; !known || last < slot {
		if !known { // what it counted before its first report is not here
			g.absent[source] = true
		}
		g.heard[source] = slot
	}
	if slot < g.next {
		g.late++
		g.discard(fs)
		return
	}
	g.newest = max(g.newest, slot)
	g.open[slot] = append(g.open[slot], fs)
	if slot == g.next {
		delete(g.absent, source)
	}
}

// discard frees a flowset that no slot needs.
func (g *slotGatherer) discard(fs *flows.Flowset) {
	if g.release != nil {
		g.release(fs)
	}
}

// startSlot makes a slot the first one. The reporters are not known.
func (g *slotGatherer) startSlot(slot int64) {
	g.next, g.newest, g.seen, g.mark, g.given = slot, slot, slot-1, slot-1, false
	clear(g.heard)
	clear(g.absent)
}

// complete reports whether every reporter has reported the next slot.
func (g *slotGatherer) complete() bool { return g.given && g.hasSlot() && len(g.absent) == 0 }

// overdue reports whether the next slot has waited long enough: others were wait
// slots ahead of it one slot length ago. Reports that arrived before those have
// been read since, from any list or batch.
func (g *slotGatherer) overdue() bool { return g.hasSlot() && g.seen >= g.next+g.wait }

// notDue counts the flowsets of slots that are not overdue by the newest one, at most
// some. What ticks notice lags by two slots.
func (g *slotGatherer) notDue(most uint64) (n uint64) {
	for slot := g.newest; n < most && slot >= g.next && slot > g.newest-g.wait-2; slot-- {
		n += uint64(len(g.open[slot]))
	}
	return min(n, most)
}

// tick is called after all received flowsets were added.
func (g *slotGatherer) tick(now model.Time) {
	if now.Sub(g.marked) >= g.length {
		g.seen, g.mark, g.marked = g.mark, g.newest, now
	}
}

// hasSlot reports whether there is a slot that was not returned.
func (g *slotGatherer) hasSlot() bool { return g.begun && g.next <= g.newest }

// missing returns the reporters that have not reported the next slot.
func (g *slotGatherer) missing() (list []flowsetSource) {
	for s := range g.absent {
		list = append(list, s)
	}
	return list
}

// takeSlot returns the next slot. A slot without reports is empty.
func (g *slotGatherer) takeSlot() (int64, []*flows.Flowset) {
	slot, sets := g.next, g.open[g.next]
	delete(g.open, slot)
	g.next++
	g.given = true
	clear(g.absent)
	for s, last := range g.heard {
		if last < slot-g.wait {
			delete(g.heard, s)
		} else {
			g.absent[s] = true
		}
	}
	for _, fs := range g.open[g.next] {
		delete(g.absent, sourceOf(fs))
	}
	return slot, sets
}

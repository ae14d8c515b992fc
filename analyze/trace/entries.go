package trace

import (
	"math"

	"github.com/weft-telemetry/weft/wire/mirror"
)

// findOrOpen returns the entry of the current packet, a new one if there is none.
func (a *Assembler) findOrOpen(m *mirror.Mirror) int32 {
	id := &a.scan.id
	hash := id.hash()
	mask := uint64(len(a.slots) - 1)
	at, tag := hash&mask, uint32(hash>>32)
	for ; a.slots[at].entry != none; at = (at + 1) & mask {
		if s := a.slots[at]; s.tag == tag && a.traces[s.entry].id == *id {
			return s.entry
		}
	}
	if a.stats.Open >= a.cfg.MaxTraces || a.freeTrace == none && a.stats.Open > 0 && a.isFull(len(a.traces)+1, len(a.more)) {
		a.closeTrace(a.oldest, true)
		return a.findOrOpen(m) // the table has changed
	}
	if 2*a.stats.Open >= len(a.slots) {
		a.resize(2 * len(a.slots))
		return a.findOrOpen(m)
	}
	i := a.freeTrace
	if i == none {
		i = int32(len(a.traces))
		a.traces = append(a.traces, entry{})
		a.frames = append(a.frames, make([]byte, a.cfg.FrameBytes)...)
	} else {
		a.freeTrace = a.traces[i].after
	}
	a.slots[at] = slot{tag, i}
	a.stats.Open++
	// Not by one assignment: that would clear the hops, which are most of it.
	e := &a.traces[i]
	e.id, e.hash, e.first, e.why = *id, hash, a.now, 0
	e.latest, e.count, e.more = math.MaxUint32, 0, none
	e.reordered, e.duplicates, e.repeats = 0, 0, 0
	a.keepFrame(i, m)
	a.linkNewest(i)
	return i
}

// keepFrame keeps the frame of the current mirror.
func (a *Assembler) keepFrame(i int32, m *mirror.Mirror) {
	e := &a.traces[i]
	e.frame = uint16(copy(a.frames[int(i)*a.cfg.FrameBytes:][:a.cfg.FrameBytes], m.Frame))
	e.length, e.frameRank = m.Length, a.scan.hop.rank()
}

// resize makes a table of n slots, a power of two.
func (a *Assembler) resize(n int) {
	a.slots = make([]slot, n)
	for i := range a.slots {
		a.slots[i].entry = none
	}
	for i := a.oldest; i >= 0 && a.stats.Open > 0; i = a.traces[i].after {
		hash := a.traces[i].hash
		at := hash & uint64(n-1)
		for a.slots[at].entry != none {
			at = (at + 1) & uint64(n-1)
		}
		a.slots[at] = slot{uint32(hash >> 32), i}
	}
}

// freeEntry removes an entry from table and list and frees it.
func (a *Assembler) freeEntry(i int32) {
	mask := uint64(len(a.slots) - 1)
	at := a.traces[i].hash & mask
	for a.slots[at].entry != i {
		at = (at + 1) & mask
	}
	// Later entries move up, unless they are at their home slot or before it.
	for hole, j := at, (at+1)&mask; ; j = (j + 1) & mask {
		if a.slots[j].entry == none {
			a.slots[hole].entry = none
			break
		}
		home := a.traces[a.slots[j].entry].hash & mask
		if (j-home)&mask >= (j-hole)&mask {
			a.slots[hole] = a.slots[j]
			hole = j
		}
	}
	a.unlink(i)
	a.stats.Open--
	a.traces[i].after, a.freeTrace = a.freeTrace, i
}

// moveToNewest makes an entry the newest.
func (a *Assembler) moveToNewest(i int32) {
	if a.newest != i {
		a.unlink(i)
		a.linkNewest(i)
	}
}

func (a *Assembler) linkNewest(i int32) {
	e := &a.traces[i]
	e.before, e.after = a.newest, none
	if a.newest != none {
		a.traces[a.newest].after = i
	} else {
		a.oldest = i
	}
	a.newest = i
}

func (a *Assembler) unlink(i int32) {
	e := &a.traces[i]
	if e.before != none {
		a.traces[e.before].after = e.after
	} else {
		a.oldest = e.after
	}
	if e.after != none {
		a.traces[e.after].before = e.before
	} else {
		a.newest = e.before
	}
}

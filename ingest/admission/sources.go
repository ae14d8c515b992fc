package admission

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/weft-telemetry/weft/collect/translate"
)

// MaxSources is how many refused sources are remembered. The one that was refused
// least recently is forgotten for a new one, so that invented addresses displace
// each other and not who floods.
const MaxSources = 256

// Source is a source address and what was refused of it.
type Source struct {
	Addr      netip.Addr
	Datagrams [translate.Refusals]uint64 // by reason
	Reports   uint64
}

// Total is the number of refused datagrams.
func (s *Source) Total() (n uint64) {
	for _, one := range s.Datagrams {
		n += one
	}
	return n
}

// sourceTable holds the sources that were refused most recently: a ring of slots,
// linked from the least recent to the most recent.
type sourceTable struct {
	slots  []sourceSlot
	byAddr map[netip.Addr]int
	oldest int
	newest int
}

type sourceSlot struct {
	Source
	older, newer int // slots
}

func newSourceTable() sourceTable {
	return sourceTable{slots: make([]sourceSlot, 0, MaxSources), byAddr: make(map[netip.Addr]int, MaxSources)}
}

// none is no slot.
const none = -1

// add counts a refusal.
func (t *sourceTable) add(a netip.Addr, why translate.Refusal, reports int) {
	i, known := t.byAddr[a]
	if !known {
		i = t.take(a)
	}
	t.touch(i)
	s := &t.slots[i]
	s.Datagrams[why]++
	s.Reports += uint64(reports)
}

// take returns a slot for a new source: a free one, or the oldest.
func (t *sourceTable) take(a netip.Addr) (i int) {
	if i = len(t.slots); i < MaxSources {
		if i == 0 {
			t.oldest, t.newest = none, none
		}
		t.slots = append(t.slots, sourceSlot{older: t.newest, newer: none})
		if t.newest != none {
			t.slots[t.newest].newer = i
		} else {
			t.oldest = i
		}
		t.newest = i
	} else {
		i = t.oldest
		delete(t.byAddr, t.slots[i].Addr)
	}
	t.byAddr[a] = i
	t.slots[i].Source = Source{Addr: a}
	return i
}

// touch makes a slot the newest.
func (t *sourceTable) touch(i int) {
	if i == t.newest {
		return
	}
	s := &t.slots[i]
	if s.older != none {
		t.slots[s.older].newer = s.newer
	} else {
		t.oldest = s.newer
	}
	t.slots[s.newer].older = s.older // it has one: it is not the newest
	s.older, s.newer = t.newest, none
	t.slots[t.newest].newer = i
	t.newest = i
}

// list copies the sources, those with most refusals first.
func (t *sourceTable) list() []Source {
	all := make([]Source, len(t.slots))
	for i := range t.slots {
		all[i] = t.slots[i].Source
	}
	slices.SortFunc(all, func(a, b Source) int {
		if c := cmp.Compare(b.Total(), a.Total()); c != 0 {
			return c
		}
		return a.Addr.Compare(b.Addr)
	})
	return all
}

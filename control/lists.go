package control

import (
	"fmt"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Lists says to which lists switches append what. Devices and controller must
// agree on it. A kind with no list is not listened to.
type Lists struct {
	Flowsets Range // one list per switch, by its id
	Labels   Range
	Mirrors  Range // one per analyzer
	Epochs   Range
	// Complaints have the polls that hosts send about slow flows, so that what
	// switches tell in answer to them can be told whose it is.
	Complaints Range
}

// Range is successive lists.
type Range struct {
	First dta.ListID
	Count int
}

// has tells whether a list is in the range.
func (r Range) has(l dta.ListID) bool { return l >= r.First && l < r.First+dta.ListID(r.Count) }

// end is the list behind the range.
func (r Range) end() int { return int(r.First) + r.Count }

// DefaultLists is the plan for a fabric of so many nodes: flowsets first, in
// lists that have the number of their switch.
func DefaultLists(nodes int) Lists {
	at := dta.ListID(0)
	next := func(n int) Range {
		r := Range{at, n}
		at += dta.ListID(n)
		return r
	}
	return Lists{Flowsets: next(nodes), Labels: next(1), Mirrors: next(1), Epochs: next(1), Complaints: next(1)}
}

// Memory is the lists as a collector shall lay them out: rings of entries that
// hold the data of the longest report.
func (l Lists) Memory(entry int) list.Config {
	n := max(l.Flowsets.end(), l.Labels.end(), l.Mirrors.end(), l.Epochs.end(), l.Complaints.end())
	cfg := list.Config{Layout: list.Weft, Batch: 16}
	for id := range dta.ListID(n) {
		c := list.Class{Lists: 1, Entry: entry, Capacity: 1024, Sized: true}
		if l.Mirrors.has(id) || l.Labels.has(id) {
			c.Capacity = 16 << 10 // of a whole fabric, and small ones
		}
		if last := len(cfg.Classes) - 1; last >= 0 && cfg.Classes[last].Capacity == c.Capacity {
			cfg.Classes[last].Lists++
			continue
		}
		cfg.Classes = append(cfg.Classes, c)
	}
	return cfg
}

// Inbox reads lists of a collector's memory. It keeps a place in each.
type Inbox struct {
	tables []*list.Table
	at     []place
	buffer []byte
}

// place is a list in its table.
type place struct {
	table  *list.Table
	class  list.Class
	id     dta.ListID
	cursor list.Cursor
}

// NewInbox begins at the oldest entry that is left of every list.
func NewInbox(m *translate.Memory) (*Inbox, error) {
	in := &Inbox{tables: m.Lists}
	id := dta.ListID(0)
	for _, t := range m.Lists {
		for i := range t.Lists() {
			c, err := t.Oldest(i)
			if err != nil {
				return nil, fmt.Errorf("control: list %d: %w", id, err)
			}
			class, _ := t.Class(i) // it has a cursor
			in.at = append(in.at, place{t, class, id, c})
			id++
		}
	}
	return in, nil
}

// maxRead is how many entries are taken from a list before the next one's turn.
const maxRead = 256

// Poll gives what has come since to take, list by list, and returns how much it
// was. take must not keep the data.
func (in *Inbox) Poll(take func(list dta.ListID, data []byte)) (entries int, err error) {
	for i := range in.at {
		p := &in.at[i]
		for {
			in.buffer, err = p.table.Read(in.buffer[:0], &p.cursor, maxRead)
			if err != nil {
				return entries, fmt.Errorf("control: list %d: %w", p.id, err)
			}
			n := 0
			for data := range p.class.Entries(in.buffer) {
				take(p.id, data)
				n++
			}
			entries += n
			if n < maxRead {
				break
			}
		}
	}
	return entries, nil
}

// Lost is how many entries were overwritten before they were read.
func (in *Inbox) Lost() (n uint64) {
	for i := range in.at {
		n += in.at[i].cursor.Lost
	}
	return n
}

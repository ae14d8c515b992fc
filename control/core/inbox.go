package core

import (
	"fmt"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Inbox reads the lists of a collector's memory, each from where it stopped. It asks
// only lists that have changed: most of a large fabric are idle in any millisecond.
type Inbox struct {
	tables      []listTable
	buffer      []byte
	changed     []uint32      // scratch, of one table
	overwritten []*listCursor // with entries that TakeOverwritten has not noted
	lost        uint64
}

// listTable is the lists of one memory, and what was read of them.
type listTable struct {
	*list.Table
	lists []listCursor
	seen  []uint64 // Next of each list's cursor
	epoch uint64
}

// listCursor is the read position in one list.
type listCursor struct {
	class  list.Class
	id     dta.ListID
	cursor list.Cursor
	noted  uint64 // of cursor.Lost, by TakeOverwritten
}

// NewInbox makes an inbox that begins at the oldest entry left in every list.
func NewInbox(m *translate.Memory) (*Inbox, error) {
	in := &Inbox{}
	id := dta.ListID(0)
	for _, rings := range m.Lists {
		t := listTable{Table: rings, seen: make([]uint64, rings.Lists())}
		for i := range rings.Lists() {
			var c list.Cursor
			err := region.Guard(func() (err error) { c, err = rings.CursorAtOldest(i); return err })
			if err != nil {
				return nil, fmt.Errorf("core: list %d: %w", id, err)
			}
			class, _ := rings.Class(i) // it has a cursor
			t.lists = append(t.lists, listCursor{class: class, id: id, cursor: c})
			t.seen[i], t.epoch = c.Next, c.Epoch
			id++
		}
		in.tables = append(in.tables, t)
	}
	return in, nil
}

// maxRead is how many entries are read from a list before the next list's turn.
const maxRead = 256

// Poll hands new entries to read, list by list, and returns their number: of each
// list no more than it can hold, so that one that fills faster than it is read does
// not keep the others waiting. read must not keep the data. A memory file that was
// truncated is an error.
func (in *Inbox) Poll(read func(list dta.ListID, data []byte)) (entries int, err error) {
	for i := range in.tables {
		t := &in.tables[i]
		if err := in.findChanged(t); err != nil {
			return entries, err
		}
		for _, l := range in.changed {
			n, err := in.pollList(t, l, read)
			if entries += n; err != nil {
				return entries, fmt.Errorf("core: list %d: %w", t.lists[l].id, err)
			}
		}
	}
	return entries, nil
}

// findChanged sets changed to the lists of a table that have other entries than those
// that were read; after a reset to all of them.
func (in *Inbox) findChanged(t *listTable) error {
	in.changed = in.changed[:0]
	return region.Guard(func() error {
		if epoch := t.Epoch(); epoch != t.epoch {
			for l := range t.Lists() {
				in.changed = append(in.changed, l)
			}
			t.epoch = epoch
			return nil
		}
		in.changed = t.AppendChanged(in.changed, t.seen)
		return nil
	})
}

// pollList is Poll for one list.
func (in *Inbox) pollList(t *listTable, l uint32, read func(list dta.ListID, data []byte)) (entries int, err error) {
	c := &t.lists[l]
	lost := c.cursor.Lost
	for entries < c.class.Capacity {
		err = region.Guard(func() (err error) {
			in.buffer, err = t.Read(in.buffer[:0], &c.cursor, maxRead)
			return err
		})
		if err != nil {
			break
		}
		n := 0
		for data := range c.class.Entries(in.buffer) {
			read(c.id, data)
			n++
		}
		if entries += n; n < maxRead {
			break
		}
	}
	t.seen[l] = c.cursor.Next
	if c.cursor.Lost > lost {
		if c.noted == lost {
			in.overwritten = append(in.overwritten, c)
		}
		in.lost += c.cursor.Lost - lost
	}
	return entries, err
}

// TakeOverwritten hands every list whose entries were overwritten unread since the
// last call to note.
func (in *Inbox) TakeOverwritten(note func(list dta.ListID, entries uint64)) {
	for _, c := range in.overwritten {
		n := c.cursor.Lost - c.noted
		c.noted = c.cursor.Lost
		note(c.id, n)
	}
	in.overwritten = in.overwritten[:0]
}

// Lost returns how many entries were overwritten before they were read.
func (in *Inbox) Lost() uint64 { return in.lost }

package core

import (
	"fmt"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Inbox reads the lists of a collector's memory, each from where it stopped.
type Inbox struct {
	cursors []listCursor
	buffer  []byte
}

// listCursor is the read position in one list.
type listCursor struct {
	table  *list.Table
	class  list.Class
	id     dta.ListID
	cursor list.Cursor
	noted  uint64 // of cursor.Lost, by TakeOverwritten
}

// NewInbox makes an inbox that begins at the oldest entry left in every list.
func NewInbox(m *translate.Memory) (*Inbox, error) {
	in := &Inbox{}
	id := dta.ListID(0)
	for _, t := range m.Lists {
		for i := range t.Lists() {
			var c list.Cursor
			err := region.Guard(func() (err error) { c, err = t.CursorAtOldest(i); return err })
			if err != nil {
				return nil, fmt.Errorf("core: list %d: %w", id, err)
			}
			class, _ := t.Class(i) // it has a cursor
			in.cursors = append(in.cursors, listCursor{table: t, class: class, id: id, cursor: c})
			id++
		}
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
	for i := range in.cursors {
		c := &in.cursors[i]
		for left := c.class.Capacity; left > 0; {
			if err = in.readList(c); err != nil {
				return entries, fmt.Errorf("core: list %d: %w", c.id, err)
			}
			n := 0
			for data := range c.class.Entries(in.buffer) {
				read(c.id, data)
				n++
			}
			entries += n
			if left -= n; n < maxRead {
				break
			}
		}
	}
	return entries, nil
}

// readList copies the next entries of a list to the buffer.
func (in *Inbox) readList(c *listCursor) error {
	return region.Guard(func() (err error) {
		in.buffer, err = c.table.Read(in.buffer[:0], &c.cursor, maxRead)
		return err
	})
}

// TakeOverwritten hands every list whose entries were overwritten unread since the
// last call to note.
func (in *Inbox) TakeOverwritten(note func(list dta.ListID, entries uint64)) {
	for i := range in.cursors {
		c := &in.cursors[i]
		if n := c.cursor.Lost - c.noted; n > 0 {
			c.noted = c.cursor.Lost
			note(c.id, n)
		}
	}
}

// Lost returns how many entries were overwritten before they were read.
func (in *Inbox) Lost() (n uint64) {
	for i := range in.cursors {
		n += in.cursors[i].cursor.Lost
	}
	return n
}

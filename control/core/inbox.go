package core

import (
	"fmt"

	"github.com/weft-telemetry/weft/collect/list"
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
}

// NewInbox makes an inbox that begins at the oldest entry left in every list.
func NewInbox(m *translate.Memory) (*Inbox, error) {
	in := &Inbox{}
	id := dta.ListID(0)
	for _, t := range m.Lists {
		for i := range t.Lists() {
			c, err := t.CursorAtOldest(i)
			if err != nil {
				return nil, fmt.Errorf("core: list %d: %w", id, err)
			}
			class, _ := t.Class(i) // it has a cursor
			in.cursors = append(in.cursors, listCursor{t, class, id, c})
			id++
		}
	}
	return in, nil
}

// maxRead is how many entries are read from a list before the next list's turn.
const maxRead = 256

// Poll hands new entries to read, list by list, and returns their number. read
// must not keep the data.
func (in *Inbox) Poll(read func(list dta.ListID, data []byte)) (entries int, err error) {
	for i := range in.cursors {
		c := &in.cursors[i]
		for {
			in.buffer, err = c.table.Read(in.buffer[:0], &c.cursor, maxRead)
			if err != nil {
				return entries, fmt.Errorf("core: list %d: %w", c.id, err)
			}
			n := 0
			for data := range c.class.Entries(in.buffer) {
				read(c.id, data)
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

// Lost returns how many entries were overwritten before they were read.
func (in *Inbox) Lost() (n uint64) {
	for i := range in.cursors {
		n += in.cursors[i].cursor.Lost
	}
	return n
}

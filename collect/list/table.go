package list

import (
	"github.com/weft-telemetry/weft/collect/region"
)

// Table is a region with lists in it. One goroutine at a time writes a list;
// readers need no leave.
type Table struct {
	*Scheme
	mem   *region.Region
	words []uint64
}

// Open makes lists in memory, or opens those in the file at path, with their
// heads where they were.
func Open(path string, cfg Config) (*Table, error) {
	s, err := NewScheme(cfg)
	if err != nil {
		return nil, err
	}
	mem, err := region.Make(path, Kind, cfg)
	if err != nil {
		return nil, err
	}
	return &Table{s, mem, mem.Words()}, nil
}

// View opens the lists in a region, whose header holds their geometry.
func View(mem *region.Region) (*Table, error) {
	cfg, err := region.Shape[Config](mem, Kind)
	if err != nil {
		return nil, err
	}
	s, err := NewScheme(cfg)
	if err != nil {
		return nil, err
	}
	return &Table{s, mem, mem.Words()}, nil
}

// Region is the memory of the lists.
func (t *Table) Region() *region.Region { return t.mem }

// head is the word that counts a list's entries.
func (t *Table) head(list uint32) *uint64 {
	if t.cfg.Layout == Prototype {
		return t.mem.Head()
	}
	return &t.words[list]
}

// Head is how many entries were ever written to a list.
func (t *Table) Head(list uint32) (uint64, error) {
	if list >= t.lists {
		return 0, ErrList
	}
	return region.Load(t.head(list)), nil
}

// Writer writes lists. Each goroutine has one of its own, and no list is
// written by two at a time.
type Writer struct {
	t    *Table
	cell region.Cell
}

// Writer returns writer i, 0 to region.Writers-1.
func (t *Table) Writer(i int) *Writer { return &Writer{t: t, cell: t.mem.Cell(i)} }

// Append writes whole entries, as AppendEntry made them, at the head of a
// list, and allocates nothing. Entries become readable in batches, each when
// all of it is there.
func (w *Writer) Append(list uint32, entries []byte) error {
	t := w.t
	k, base, err := t.class(list)
	if err != nil {
		return err
	}
	n := k.entries(len(entries))
	if n < 0 {
		return ErrBatch
	}
	word := t.head(list)
	head := region.Load(word)
	at := k.at(head)
	off := uint64(base + at)
	if len(entries) <= k.batch && at+int64(len(entries)) <= k.end && (off|uint64(len(entries)))%8 == 0 {
		// The usual batch: it does not meet the end of the ring.
		region.Copy(t.words[off/8:][:len(entries)/8], entries)
		region.Publish(word, head+uint64(n))
		w.cell.Wrote(n)
		return nil
	}
	for len(entries) > 0 {
		batch := entries[:min(len(entries), k.batch)]
		spans, parts, err := t.Spans(list, head, batch)
		if err != nil {
			return err
		}
		for _, s := range spans[:parts] {
			if err := t.mem.Write(s.Offset, s.Bytes); err != nil {
				panic("list: a ring is outside of its region")
			}
		}
		n := k.entries(len(batch))
		head += uint64(n)
		region.Publish(word, head)
		w.cell.Wrote(n)
		entries = entries[len(batch):]
	}
	return nil
}

package list

import (
	"unsafe"

	"github.com/weft-telemetry/weft/collect/region"
)

// Table is a region with lists in it. One goroutine at a time writes a list;
// readers need no lock.
type Table struct {
	*Scheme
	mem   *region.Region
	words []uint64
	heads []uint64 // number of entries of each list
}

// Open makes lists in memory, or opens those in the file at path, with their
// heads unchanged.
func Open(path string, cfg Config) (*Table, error) {
	s, err := NewScheme(cfg)
	if err != nil {
		return nil, err
	}
	mem, err := region.OpenStructure(path, Kind, cfg)
	if err != nil {
		return nil, err
	}
	return newTable(s, mem), nil
}

// View opens the lists in a region, whose header holds their geometry.
func View(mem *region.Region) (*Table, error) {
	cfg, err := region.GeometryOf[Config](mem, Kind)
	if err != nil {
		return nil, err
	}
	s, err := NewScheme(cfg)
	if err != nil {
		return nil, err
	}
	return newTable(s, mem), nil
}

func newTable(s *Scheme, mem *region.Region) *Table {
	t := &Table{Scheme: s, mem: mem, words: mem.Words()}
	if t.heads = t.words[:s.lists]; s.cfg.Layout == Prototype {
		t.heads = unsafe.Slice(mem.HeadWord(), 1)
	}
	return t
}

// Region is the memory of the lists.
func (t *Table) Region() *region.Region { return t.mem }

// Head returns the number of entries ever written to a list.
func (t *Table) Head(list uint32) (uint64, error) {
	if list >= t.lists {
		return 0, ErrList
	}
	return region.Load(&t.heads[list]), nil
}

// Writer writes lists. Each goroutine needs a separate one, and a list has one
// writer at a time.
type Writer struct {
	t    *Table
	cell region.WriterCounters

	// The list that was written last: usually it is the next one too.
	list  uint32
	class *ringGeometry
	base  int64 // of the ring
	head  *uint64
	ring  []uint64
}

// Writer returns writer i, 0 to region.Writers-1.
func (t *Table) Writer(i int) *Writer {
	return &Writer{t: t, cell: t.mem.WriterCounters(i), list: noList}
}

const noList = MaxLists

// selectList makes list the current one.
func (w *Writer) selectList(list uint32) error {
	k, base, err := w.t.ringOf(list)
	if err != nil {
		return err
	}
	w.base = base
	w.list, w.class, w.head, w.ring = list, k, &w.t.heads[list], w.t.words[base/8:(base+k.size)/8]
	return nil
}

// prefetchDistance is how many bytes ahead of a list's head are prefetched when
// batch follows batch: as much as arrives in the time of a cache line fill.
const prefetchDistance = 2048

// Append writes whole entries, as AppendEntry made them, at the head of a
// list, and allocates nothing. Entries become readable in batches, each when it
// is complete.
func (w *Writer) Append(list uint32, entries []byte) error {
	again := list == w.list
	if !again {
		if err := w.selectList(list); err != nil {
			return err
		}
	}
	k := w.class
	n := k.entryCount(len(entries))
	if n < 0 {
		return ErrBatch
	}
	head := region.Load(w.head)
	at := uint64(k.offsetOf(head))
	switch {
	case k.sparse:
		w.appendSparse(head, entries)
		return nil
	case len(entries) > k.batch || int64(at)+int64(len(entries)) > k.end:
		return w.appendParts(list, head, entries)
	case len(entries) == 64 && at%8 == 0: // a batch of 16 entries of 4 bytes
		next := at
		if again && at+prefetchDistance < uint64(k.end) {
			next += prefetchDistance
		}
		region.StoreLine((*[8]uint64)(w.ring[at/8:]), (*[64]byte)(entries), &w.ring[next/8])
	case !region.PutAligned(w.ring, at, entries):
		return w.appendParts(list, head, entries)
	}
	w.cell.CountWrites(n)
	region.Publish(w.head, head+uint64(n))
	return nil
}

// appendParts is Append for entries that are more than a batch, reach the end of
// the ring, or do not end with half words.
func (w *Writer) appendParts(list uint32, head uint64, entries []byte) error {
	t, k := w.t, w.class
	for len(entries) > 0 {
		batch := entries[:min(len(entries), k.batch)]
		spans, parts, err := t.BatchParts(list, head, batch)
		if err != nil {
			return err
		}
		for _, s := range spans[:parts] {
			if err := t.mem.Write(s.Offset, s.Bytes); err != nil {
				panic("list: a ring is outside of its region")
			}
		}
		n := k.entryCount(len(batch))
		head += uint64(n)
		region.Publish(w.head, head)
		w.cell.CountWrites(n)
		entries = entries[len(batch):]
	}
	return nil
}

// appendSparse is Append for sized entries that are mostly padding: that is not
// written.
func (w *Writer) appendSparse(head uint64, entries []byte) {
	k := w.class
	for len(entries) > 0 {
		n := 0
		for ; len(entries) > 0 && n < w.t.cfg.Batch; entries = entries[k.stride:] {
			at := uint64(w.base + k.offsetOf(head+uint64(n)))
			if err := w.t.mem.Write(at, entries[:k.dataEnd(entries)]); err != nil {
				panic("list: a ring is outside of its region")
			}
			n++
		}
		head += uint64(n)
		w.cell.CountWrites(n)
		region.Publish(w.head, head)
	}
}

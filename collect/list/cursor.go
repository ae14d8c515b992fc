package list

import (
	"encoding/binary"
	"errors"
	"iter"

	"github.com/weft-telemetry/weft/collect/region"
)

// ErrAhead is returned for a cursor that has read more entries than its list
// has: it belongs to another memory.
var ErrAhead = errors.New("list: the cursor is ahead of the list")

// Cursor is the position of a reader. A reader that stores it, for example as
// JSON, can continue from it; lists in a file keep their positions, too.
type Cursor struct {
	List  uint32 `json:"list"`
	Next  uint64 `json:"next"`  // index of the next entry, from the list's first
	Lost  uint64 `json:"lost"`  // entries that were overwritten before they were read
	Epoch uint64 `json:"epoch"` // of the region; a reset empties its lists
}

// CursorAtOldest returns a cursor at the oldest entry that a list still holds.
func (t *Table) CursorAtOldest(list uint32) (Cursor, error) {
	return t.CursorBeforeNewest(list, ^uint64(0))
}

// CursorBeforeNewest returns a cursor before the newest n entries of a list, or fewer.
func (t *Table) CursorBeforeNewest(list uint32, n uint64) (Cursor, error) {
	k, _, err := t.ringOf(list)
	if err != nil {
		return Cursor{}, err
	}
	head := region.Load(&t.heads[list])
	first := t.oldestSafe(k, head)
	if n < head-first {
		first = head - n
	}
	return Cursor{List: list, Next: first, Epoch: t.mem.Epoch()}, nil
}

// oldestSafe is the first entry that cannot be overwritten while the list has
// head entries: a batch may be in flight after it.
func (t *Table) oldestSafe(k *ringGeometry, head uint64) uint64 {
	if kept := uint64(k.Capacity - t.cfg.Batch); head > kept {
		return head - kept
	}
	return 0
}

// AppendChanged appends the lists whose number of entries is not that in seen, by
// list, to dst. Heads are side by side in memory: to ask a thousand idle lists costs
// a microsecond.
func (t *Table) AppendChanged(dst []uint32, seen []uint64) []uint32 {
	for i := range min(len(seen), int(t.lists)) {
		if region.Load(&t.heads[i]) != seen[i] {
			dst = append(dst, uint32(i))
		}
	}
	return dst
}

// Epoch is how often the lists were emptied: what readers have seen of them before is
// no longer there.
func (t *Table) Epoch() uint64 { return t.mem.Epoch() }

// Read appends up to limit entries from the cursor on to dst, in the format of
// the ring, and moves the cursor after them. Class.Entries splits them; what follows
// the data of a sized entry may be anything. Entries
// that were overwritten, even while they were copied, are counted as lost and not
// returned. It allocates nothing if dst has the capacity.
func (t *Table) Read(dst []byte, c *Cursor, limit int) ([]byte, error) {
	k, base, err := t.ringOf(c.List)
	if err != nil {
		return dst, err
	}
	if epoch := t.mem.Epoch(); c.Epoch != epoch {
		c.Epoch, c.Next = epoch, 0
	}
	word := &t.heads[c.List]
	head := region.Load(word)
	if c.Next > head {
		return dst, ErrAhead
	}
	c.skipTo(t.oldestSafe(k, head))
	stride := uint64(k.stride)
	n := min(head-c.Next, uint64(max(0, limit)))
	start := len(dst)
	for first := c.Next; n > 0; {
		at := first % uint64(k.Capacity)
		run := min(n, uint64(k.Capacity)-at)
		from := len(dst)
		dst = grow(dst, int(run*stride))
		t.readRun(k, uint64(base)+at*stride, dst[from:])
		first += run
		n -= run
	}
	// Entries written since then may have overwritten what was copied.
	next := c.Next + uint64(len(dst)-start)/stride
	if torn := t.oldestSafe(k, region.Load(word)); torn > c.Next {
		cut := min(torn, next) - c.Next
		dst = append(dst[:start], dst[start+int(cut*stride):]...)
		c.skipTo(min(torn, next))
	}
	c.Next = next
	return dst, nil
}

// readRun copies entries that are side by side within a ring; of sized ones the
// padding may be left out.
func (t *Table) readRun(k *ringGeometry, off uint64, dst []byte) {
	if !k.sparse {
		_ = t.mem.Read(off, dst) // within the ring
		return
	}
	for ; len(dst) > 0; off, dst = off+uint64(k.stride), dst[k.stride:] {
		_ = t.mem.Read(off, dst[:sizeLen])
		_ = t.mem.Read(off+sizeLen, dst[sizeLen:k.dataEnd(dst)])
	}
}

// skipTo moves the cursor forward to an entry and counts those it skips as lost.
func (c *Cursor) skipTo(to uint64) {
	if to > c.Next {
		c.Lost += to - c.Next
		c.Next = to
	}
}

// grow extends b by n bytes of any content.
func grow(b []byte, n int) []byte {
	if len(b)+n <= cap(b) {
		return b[:len(b)+n]
	}
	return append(b, make([]byte, n)...)
}

// Entries yields the data of entries that Read returned.
func (c Class) Entries(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for stride := c.stride(); len(raw) >= stride; raw = raw[stride:] {
			data := raw[:stride:stride]
			if c.Sized {
				n := min(int(binary.LittleEndian.Uint16(data)), c.Entry)
				data = data[sizeLen : sizeLen+n : sizeLen+n]
			}
			if !yield(data) {
				return
			}
		}
	}
}

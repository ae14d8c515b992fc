package list

import (
	"encoding/binary"
	"errors"
	"iter"

	"github.com/weft-telemetry/weft/collect/region"
)

// ErrAhead is returned for a cursor that has read more entries than its list
// has: it is of another memory.
var ErrAhead = errors.New("list: the cursor is ahead of the list")

// Cursor is how far a reader got. A reader that keeps it, as JSON say, goes on
// where it was; in a file the list does not go back either.
type Cursor struct {
	List  uint32 `json:"list"`
	Next  uint64 `json:"next"`  // the entry to read next, counted from the list's first
	Lost  uint64 `json:"lost"`  // entries that were overwritten before they were read
	Epoch uint64 `json:"epoch"` // of the region; a reset begins a list anew
}

// CursorAtOldest returns a cursor at the oldest entry of a list that is left.
func (t *Table) CursorAtOldest(list uint32) (Cursor, error) { return t.CursorBeforeNewest(list, ^uint64(0)) }

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
	return Cursor{List: list, Next: first, Epoch: t.mem.Counts().Epoch}, nil
}

// oldestSafe is the first entry that cannot be overwritten while the head stands
// at head: a batch may be on its way behind it.
func (t *Table) oldestSafe(k *ringGeometry, head uint64) uint64 {
	if kept := uint64(k.Capacity - t.cfg.Batch); head > kept {
		return head - kept
	}
	return 0
}

// Read appends up to limit entries from the cursor on to dst, as they lie in
// the ring, and moves the cursor behind them. Class.Entries takes them apart.
// Entries that were overwritten, even while they were copied, are counted as
// lost and not returned. It allocates nothing if dst has room.
func (t *Table) Read(dst []byte, c *Cursor, limit int) ([]byte, error) {
	k, base, err := t.ringOf(c.List)
	if err != nil {
		return dst, err
	}
	if epoch := t.mem.Counts().Epoch; c.Epoch != epoch {
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
		_ = t.mem.Read(uint64(base)+at*stride, dst[from:]) // within the ring
		first += run
		n -= run
	}
	// What was written since may be in what was copied.
	next := c.Next + uint64(len(dst)-start)/stride
	if torn := t.oldestSafe(k, region.Load(word)); torn > c.Next {
		cut := min(torn, next) - c.Next
		dst = append(dst[:start], dst[start+int(cut*stride):]...)
		c.skipTo(min(torn, next))
	}
	c.Next = next
	return dst, nil
}

// skipTo moves the cursor to an entry, if that is ahead of it.
func (c *Cursor) skipTo(to uint64) {
	if to > c.Next {
		c.Lost += to - c.Next
		c.Next = to
	}
}

// grow lengthens b by n bytes, whatever they are.
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

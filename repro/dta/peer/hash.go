package peer

import "math/bits"

// Hash keeps the newest value of each key in a table that is probed in order.
type Hash struct {
	entries []entry
	mask    uint64
	len     int
}

// NewHash returns a table that is at most half full with the given number of keys.
func NewHash(keys int) *Hash {
	n := uint64(1) << bits.Len(uint(2*keys-1))
	return &Hash{entries: make([]entry, n), mask: n - 1}
}

// Len returns the number of keys.
func (h *Hash) Len() int { return h.len }

// Reset empties the table.
func (h *Hash) Reset() {
	clear(h.entries)
	h.len = 0
}

// Put stores a value. It reports whether it fits.
func (h *Hash) Put(k *Key, value uint32) bool {
	_, ok := h.swap(k, value)
	return ok
}

// swap stores a value and returns the one before, 0 where there was none.
func (h *Hash) swap(k *Key, value uint32) (before uint32, ok bool) {
	e := h.find(k)
	if e == nil {
		return 0, false
	}
	if !e.used {
		e.used, e.key = true, *k
		h.len++
	}
	before, e.value = e.value, value
	return before, true
}

// Get returns the newest value of a key.
func (h *Hash) Get(k *Key) (uint32, bool) {
	if e := h.find(k); e != nil && e.used {
		return e.value, true
	}
	return 0, false
}

// find returns the key's entry, or the free one for it, or nil.
func (h *Hash) find(k *Key) *entry {
	first, _ := k.hash(h.mask)
	for i := range h.mask + 1 {
		if e := &h.entries[(first+i)&h.mask]; !e.used || e.key == *k {
			return e
		}
	}
	return nil
}

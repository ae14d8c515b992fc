package slothash

import "encoding/binary"

// PackedKeys is keys of one length in packed reports: the first at the start of
// Rows, each Stride bytes after the previous one.
type PackedKeys struct {
	Rows        []byte
	Len, Stride int
}

// Grid is the memory that keys are spread over: Slots slots of Words words. The
// copies of a key may share a slot, or a word of it, unless they are Distinct.
type Grid struct {
	Slots    uint64
	Words    uint64
	Distinct bool // each copy of a key in a different one of four words: see Hash.Cell
}

// CellGrid is the Grid of Hash.Cell.
func CellGrid(cells uint64) Grid {
	return Grid{Slots: cells / MaxCopies, Words: MaxCopies, Distinct: true}
}

// wordOf returns the word index of copy n.
func (g Grid) wordOf(h Hash, n int, low uint64) uint64 {
	return h.Slot(n, g.Slots)*g.Words + (h.slots+uint64(n))&low
}

// BatchLen is the maximum number of keys of a SlotBatch: more than the cache
// misses that a CPU can have in flight. With 8 keys the rate of Key-Increment was
// 0.56 of the memory's, with 16 0.69, with 32 0.77, with 64 0.78 (weft bench
// dta).
const BatchLen = 64

// SlotBatch holds the slots of several keys, found before the first is used, so
// that all of them can be prefetched.
type SlotBatch struct {
	Checksums [BatchLen]Checksum
	Words     [BatchLen * MaxCopies]uint64 // word indices: the first copies of all keys, then the second ones
}

// FindSlots finds the slots of all copies of the first n keys.
func (g *SlotBatch) FindSlots(keys PackedKeys, n, copies int, seed uint64, grid Grid) {
	sums, first, more := g.Checksums[:n], g.Words[:n], g.Words[n:n*copies]
	low := uint64(0)
	if grid.Distinct {
		low = MaxCopies - 1
	}
	if keys.Len < 8 || keys.Len > 16 {
		for i := range sums {
			h := hashAny(keys.Rows[i*keys.Stride:][:keys.Len], seed)
			sums[i], first[i] = h.Checksum(), grid.wordOf(h, 0, low)
			for c, at := 1, i; at < len(more); c, at = c+1, at+n {
				more[at] = grid.wordOf(h, c, low)
			}
		}
		return
	}
	// The common case. It makes no call, and its slices need no bounds checks:
	// half the instructions of the loop above.
	rows, row, last, start := keys.Rows, 0, keys.Len-8, StartState(keys.Len, seed)
	for i := range sums {
		a := binary.LittleEndian.Uint64(rows[row : row+8 : row+8])
		b := binary.LittleEndian.Uint64(rows[row+last : row+last+8 : row+last+8])
		row += keys.Stride
		h := HashWords(a, b, start)
		sums[i], first[i] = h.Checksum(), h.slot0(grid.Slots)*grid.Words+h.slots&low
		for c, at := 1, i; at < len(more); c, at = c+1, at+n {
			more[at] = grid.wordOf(h, c, low)
		}
	}
}

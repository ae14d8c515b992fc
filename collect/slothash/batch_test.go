package slothash

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSlotBatchEqualsKeys compares the slots of a batch with those of its keys
// one by one.
func TestSlotBatchEqualsKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := PackedKeys{Len: rapid.IntRange(1, 40).Draw(t, "key length")}
		keys.Stride = keys.Len + rapid.IntRange(0, 20).Draw(t, "between")
		n := rapid.IntRange(0, BatchLen).Draw(t, "keys")
		copies := rapid.IntRange(1, MaxCopies).Draw(t, "copies")
		seed := rapid.Uint64().Draw(t, "seed")
		if n > 0 { // the last key ends the rows
			size := (n-1)*keys.Stride + keys.Len
			keys.Rows = rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "rows")
		}
		slots, words := rapid.Uint64Range(1, 1<<40).Draw(t, "slots"), rapid.Uint64Range(1, 8).Draw(t, "words")
		cells := rapid.Uint64Range(1, 1<<38).Draw(t, "rows of cells") * MaxCopies
		var inSlots, inCells SlotBatch
		inSlots.FindSlots(keys, n, copies, seed, Grid{Slots: slots, Words: words})
		inCells.FindSlots(keys, n, copies, seed, CellGrid(cells))
		for i := range n {
			h := HashKey(keys.Rows[i*keys.Stride:][:keys.Len], seed)
			if inSlots.Checksums[i] != h.Checksum() || inCells.Checksums[i] != h.Checksum() {
				t.Fatalf("key %d: sums %x and %x; want %x", i, inSlots.Checksums[i], inCells.Checksums[i], h.Checksum())
			}
			for c := range copies {
				if got, want := inSlots.Words[c*n+i], h.Slot(c, slots)*words; got != want {
					t.Fatalf("key %d, copy %d: word %d; want %d", i, c, got, want)
				}
				if got, want := inCells.Words[c*n+i], h.Cell(c, cells); got != want {
					t.Fatalf("key %d, copy %d: cell %d; want %d", i, c, got, want)
				}
			}
		}
	})
}

package keywrite

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/slothash"
)

// WriteRun is Write for a run of reports of one format, back to back as in a
// datagram of packed reports: head bytes to skip, a key of keyLen bytes, a value.
// It returns the number written: all, or none if there is an error.
//
// A run with keys of 8 to 16 bytes and values of 4 is written at nearly the
// speed of the memory (weft bench dta): the loop makes no call and stores
// nothing but the slots. Any other store would wait in the CPU's store buffer
// after those that miss the cache, and leave space for fewer of them.
func (w *Writer) WriteRun(reports []byte, head, keyLen, copies int) (int, error) {
	t := w.t
	size := head + keyLen + t.cfg.Value
	switch {
	case head < 0 || t.rule.CheckKeyLen(keyLen) != nil:
		return 0, ErrKeyLen
	case len(reports)%size != 0:
		return 0, ErrValueLen
	case copies < 1 || copies > slothash.MaxCopies:
		return 0, ErrCopies
	}
	n := len(reports) / size
	switch {
	case t.oneWord && keyLen >= 8 && keyLen <= 16:
		t.writeWords(reports, head, keyLen, copies)
	case t.rule.Prototype:
		for ; len(reports) > 0; reports = reports[size:] {
			if err := w.Write(reports[head:head+keyLen], reports[head+keyLen:size], copies); err != nil {
				return 0, err
			}
		}
		return n, nil
	default:
		t.writeSlots(reports, head, keyLen, copies)
	}
	w.cell.CountWrites(n * copies)
	return n, nil
}

// writeWords is the loop of WriteRun for slots of one word.
func (t *Table) writeWords(reports []byte, head, keyLen, copies int) {
	size := head + keyLen + 4
	slots, n, start, mask := t.slots, t.cfg.Slots, slothash.StartState(keyLen, t.cfg.Seed), t.mask
	for ; len(reports) >= size; reports = reports[size:] {
		key := reports[head : head+keyLen+4]
		a, b := binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[keyLen-8:])
		top := uint64(binary.LittleEndian.Uint32(key[keyLen:])) << 32
		h := slothash.HashWords(a, b, start)
		word := top | h.Checksum().AddWord(top).Bits(mask)
		region.Store(&slots[h.Slot(0, n)], word)
		if copies > 1 {
			region.Store(&slots[h.Slot(1, n)], word)
		}
		for c := 2; c < copies; c++ {
			region.Store(&slots[h.Slot(c, n)], word)
		}
	}
}

// writeSlots is the loop of WriteRun for Weft's slots of any size: it prefetches
// the slots of a batch before it writes the first.
func (t *Table) writeSlots(reports []byte, head, keyLen, copies int) {
	size, grid := head+keyLen+t.cfg.Value, slothash.Grid{Slots: t.cfg.Slots, Words: t.words}
	var g slothash.SlotBatch
	for len(reports) > 0 {
		n := min(len(reports)/size, slothash.BatchLen)
		g.FindSlots(slothash.PackedKeys{Rows: reports[head:], Len: keyLen, Stride: size}, n, copies, t.cfg.Seed, grid)
		at := g.Words[:n*copies]
		region.Prefetch(t.slots, at)
		for i, sum := range g.Checksums[:n] {
			value := reports[head+keyLen : size]
			reports = reports[size:]
			first := t.sealedFirstWord(sum, value)
			for c := i; c < len(at); c += n {
				slot := t.slots[at[c] : at[c]+t.words]
				for j := 1; j < len(slot); j++ {
					region.Store(&slot[j], t.word(value, j))
				}
				region.Store(&slot[0], first)
			}
		}
	}
}

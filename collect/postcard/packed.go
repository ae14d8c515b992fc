package postcard

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/slothash"
)

// AppendRow appends a path to a run for WriteRun: the key, then a value for
// each hop of a chunk, little-endian, Blank where one is missing.
func (s *Scheme) AppendRow(rows, key []byte, hops []uint32) ([]byte, error) {
	if len(hops) > s.cfg.Hops {
		return rows, ErrHops
	}
	rows = append(rows, key...)
	for _, v := range hops {
		rows = binary.LittleEndian.AppendUint32(rows, v)
	}
	for range s.cfg.Hops - len(hops) {
		rows = binary.LittleEndian.AppendUint32(rows, Blank)
	}
	return rows, nil
}

// WriteRun is Write for a run of paths with keys of keyLen bytes, as AppendRow
// made them. It returns the number written: all, or none if there is an error.
//
// Sealed chunks of 5 hops are written several times as fast as one by one (weft
// bench dta): it prefetches the chunks of a batch before it encodes the first.
func (w *Writer) WriteRun(rows []byte, keyLen, copies int) (int, error) {
	t := w.t
	size := keyLen + 4*t.cfg.Hops
	switch {
	case keyLen < 1 || t.proto && keyLen != slothash.PrototypeKeyLen:
		return 0, ErrKeyLen
	case len(rows)%size != 0:
		return 0, ErrHops
	case copies < 1 || copies > t.Copies():
		return 0, ErrCopies
	}
	n := len(rows) / size
	if t.sealed && t.cfg.Hops == 5 && t.cfg.Bits == 32 {
		t.writeFiveHops(rows, keyLen, copies)
		w.cell.CountWrites(n * copies)
		return n, nil
	}
	var hops [MaxHops]uint32
	for ; len(rows) > 0; rows = rows[size:] {
		for i := range t.cfg.Hops {
			hops[i] = binary.LittleEndian.Uint32(rows[keyLen+4*i:])
		}
		if err := w.Write(rows[:keyLen], hops[:t.cfg.Hops], copies); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// fiveLen is the length of 5 hops in a row.
const fiveLen = 5 * 4

// writeFiveHops is the loop of WriteRun for the common chunks.
func (t *Table) writeFiveHops(rows []byte, keyLen, copies int) {
	size, grid := keyLen+fiveLen, slothash.Grid{Slots: t.cfg.Chunks, Words: 4}
	var g slothash.SlotBatch
	for len(rows) > 0 {
		n := min(len(rows)/size, slothash.BatchLen)
		g.FindSlots(slothash.PackedKeys{Rows: rows, Len: keyLen, Stride: size}, n, copies, t.cfg.Seed, grid)
		at := g.Words[:n*copies]
		region.Prefetch(t.chunks, at)
		t.storeFiveHops(g.Checksums[:n], at, rows[keyLen:], size)
		rows = rows[n*size:]
	}
}

// storeFiveHops stores the chunks of hops, the first at the start of rows and each
// stride bytes after the previous one. It is encode, unrolled.
func (t *Table) storeFiveHops(sums []slothash.Checksum, at []uint64, rows []byte, stride int) {
	chunks, row := t.chunks, 0
	for i, s := range sums {
		hops := rows[row : row+fiveLen : row+fiveLen]
		row += stride
		w0 := codePair(binary.LittleEndian.Uint64(hops)) ^ uint64(s.AddWord(hopMix0))
		w1 := codePair(binary.LittleEndian.Uint64(hops[8:])) ^ uint64(s.AddWord(hopMix1))
		w2 := uint64(encodeValue(binary.LittleEndian.Uint32(hops[16:])) ^ uint32(s.AddWord(hopMix2)))
		seal := s.AddWordPair(w0, w1).AddWordPair(w2, 0).Bits(1<<32-1) << 32
		for c := i; c < len(at); c += len(sums) {
			region.Store4((*[4]uint64)(chunks[at[c]:at[c]+4]), w0, w1, w2, seal)
		}
	}
}

// codePair is the codes of two values, one in each half.
func codePair(v uint64) uint64 {
	return uint64(encodeValue(uint32(v))) | uint64(encodeValue(uint32(v>>32)))<<32
}

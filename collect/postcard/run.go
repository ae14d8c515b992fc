package postcard

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/collect/place"
	"github.com/weft-telemetry/weft/collect/region"
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
// made them. It returns how many it wrote: all, unless there is an error, and
// then none.
//
// Sealed chunks of 5 hops under keys of 8 to 16 bytes are written several times
// as fast as one by one (weft bench dta): many are made first and then stored
// together. Every other store waits in the processor's queue behind those that
// miss the cache, and makes room for fewer of them.
func (w *Writer) WriteRun(rows []byte, keyLen, copies int) (int, error) {
	t := w.t
	size := keyLen + 4*t.cfg.Hops
	switch {
	case keyLen < 1 || t.proto && keyLen != place.PrototypeKey:
		return 0, ErrKeyLen
	case len(rows)%size != 0:
		return 0, ErrHops
	case copies < 1 || copies > t.Copies():
		return 0, ErrCopies
	}
	n := len(rows) / size
	if t.sealed && t.cfg.Hops == 5 && t.cfg.Bits == 32 && keyLen >= 8 && keyLen <= 16 {
		for size *= burst; len(rows) > 0; rows = rows[min(size, len(rows)):] {
			t.writeFives(rows[:min(size, len(rows))], keyLen, copies)
		}
		w.cell.Wrote(n * copies)
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

// burst is how many chunks are made before they are stored: 128 gave 0.6 of the
// memory's rate, 32 gave 0.5, one by one 0.3.
const burst = 128

// writeFives writes up to burst of the usual chunks. It computes what encode
// does, unrolled.
func (t *Table) writeFives(rows []byte, keyLen, copies int) {
	var hashes [burst]place.Hash
	var made [burst][4]uint64
	size, start := keyLen+20, place.Start(keyLen, t.cfg.Seed)
	k := 0
	for ; k < burst && len(rows) >= size; k++ {
		row := rows[:size]
		h := place.OfWords(binary.LittleEndian.Uint64(row), binary.LittleEndian.Uint64(row[keyLen-8:]), start)
		hops := row[keyLen : keyLen+20]
		w0 := codePair(binary.LittleEndian.Uint64(hops)) ^ mask(h, 0)
		w1 := codePair(binary.LittleEndian.Uint64(hops[8:])) ^ mask(h, 1)
		w2 := uint64(code(binary.LittleEndian.Uint32(hops[16:])) ^ uint32(mask(h, 2)))
		seal := h.Sum().AddPair(w0, w1).AddPair(w2, 0).Bits(1<<32 - 1)
		hashes[k] = h
		made[k] = [4]uint64{w0, w1, w2, seal << 32}
		rows = rows[size:]
	}
	chunks, n := t.chunks, t.cfg.Chunks
	for i := range k {
		for c := range copies {
			at := hashes[i].Slot(c, n) * 4
			region.Store4((*[4]uint64)(chunks[at:at+4]), &made[i])
		}
	}
}

// codePair is the codes of two values, one in each half.
func codePair(v uint64) uint64 { return uint64(code(uint32(v))) | uint64(code(uint32(v>>32)))<<32 }

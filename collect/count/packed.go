package count

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/slothash"
)

// deltaLen is the length of a report's delta.
const deltaLen = 8

// AddRun is Add for a run of reports of one format, back to back as in a datagram
// of packed reports: head bytes to skip, a key of keyLen bytes, a delta of 8 bytes
// in network byte order. It returns the number added: all, or none if there is an
// error.
//
// It is several times as fast as Add: it prefetches the cells of a batch before
// it adds to the first.
func (w *Writer) AddRun(reports []byte, head, keyLen, copies int) (int, error) {
	t := w.t
	size := head + keyLen + deltaLen
	switch {
	case head < 0 || t.rule.CheckKeyLen(keyLen) != nil || len(reports)%size != 0:
		return 0, ErrKeyLen
	case copies < 1 || copies > slothash.MaxCopies:
		return 0, ErrCopies
	}
	all := len(reports) / size
	if t.rule.Prototype {
		for ; len(reports) > 0; reports = reports[size:] {
			if err := w.Add(reports[head:head+keyLen], binary.BigEndian.Uint64(reports[head+keyLen:]), copies); err != nil {
				return 0, err
			}
		}
		return all, nil
	}
	var g slothash.SlotBatch
	grid, total := slothash.CellGrid(t.cfg.Cells), uint64(0)
	for len(reports) > 0 {
		n := min(len(reports)/size, slothash.BatchLen)
		g.FindSlots(slothash.PackedKeys{Rows: reports[head:], Len: keyLen, Stride: size}, n, copies, t.cfg.Seed, grid)
		at := g.Words[:n*copies]
		region.Prefetch(t.cells, at)
		total += t.addDeltas(at, reports[head+keyLen:], size, n)
		reports = reports[n*size:]
	}
	w.cell.CountAdded(all*copies, total*uint64(copies))
	return all, nil
}

// addDeltas adds n deltas, the first at the start of rows and each stride bytes
// after the previous one, to their cells, and returns their sum.
func (t *Table) addDeltas(at []uint64, rows []byte, stride, n int) (total uint64) {
	cells, row := t.cells, 0
	for i := range n {
		delta := binary.BigEndian.Uint64(rows[row : row+deltaLen : row+deltaLen])
		row += stride
		total += delta
		for c := i; c < len(at); c += n {
			cell := &cells[at[c]]
			region.Store(cell, *cell+delta)
		}
	}
	return total
}

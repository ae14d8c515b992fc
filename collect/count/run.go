package count

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/collect/place"
	"github.com/weft-telemetry/weft/collect/region"
)

// deltaLen is the length of a report's delta.
const deltaLen = 8

// ahead is how many cells AddRun brings into the cache before it adds: more
// than the misses a processor can have under way at once.
const ahead = 128

// AddRun is Add for a run of reports of one shape, back to back: head bytes to
// skip, a key of keyLen bytes, a delta of 8 in network order. So they lie in a
// datagram of packed reports. It returns how many it added: all, unless there
// is an error, and then none.
func (w *Writer) AddRun(reports []byte, head, keyLen, copies int) (int, error) {
	t := w.t
	size := head + keyLen + deltaLen
	switch {
	case head < 0 || keyLen < 1 || t.proto && keyLen != place.PrototypeKey:
		return 0, ErrKeyLen
	case len(reports)%size != 0:
		return 0, ErrKeyLen
	case copies < 1 || copies > place.MaxCopies:
		return 0, ErrCopies
	}
	n := len(reports) / size
	var cells [ahead]uint64
	for len(reports) > 0 {
		part := reports[:min(len(reports), ahead/copies*size)]
		reports = reports[len(part):]
		used := t.cellsOf(&cells, part, head, keyLen, copies)
		t.touch(cells[:used])
		total := t.addTo(cells[:used], part, size, copies)
		w.cell.Added(used, total*uint64(copies))
	}
	return n, nil
}

// cellsOf fills in the cells of all reports, and returns how many.
func (t *Table) cellsOf(cells *[ahead]uint64, reports []byte, head, keyLen, copies int) int {
	size, used := head+keyLen+deltaLen, 0
	if t.proto || keyLen < 8 || keyLen > 16 {
		for ; len(reports) >= size; reports = reports[size:] {
			p, _ := t.Place(reports[head : head+keyLen]) // the length was judged before
			for c := range copies {
				cells[used%ahead] = t.cell(p, c)
				used++
			}
		}
		return used
	}
	n, start := t.cfg.Cells, place.Start(keyLen, t.cfg.Seed)
	for ; len(reports) >= size; reports = reports[size:] { // the usual case, without a call
		key := reports[head : head+keyLen]
		h := place.OfWords(binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[keyLen-8:]), start)
		for c := range copies {
			cells[used%ahead] = h.Cell(c, n)
			used++
		}
	}
	return used
}

// touch loads each cell and uses none. The loop does nothing else, so that as
// many loads overlap as the processor can have under way.
func (t *Table) touch(cells []uint64) {
	words := t.cells
	for _, at := range cells {
		region.Load(&words[at])
	}
}

// addTo adds the delta of each report to its cells, and returns the sum of the
// deltas.
func (t *Table) addTo(cells []uint64, reports []byte, size, copies int) (total uint64) {
	words := t.cells
	for ; len(reports) >= size && len(cells) >= copies; reports = reports[size:] {
		delta := binary.BigEndian.Uint64(reports[size-deltaLen:])
		total += delta
		for _, i := range cells[:copies] {
			region.Store(&words[i], words[i]+delta)
		}
		cells = cells[copies:]
	}
	return total
}

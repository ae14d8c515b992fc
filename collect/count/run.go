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
const ahead = 64

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
		used, total := 0, uint64(0)
		for r := part; len(r) >= size; r = r[size:] {
			p, _ := t.Place(r[head : head+keyLen]) // the length was judged above
			for c := range copies {
				at := t.cell(p, c)
				cells[used%ahead] = at
				used++
			}
		}
		for _, at := range cells[:used] {
			region.Load(&t.cells[at])
		}
		at := cells[:used]
		for r := part; len(r) >= size; r = r[size:] {
			delta := binary.BigEndian.Uint64(r[size-deltaLen:])
			total += delta
			for _, i := range at[:copies] {
				c := &t.cells[i]
				region.Store(c, *c+delta)
			}
			at = at[copies:]
		}
		w.cell.Added(used, total*uint64(copies))
	}
	return n, nil
}

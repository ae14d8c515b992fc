package keywrite

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/slothash"
)

// Table is a region with the slots of keys in it. Readers and writers share
// it without locks.
type Table struct {
	Scheme
	mem   *region.Region
	slots []uint64
}

// Open makes a table in memory, or opens the one in the file at path.
func Open(path string, cfg Config) (*Table, error) {
	mem, err := region.OpenStructure(path, Kind, cfg)
	if err != nil {
		return nil, err
	}
	return newTable(mem, cfg), nil
}

// View opens the table in a region, whose header holds its geometry.
func View(mem *region.Region) (*Table, error) {
	cfg, err := region.GeometryOf[Config](mem, Kind)
	if err != nil {
		return nil, err
	}
	return newTable(mem, cfg), nil
}

func newTable(mem *region.Region, cfg Config) *Table {
	return &Table{Scheme: newScheme(cfg), mem: mem, slots: mem.Words()}
}

// Region is the memory of the table.
func (t *Table) Region() *region.Region { return t.mem }

// Writer writes into a table. Each goroutine needs a separate one.
type Writer struct {
	t    *Table
	cell region.WriterCounters
}

// Writer returns writer i, 0 to region.Writers-1.
func (t *Table) Writer(i int) *Writer { return &Writer{t: t, cell: t.mem.WriterCounters(i)} }

// Write stores value under key in the first copies slots, and allocates nothing.
func (w *Writer) Write(key, value []byte, copies int) error {
	t := w.t
	// The common case, without a call: see WriteRun.
	if n := len(key); n >= 8 && n <= 16 && t.oneWord && len(value) == 4 && uint(copies-1) < slothash.MaxCopies {
		a, b := binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[n-8:])
		top := uint64(binary.LittleEndian.Uint32(value)) << 32
		h := slothash.HashWords(a, b, slothash.StartState(n, t.cfg.Seed))
		word := top | h.Checksum().AddWord(top).Bits(t.mask)
		for c := range copies {
			region.Store(&t.slots[h.Slot(c, t.cfg.Slots)], word)
		}
		w.cell.CountWrites(copies)
		return nil
	}
	return w.write(key, value, copies)
}

// write is Write for every layout, value and key.
func (w *Writer) write(key, value []byte, copies int) error {
	t := w.t
	if len(value) != t.cfg.Value {
		return ErrValueLen
	}
	if copies < 1 || copies > slothash.MaxCopies {
		return ErrCopies
	}
	p, err := t.HashKey(key)
	if err != nil {
		return err
	}
	first := t.firstWord(p, value)
	for n := range copies {
		at := t.rule.Slot(p, n, t.cfg.Slots) * t.words
		slot := t.slots[at : at+t.words]
		for i := 1; i < len(slot); i++ {
			region.Store(&slot[i], t.word(value, i))
		}
		region.Store(&slot[0], first)
	}
	w.cell.CountWrites(copies)
	return nil
}

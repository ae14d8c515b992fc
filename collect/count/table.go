package count

import (
	"sync/atomic"

	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/slothash"
)

// Scheme maps keys to cells: all that a translator needs to add by RDMA. It holds
// no memory.
type Scheme struct {
	cfg  Config
	rule slothash.Hasher
}

// NewScheme validates the geometry.
func NewScheme(cfg Config) (*Scheme, error) {
	s := newScheme(cfg)
	return &s, cfg.Validate()
}

func newScheme(cfg Config) Scheme {
	return Scheme{cfg, slothash.Hasher{Seed: cfg.Seed, Prototype: cfg.Layout == Prototype}}
}

// Config returns the geometry.
func (s *Scheme) Config() Config { return s.cfg }

// HashKey hashes a key, once for all its cells.
func (s *Scheme) HashKey(key []byte) (slothash.KeyHash, error) { return s.rule.HashKey(key) }

func (s *Scheme) cell(p slothash.KeyHash, n int) uint64 { return s.rule.Cell(p, n, s.cfg.Cells) }

// Offset is the offset of cell n of the key in the memory, in bytes.
func (s *Scheme) Offset(p slothash.KeyHash, n int) uint64 { return s.cell(p, n) * 8 }

// Table is a region with cells in it. Readers and writers share it without
// locks.
type Table struct {
	Scheme
	mem   *region.Region
	cells []uint64
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
	return &Table{newScheme(cfg), mem, mem.Words()}
}

// Region is the memory of the table.
func (t *Table) Region() *region.Region { return t.mem }

// Writer adds to a table.
type Writer struct {
	t    *Table
	cell region.WriterCounters
}

// Writer returns writer i, 0 to region.Writers-1. Each goroutine needs a separate
// one.
func (t *Table) Writer(i int) *Writer { return &Writer{t: t, cell: t.mem.WriterCounters(i)} }

// Add adds delta to copies cells of the key, for a table with a single writer: it
// uses plain loads and stores, which are several times as fast as an atomic
// addition. Give each of several writers a separate table (ReadSum reads them as
// one), or let all of them use AddShared.
//
// A negative delta, in two's complement, subtracts. Reads may then also be too
// low, unless every key's sum stays at or above zero.
func (w *Writer) Add(key []byte, delta uint64, copies int) error {
	p, err := w.hashKey(key, copies)
	if err != nil {
		return err
	}
	for n := range copies {
		c := &w.t.cells[w.t.cell(p, n)]
		region.Store(c, *c+delta)
	}
	w.cell.CountAdded(copies, uint64(copies)*delta)
	return nil
}

// AddShared is Add for a table with several concurrent writers, by AddShared or
// by RDMA.
func (w *Writer) AddShared(key []byte, delta uint64, copies int) error {
	p, err := w.hashKey(key, copies)
	if err != nil {
		return err
	}
	for n := range copies {
		atomic.AddUint64(&w.t.cells[w.t.cell(p, n)], delta)
	}
	w.cell.CountAdded(copies, uint64(copies)*delta)
	return nil
}

func (w *Writer) hashKey(key []byte, copies int) (slothash.KeyHash, error) {
	if copies < 1 || copies > slothash.MaxCopies {
		return slothash.KeyHash{}, ErrCopies
	}
	return w.t.HashKey(key)
}

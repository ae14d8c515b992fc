package postcard

import (
	"github.com/weft-telemetry/weft/collect/region"
)

// Table is a region with the chunks of paths in it. Readers and writers share
// it without locks.
type Table struct {
	Scheme
	mem    *region.Region
	chunks []uint64
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
	return &Table{Scheme: newScheme(cfg), mem: mem, chunks: mem.Words()}
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

// Write stores the hops of the key's path in the first copies chunks, and
// allocates nothing. Hops that are missing or Blank did not report.
func (w *Writer) Write(key []byte, hops []uint32, copies int) error {
	t := w.t
	if len(hops) > t.cfg.Hops {
		return ErrHops
	}
	if copies < 1 || copies > t.Copies() {
		return ErrCopies
	}
	p, err := t.HashKey(key)
	if err != nil {
		return err
	}
	var chunk [maxWords]uint64
	t.encode(&chunk, p, hops)
	for n := range copies {
		at := t.chunk(p, n) * uint64(t.words)
		to := t.chunks[at : at+uint64(t.words)]
		for i := range to {
			region.Store(&to[i], chunk[i])
		}
	}
	w.cell.CountWrites(copies)
	return nil
}

package region

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"
)

// Errors of Open, View and Restore; the text around them names the file.
var (
	ErrForeign  = errors.New("region: not a Weft memory file")
	ErrMismatch = errors.New("region: geometry mismatch")
	ErrDamaged  = errors.New("region: damaged")
	ErrLocked   = errors.New("region: in use by another process")
	ErrBounds   = errors.New("region: out of bounds")
	ErrAlign    = errors.New("region: not aligned to 8 bytes")
)

// Config describes the region to open.
type Config struct {
	Path     string // file of the memory; empty for anonymous memory of this process
	Kind     string // name of the structure
	Geometry any    // its configuration, encoded as JSON into the header
	Size     int64  // bytes of data, a multiple of 8
}

// Region is memory for one structure. Its methods, except Close, may run
// concurrently with writers and readers.
type Region struct {
	head     Header
	file     *os.File // nil when anonymous
	mapping  []byte   // all that was mapped
	mem      []byte   // header page and data
	words    []uint64 // the data
	readOnly bool
}

// Open maps memory for writing. A file that does not exist is created, with
// all its blocks, so that a full disk is an error here and not a fault later;
// an existing file must have the same kind and geometry, and keeps its content.
// One process at a time has a file open for writing.
func Open(cfg Config) (*Region, error) {
	geometry, err := json.Marshal(cfg.Geometry)
	if err != nil {
		return nil, fmt.Errorf("region: geometry of %s: %w", cfg.Kind, err)
	}
	want := Header{Kind: cfg.Kind, Geometry: geometry, Size: cfg.Size}
	if err := want.check(); err != nil {
		return nil, err
	}
	if cfg.Path == "" {
		return mapAnonymous(want)
	}
	r, err := openFile(cfg.Path, want)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", cfg.Path, err)
	}
	return r, nil
}

// View maps a file for reading, also while another process writes it.
func View(path string) (*Region, error) {
	r, err := viewFile(path)
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		return nil, err // which names it
	} else if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return r, nil
}

// newRegion wraps a mapping whose mem starts with a header page.
func newRegion(h Header, mapping, mem []byte) *Region {
	data := mem[HeaderSize : HeaderSize+int(h.Size)]
	return &Region{
		head: h, mapping: mapping, mem: mem[:HeaderSize+int(h.Size)],
		words: unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/8),
	}
}

// Header describes the content of the region.
func (r *Region) Header() Header { return r.head }

// DecodeGeometry reads the geometry of a structure of that kind from the header.
func (r *Region) DecodeGeometry(kind string, geometry any) error {
	if r.head.Kind != kind {
		return fmt.Errorf("%w: it holds %s, want %s", ErrMismatch, r.head.Kind, kind)
	}
	if err := json.Unmarshal(r.head.Geometry, geometry); err != nil {
		return fmt.Errorf("%w: geometry: %w", ErrDamaged, err)
	}
	return nil
}

// Words is the data as words, little-endian in memory. Use Store, Load and
// Publish for concurrent access.
func (r *Region) Words() []uint64 { return r.words }

// Size is the length of the data in bytes.
func (r *Region) Size() int64 { return r.head.Size }

// ReadOnly reports whether the region came from View.
func (r *Region) ReadOnly() bool { return r.readOnly }

// word returns a word of the header page.
func (r *Region) word(at int) *uint64 { return (*uint64)(unsafe.Pointer(&r.mem[at])) }

// HeadWord is a word of the header for use by the structure.
func (r *Region) HeadWord() *uint64 { return r.word(headAt) }

// WriterCounters are the counters of one writer, over the whole life of the
// region. Only that writer changes them.
type WriterCounters struct {
	writes, total *uint64
}

// WriterCounters returns the counters of writer i, 0 to Writers-1.
func (r *Region) WriterCounters(i int) WriterCounters {
	if i < 0 || i >= Writers {
		panic(fmt.Sprintf("region: writer %d, want 0 to %d", i, Writers-1))
	}
	at := cellsAt + i*cellSize
	return WriterCounters{r.word(at), r.word(at + 8)}
}

// CountWrites counts n written slots.
func (c WriterCounters) CountWrites(n int) { Store(c.writes, *c.writes+uint64(n)) }

// CountAdded counts n slots to which total was added together.
func (c WriterCounters) CountAdded(n int, total uint64) {
	Store(c.writes, *c.writes+uint64(n))
	Store(c.total, *c.total+total)
}

// Counts are the counters of all writers since the last reset.
type Counts struct {
	Writes uint64 `json:"writes"` // slots written, each copy one
	Total  uint64 `json:"total"`  // sum of what was added to slots, each copy counted
	Epoch  uint64 `json:"epoch"`  // resets before
}

func (r *Region) sums() (writes, total uint64) {
	for i := range Writers {
		c := r.WriterCounters(i)
		writes += Load(c.writes)
		total += Load(c.total)
	}
	return writes, total
}

// Epoch is how often the region was reset. Unlike Counts it reads no counter.
func (r *Region) Epoch() uint64 { return Load(r.word(epochAt)) }

// Counts sums the writers' counters.
func (r *Region) Counts() Counts {
	writes, total := r.sums()
	return Counts{
		Writes: writes - Load(r.word(writesAt)),
		Total:  total - Load(r.word(totalAt)),
		Epoch:  r.Epoch(),
	}
}

// Reset empties the memory and begins the next epoch. The writers' counters stay:
// only their writers may change them, so the sums at the reset are stored
// instead. A write that runs concurrently may survive Reset or not; it is counted
// in both cases. Callers that need exact periods alternate between two regions.
func (r *Region) Reset() {
	for i := range r.words {
		Store(&r.words[i], 0)
	}
	writes, total := r.sums()
	Store(r.word(writesAt), writes)
	Store(r.word(totalAt), total)
	Store(r.word(epochAt), Load(r.word(epochAt))+1)
}

// FetchAdd adds to the word at byte off and returns its previous value, as RDMA's
// fetch-and-add does.
func (r *Region) FetchAdd(off, delta uint64) (uint64, error) {
	if off%8 != 0 {
		return 0, ErrAlign
	}
	if off/8 >= uint64(len(r.words)) {
		return 0, ErrBounds
	}
	return atomic.AddUint64(&r.words[off/8], delta) - delta, nil
}

// CompareSwap stores swap in the word at byte off if it holds compare, and returns its
// previous value, as RDMA's compare-and-swap does.
func (r *Region) CompareSwap(off, compare, swap uint64) (uint64, error) {
	if off%8 != 0 {
		return 0, ErrAlign
	}
	if off/8 >= uint64(len(r.words)) {
		return 0, ErrBounds
	}
	word := &r.words[off/8]
	for {
		// The word may change between the two, so what is returned is what was compared.
		if was := atomic.LoadUint64(word); was != compare || atomic.CompareAndSwapUint64(word, compare, swap) {
			return was, nil
		}
	}
}

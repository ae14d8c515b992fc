package flows

import (
	"container/list"
	"errors"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// Config bounds what an Assembler keeps.
type Config struct {
	// Timeout is how long after its first chunk a flowset may stay incomplete.
	// The Assembler then emits it as it is.
	Timeout time.Duration
	// MaxOpen is how many flowsets of one source may be incomplete at once. When
	// a switch starts one more, its oldest is emitted.
	MaxOpen int
	// MaxMemory is the memory limit of all open flowsets. When a new flowset
	// exceeds it, the oldest flowset of all is emitted; a flowset that is larger
	// than the limit is refused.
	MaxMemory model.Bytes
}

// DefaultConfig suits slots of 10 ms and a hundred switches with tables for
// 100K flows.
func DefaultConfig() Config {
	return Config{Timeout: 50 * time.Millisecond, MaxOpen: 4, MaxMemory: 2 * model.GiB}
}

func (c Config) check() error {
	switch {
	case c.Timeout <= 0:
		return fmt.Errorf("flows: timeout %v, want more than 0", c.Timeout)
	case c.MaxOpen < 1:
		return fmt.Errorf("flows: max open %d, want at least 1", c.MaxOpen)
	case c.MaxMemory < 1:
		return fmt.Errorf("flows: max memory %v, want more than 0", c.MaxMemory)
	}
	return nil
}

// maxSources bounds the distinct switches, ports and families: more than any
// fabric has, so that forged ones do not exhaust the memory.
const maxSources = 1 << 18

// Errors of AddChunk beside those of wire/flowset.
var (
	ErrConflict = errors.New("flows: chunk contradicts others of its flowset")
	ErrTooLarge = errors.New("flows: flowset larger than the memory allowed")
	ErrGeometry = errors.New("flows: no hash family for this geometry")
	ErrSources  = errors.New("flows: too many sources")
)

// Stats counts chunks and flowsets by their fate.
type Stats struct {
	Chunks    uint64 // accepted
	Malformed uint64 // did not parse: damaged, cut, or not a chunk
	Conflicts uint64 // same flowset, different header
	Refused   uint64 // too large, of unknown geometry, or one source too many
	Repeated  uint64 // held no new unit
	Late      uint64 // belong to a flowset that was already emitted

	Complete uint64 // flowsets emitted whole
	TimedOut uint64 // emitted incomplete after Config.Timeout
	Evicted  uint64 // emitted incomplete to free memory
	Flushed  uint64 // emitted incomplete by Flush
	// Units missing from the flowsets emitted incomplete.
	LostCells, LostFilter uint64
}

// Assembler reassembles flowsets from the chunks of many switches. Chunks may
// arrive in any order, twice, damaged or not at all; a lost one costs its own
// units. It keeps no reference to its input and reads no clock.
type Assembler struct {
	cfg     Config
	sources map[source]*openSets
	byAge   *list.List // open flowsets of all sources, by their first chunks
	used    model.Bytes
	stats   Stats
}

// source identifies one sequence of flowsets.
type source struct {
	sw    model.NodeID
	scope model.PortID
	key   uint8 // length, which determines the family
}

type slotID struct {
	seed uint64
	slot uint32
}

// openSets holds the open flowsets of one source.
type openSets struct {
	open []*pending // oldest first
	// done holds the last flowsets emitted, so that a late chunk does not
	// open one of them again. It is a ring.
	done []slotID
	at   int
}

// pending is a flowset that is not complete yet.
type pending struct {
	*Flowset
	source        source
	cells, filter bitmap
	size          model.Bytes
	deadline      model.Time

	element *list.Element // in Assembler.byAge
}

// NewAssembler returns an empty Assembler.
func NewAssembler(cfg Config) (*Assembler, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Assembler{cfg: cfg, sources: map[source]*openSets{}, byAge: list.New()}, nil
}

// Stats returns the counts so far.
func (a *Assembler) Stats() Stats { return a.stats }

// AddChunk ingests the chunk at the start of b, which arrived at now. It appends
// the flowsets that it completes or evicts to out. An error says why the chunk
// was not used; it is counted, and the Assembler remains usable.
func (a *Assembler) AddChunk(now model.Time, b []byte, out []*Flowset) ([]*Flowset, error) {
	var c flowset.Chunk
	if _, err := c.Parse(b); err != nil {
		a.stats.Malformed++
		return out, err
	}
	src, id := source{c.Switch, c.Scope, c.Layout.Key}, slotID{c.Seed, c.Slot}
	p, out, err := a.openFlowset(now, src, id, &c, out)
	if p == nil {
		return out, err
	}
	a.stats.Chunks++
	var fresh uint32
	if c.Section == flowset.Filter {
		fresh = p.filter.setRange(c.First, uint32(c.Len()))
		p.MissingFilter -= fresh
	} else {
		fresh = p.cells.setRange(c.First, uint32(c.Len()))
		p.MissingCells -= fresh
	}
	if fresh == 0 {
		a.stats.Repeated++
		return out, nil
	}
	if c.Section == flowset.Filter {
		p.body.storeFilter(&c)
	} else {
		p.body.storeCells(&c)
	}
	if p.MissingCells == 0 && p.MissingFilter == 0 {
		a.stats.Complete++
		out = a.emit(p, out)
	}
	return out, nil
}

// openFlowset returns the open flowset of a chunk and opens it if necessary. It
// returns nil if the flowset was already emitted or cannot be opened.
func (a *Assembler) openFlowset(now model.Time, src source, id slotID, c *flowset.Chunk, out []*Flowset) (*pending,
	[]*Flowset, error,
) {
	s := a.sources[src]
	if s == nil && len(a.sources) == maxSources {
		a.stats.Refused++
		return nil, out, fmt.Errorf("switch %d slot %d: %w", c.Switch, c.Slot, ErrSources)
	}
	if s == nil {
		s = &openSets{done: make([]slotID, 0, 2*a.cfg.MaxOpen)}
	}
	for _, p := range s.open {
		if p.Seed == id.seed && p.Slot == id.slot {
			if p.Header != c.Header {
				a.stats.Conflicts++
				return nil, out, fmt.Errorf("switch %d slot %d: %w", c.Switch, c.Slot, ErrConflict)
			}
			return p, out, nil
		}
	}
	for _, d := range s.done {
		if d == id {
			a.stats.Late++
			return nil, out, nil
		}
	}
	size := sizeOf(&c.Header)
	if size > a.cfg.MaxMemory {
		a.stats.Refused++
		return nil, out, fmt.Errorf("switch %d slot %d: %w: %v, at most %v", c.Switch, c.Slot, ErrTooLarge, size,
			a.cfg.MaxMemory)
	}
	fs, err := newFlowset(&c.Header)
	if err != nil {
		a.stats.Refused++
		return nil, out, fmt.Errorf("switch %d slot %d: %w: %w", c.Switch, c.Slot, ErrGeometry, err)
	}
	a.sources[src] = s
	if len(s.open) == a.cfg.MaxOpen {
		a.stats.Evicted++
		out = a.emit(s.open[0], out)
	}
	for a.used+size > a.cfg.MaxMemory {
		a.stats.Evicted++
		out = a.emit(a.oldest(), out)
	}
	p := &pending{
		Flowset: fs, source: src, size: size, deadline: now.Add(a.cfg.Timeout),
		cells: newBitmap(fs.MissingCells), filter: newBitmap(fs.MissingFilter),
	}
	s.open = append(s.open, p)
	p.element = a.byAge.PushBack(p)
	a.used += size
	return p, out, nil
}

// sizeOf estimates the memory that an open flowset takes in total, before a
// byte of it is allocated.
func sizeOf(h *flowset.Header) model.Bytes {
	cell := model.Bytes(16)
	if h.Layout.Key == model.KeyLen6 {
		cell = 40
	}
	cell += 8 + 8 + 4 + 1
	return model.Bytes(h.Units(flowset.Cells))*cell*9/8 + model.Bytes(h.Units(flowset.Filter))*9/8
}

// Expire appends the flowsets that have reached their timeout to out.
func (a *Assembler) Expire(now model.Time, out []*Flowset) []*Flowset {
	for p := a.oldest(); p != nil && p.deadline <= now; p = a.oldest() {
		a.stats.TimedOut++
		out = a.emit(p, out)
	}
	return out
}

// Flush appends all open flowsets to out, the oldest first.
func (a *Assembler) Flush(out []*Flowset) []*Flowset {
	for p := a.oldest(); p != nil; p = a.oldest() {
		a.stats.Flushed++
		out = a.emit(p, out)
	}
	return out
}

// oldest returns the open flowset whose first chunk arrived first, nil if there
// is none.
func (a *Assembler) oldest() *pending {
	if e := a.byAge.Front(); e != nil {
		return e.Value.(*pending)
	}
	return nil
}

// emit closes p and appends it to out.
func (a *Assembler) emit(p *pending, out []*Flowset) []*Flowset {
	a.stats.LostCells += uint64(p.MissingCells)
	a.stats.LostFilter += uint64(p.MissingFilter)
	s := a.sources[p.source]
	for i, q := range s.open {
		if q == p {
			s.open = append(s.open[:i], s.open[i+1:]...)
			break
		}
	}
	id := slotID{p.Seed, p.Slot}
	if len(s.done) < cap(s.done) {
		s.done = append(s.done, id)
	} else {
		s.done[s.at] = id
		s.at = (s.at + 1) % len(s.done)
	}
	a.byAge.Remove(p.element)
	a.used -= p.size
	return append(out, p.Flowset)
}

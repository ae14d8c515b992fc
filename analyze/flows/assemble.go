package flows

import (
	"container/list"
	"errors"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
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
	// MaxMemory is the memory limit of all flowsets that are held. Beyond it, the
	// switch that holds most loses its oldest flowset; a flowset that is larger
	// than the limit is refused.
	MaxMemory model.Bytes
	// MaxCells is how many cells a flowset may have, and an eighth of the bytes of
	// its filter.
	MaxCells uint32
	// HoldEmitted counts emitted flowsets as held until Release.
	HoldEmitted bool
	// Accept returns ErrUnknown for the header of a switch or port that may not send
	// flowsets, and ErrImplausible for one with impossible values. Nil: all may.
	Accept func(h *flowset.Header) error
}

// DefaultConfig suits slots of 10 ms and a hundred switches with tables for
// 100K flows.
func DefaultConfig() Config {
	return Config{Timeout: 50 * time.Millisecond, MaxOpen: 4, MaxMemory: 2 * model.GiB, MaxCells: 1 << 22}
}

func (c Config) check() error {
	switch {
	case c.Timeout <= 0:
		return fmt.Errorf("flows: timeout %v, want more than 0", c.Timeout)
	case c.MaxOpen < 1:
		return fmt.Errorf("flows: max open %d, want at least 1", c.MaxOpen)
	case c.MaxMemory < 1:
		return fmt.Errorf("flows: max memory %v, want more than 0", c.MaxMemory)
	case c.MaxCells < 1:
		return fmt.Errorf("flows: max cells %d, want at least 1", c.MaxCells)
	}
	return nil
}

// Errors of AddChunk beside those of wire/flowset.
var (
	ErrConflict = errors.New("flows: chunk contradicts others of its flowset")
	ErrTooLarge = errors.New("flows: flowset larger than the memory allowed")
	ErrGeometry = errors.New("flows: no hash family for this geometry")
	ErrMemory   = errors.New("flows: this switch holds the most memory, and there is none left")

	ErrUnknown     = errors.New("flows: switch or port is not in the fabric")
	ErrImplausible = errors.New("flows: more packets than the switch can forward in a slot")
)

// Stats counts chunks and flowsets by their fate.
type Stats struct {
	Chunks    uint64 // accepted
	Malformed uint64 // did not parse: damaged, cut, or not a chunk
	Conflicts uint64 // same flowset, different header
	Refused   uint64 // too large, or of unknown geometry
	Unknown   uint64 // of a switch or port that Config.Accept rejects
	NoMemory  uint64 // beyond Config.MaxMemory

	Implausible uint64 // with totals that Config.Accept rejects

	Repeated uint64 // held no new unit
	Late     uint64 // belong to a flowset that was already emitted or dropped

	Complete uint64 // flowsets emitted whole
	TimedOut uint64 // emitted incomplete after Config.Timeout
	Evicted  uint64 // emitted incomplete because its source began Config.MaxOpen others
	Flushed  uint64 // emitted incomplete by Flush
	Sparse   uint64 // not emitted: too little of it arrived
	Dropped  uint64 // dropped, open or emitted, to keep to Config.MaxMemory
	// Units missing from the flowsets emitted incomplete.
	LostCells, LostFilter uint64
}

// Assembler reassembles flowsets from the chunks of many switches. Chunks may
// arrive in any order, twice, damaged or not at all; a lost one costs its own
// units. What it allocates follows the chunks that arrived, not what their headers
// claim. It keeps no reference to its input and reads no clock.
type Assembler struct {
	cfg     Config
	sources sourceTable
	byAge   *list.List // open flowsets of all sources, by their first chunks
	memory  memory
	chunk   flowset.Chunk // the present one
	stats   Stats
}

// NewAssembler returns an empty Assembler.
func NewAssembler(cfg Config) (*Assembler, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Assembler{cfg: cfg, sources: newSourceTable(), byAge: list.New(), memory: newMemory(cfg.MaxMemory)}, nil
}

// Stats returns the counts so far.
func (a *Assembler) Stats() Stats { return a.stats }

// Held returns the memory of the flowsets that are held.
func (a *Assembler) Held() model.Bytes { return a.memory.used }

// AddChunk ingests the chunk at the start of b, which arrived at now. It appends
// the flowsets that it completes or evicts to out. An error says why the chunk
// was not used; it is counted, and the Assembler remains usable.
func (a *Assembler) AddChunk(now model.Time, b []byte, out []*Flowset) ([]*Flowset, error) {
	c := &a.chunk
	if _, err := c.Parse(b); err != nil {
		a.stats.Malformed++
		return out, err
	}
	if a.cfg.Accept != nil {
		if err := a.cfg.Accept(&c.Header); err == ErrUnknown {
			a.stats.Unknown++
			return out, err
		} else if err != nil {
			a.stats.Implausible++
			return out, err
		}
	}
	p, out, err := a.openFlowset(now, c, out)
	if p == nil {
		return out, err
	}
	if p.body == nil && !p.mayFill(c) {
		return out, a.stageChunk(p, c)
	}
	if p.body == nil {
		if err := a.fill(p); err != nil {
			return out, err
		}
	}
	a.stats.Chunks++
	if p.addUnits(c) == 0 {
		a.stats.Repeated++
		return out, nil
	}
	if p.MissingCells == 0 && p.MissingFilter == 0 {
		out = a.emitAs(p, out, &a.stats.Complete)
	}
	return out, nil
}

// openFlowset returns the open flowset of a chunk and opens it if necessary. It
// returns nil if the flowset was already emitted or cannot be opened.
func (a *Assembler) openFlowset(now model.Time, c *flowset.Chunk, out []*Flowset) (*pending, []*Flowset, error) {
	s := a.sources.find(source{c.Switch, c.Scope, c.Layout.Key}, now)
	id := slotID{c.Seed, c.Slot}
	if s != nil {
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
	}
	size := sizeOf(&c.Header)
	if cells := c.Units(flowset.Cells); cells > a.cfg.MaxCells || c.Units(flowset.Filter)/8 > a.cfg.MaxCells || size > a.cfg.MaxMemory {
		a.stats.Refused++
		return nil, out, fmt.Errorf("switch %d slot %d: %w: %d cells, %v; at most %d cells, %v", c.Switch, c.Slot, ErrTooLarge,
			cells, size, a.cfg.MaxCells, a.cfg.MaxMemory)
	}
	if g := sketch.Geometry(c.Geometry); g.Check() != nil {
		a.stats.Refused++
		return nil, out, fmt.Errorf("switch %d slot %d: %w: %w", c.Switch, c.Slot, ErrGeometry, g.Check())
	}
	if !a.reserve(c.Switch, pendingSize, nil) {
		return nil, out, a.refuse(&c.Header)
	}
	if s == nil {
		// A source makes room by the one that has been silent for longest.
		if full := a.sources.longestSilent(); full != nil {
			for len(full.open) > 0 {
				out = a.emitAs(full.open[0], out, &a.stats.Evicted)
			}
			a.sources.forget(full)
		}
		s = a.sources.add(source{c.Switch, c.Scope, c.Layout.Key}, now, 2*a.cfg.MaxOpen)
	}
	if len(s.open) == a.cfg.MaxOpen {
		out = a.emitAs(s.open[0], out, &a.stats.Evicted)
	}
	p := &pending{Flowset: newFlowset(&c.Header), source: s, size: size, deadline: now.Add(a.cfg.Timeout)}
	p.Flowset.open = p
	s.open = append(s.open, p)
	p.element = a.byAge.PushBack(p)
	a.memory.charge(p.Flowset, pendingSize)
	return p, out, nil
}

// refuse counts a chunk that no memory is left for.
func (a *Assembler) refuse(h *flowset.Header) error {
	a.stats.NoMemory++
	return fmt.Errorf("switch %d slot %d: %w", h.Switch, h.Slot, ErrMemory)
}

// Expire appends the flowsets that have reached their timeout to out.
func (a *Assembler) Expire(now model.Time, out []*Flowset) []*Flowset {
	for p := a.oldest(); p != nil && p.deadline <= now; p = a.oldest() {
		out = a.emitAs(p, out, &a.stats.TimedOut)
	}
	a.sources.forgetSilent(now)
	return out
}

// Flush appends all open flowsets to out, the oldest first.
func (a *Assembler) Flush(out []*Flowset) []*Flowset {
	for p := a.oldest(); p != nil; p = a.oldest() {
		out = a.emitAs(p, out, &a.stats.Flushed)
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

// emitAs closes p, counts why, and appends it to out. A flowset of which less
// arrived than its table is allocated for is not emitted: no flow could be decoded,
// and what it lacks is no evidence.
func (a *Assembler) emitAs(p *pending, out []*Flowset, count *uint64) []*Flowset {
	a.close(p)
	if p.body == nil {
		a.stats.Sparse++
		a.Release(p.Flowset)
		return out
	}
	if p.MissingCells > 0 || p.MissingFilter > 0 {
		p.body.markMissing(p.cells, p.filter)
	}
	*count++
	a.stats.LostCells += uint64(p.MissingCells)
	a.stats.LostFilter += uint64(p.MissingFilter)
	if !a.cfg.HoldEmitted {
		a.memory.free(p.Flowset)
	}
	return append(out, p.Flowset)
}

// close ends the assembly of p.
func (a *Assembler) close(p *pending) {
	p.source.close(p)
	a.byAge.Remove(p.element)
	a.memory.recycle(p)
	p.Flowset.open = nil
}

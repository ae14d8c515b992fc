package trace

import (
	"fmt"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// Config says how mirrors are assembled into traces.
type Config struct {
	// CloseAfter is how long after its last mirror a trace is complete. It must
	// be longer than a packet and its mirrors are in flight, and much shorter
	// than the time after which a flow's packet identities repeat.
	CloseAfter time.Duration
	// RouteSettle is how long after a change of the intended routes packets may
	// be anywhere.
	RouteSettle time.Duration
	// OutPorts says that mirrors carry the out port, or that there is none, as
	// Append reports do. Set it to false for ERSPAN, which does not.
	OutPorts  bool
	MaxTraces int // open traces
	// Memory bounds the open traces in bytes, with the growth of their tables. 0: only
	// MaxTraces does.
	Memory     model.Bytes
	MaxHops    int // mirrors kept of one packet
	FrameBytes int // bytes of the frame kept with a trace, that of its first hop

	// Pauses returns how PFC paused the queue of a flow at a port, and false where that is
	// not known or nothing pauses it. Nil: it is not known.
	Pauses func(k *model.FlowKey, at model.Port) (Pauses, bool)
}

// DefaultConfig closes traces after a second, as the paper does, and holds as
// many as take about 170 MB, if few are longer than perBlock hops.
func DefaultConfig() Config {
	return Config{
		CloseAfter: time.Second, RouteSettle: time.Second, OutPorts: true, MaxTraces: 1 << 18, MaxHops: 64,
		FrameBytes: 128,
	}
}

// Check returns an error for values that cannot work.
func (c *Config) Check() error {
	switch {
	case c.CloseAfter <= 0:
		return fmt.Errorf("trace: close after %v, want more than 0", c.CloseAfter)
	case c.RouteSettle < 0:
		return fmt.Errorf("trace: route settle time %v, want 0 or more", c.RouteSettle)
	case c.MaxTraces < 1 || c.MaxTraces > 1<<28:
		return fmt.Errorf("trace: max traces %d, want 1 to %d", c.MaxTraces, 1<<28)
	case c.Memory < 0 || c.Memory > 0 && c.Memory < model.MiB:
		return fmt.Errorf("trace: memory of %v, want 0 or at least %v", c.Memory, model.Bytes(model.MiB))
	case c.MaxHops < 1 || c.MaxHops > 255:
		return fmt.Errorf("trace: max hops %d, want 1 to 255", c.MaxHops)
	case c.FrameBytes < 0 || c.FrameBytes > 1<<14:
		return fmt.Errorf("trace: frame bytes %d, want 0 to %d", c.FrameBytes, 1<<14)
	}
	return nil
}

// Stats account for mirrors. Mirrors = Malformed + Overflow + Duplicates +
// Repeats + the hops of traces that are open or closed.
type Stats struct {
	Mirrors    uint64
	Malformed  uint64 // claim to be IP and are not
	Overflow   uint64 // beyond Config.MaxHops of one packet
	Duplicates uint64 // the same mirror again
	Repeats    uint64 // the packet again, in the same state

	Open    int    // traces
	Closed  uint64 // traces, Evicted and Stopped among them
	Evicted uint64 // closed early, by Config.MaxTraces or Config.Memory
	Stopped uint64 // closed early, by Stop
	// Unproven are traces that look lost and that are not, because mirrors were lost
	// on their path to here while they were open.
	Unproven uint64
}

// Assembler assembles mirrors into traces. Its memory is bounded: when
// Config.MaxTraces are open, the one that has been quiet for the longest is
// closed early. It allocates nothing per mirror once its slabs have grown.
type Assembler struct {
	cfg    Config
	intent *topo.Intent
	done   func(*Trace)

	slots  []slot // an open hash table of entries
	traces []entry
	frames []byte  // cfg.FrameBytes for each entry
	more   []block // further hops
	// Free entries and blocks of more, as lists.
	freeTrace, freeMore int32
	// Open entries, the one that is due first at the front: that which has been quiet for
	// longest, of those that wait for no pause to end.
	oldest, newest int32

	now model.Time
	// lostAt is when mirrors were last lost between the switches and here.
	lostAt model.Time
	scan   mirrorScan
	out    Trace
	stats  Stats
}

// slot is a slot of the hash table. The tag, from the hash's upper bits, avoids
// most reads of entries that are not the wanted one.
type slot struct {
	tag   uint32
	entry int32 // none where empty
}

// entry is an open trace. What every mirror reads and writes comes first.
type entry struct {
	hash          uint64
	last          model.Time
	due           model.Time // when it is complete, or looked at again
	before, after int32      // in the order of due
	latest        uint32     // rank of the latest hop
	count         uint8
	why           mirror.Reasons
	waits         bool             // its packet is in a paused queue
	fingerprints  [perBlock]uint32 // of its first hops, to find one again
	id            ID

	first                          model.Time
	more                           int32  // the latest block of further hops
	frameRank                      uint32 // rank of the hop whose frame is kept
	length, frame                  uint16
	reordered, duplicates, repeats uint16
	wait                           wait // if it waits

	hops [perBlock]Hop // the first ones; inline for cache locality
}

// perBlock is how many hops are stored together. Few paths are longer.
const perBlock = 6

type block struct {
	hops   [perBlock]Hop
	before int32 // block of more with earlier hops
}

const none = -1

// NewAssembler returns an assembler that classifies packets by the intended
// routes and passes complete traces to done, which must not keep them.
func NewAssembler(cfg Config, intent *topo.Intent, done func(*Trace)) (*Assembler, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	a := &Assembler{cfg: cfg, intent: intent, done: done, freeTrace: none, freeMore: none, oldest: none, newest: none, lostAt: math.MinInt64}
	a.resize(1 << 10)
	return a, nil
}

// Stats returns the current counts.
func (a *Assembler) Stats() Stats { return a.stats }

// AddMirror ingests a mirror that arrived at an instant of the analyzer's clock.
// All mirrors of one packet must go to one assembler. It keeps nothing of m.
func (a *Assembler) AddMirror(now model.Time, m *mirror.Mirror) {
	a.Advance(now)
	a.stats.Mirrors++
	s := &a.scan
	if s.parseMirror(m) != nil {
		a.stats.Malformed++
		return
	}
	s.hop.Arrived = a.now
	i := a.findOrOpen(m)
	e := &a.traces[i]
	e.last, e.due = a.now, a.now.Add(a.cfg.CloseAfter)
	e.waits = false // it has left the paused queue
	e.why |= m.Reasons
	a.moveToNewest(i)
	// Mirrors overtake each other. The frame is that of the first hop: later ones have
	// labels, and less of the packet after them.
	if a.scan.hop.rank() > e.frameRank {
		a.keepFrame(i, m)
	}
	a.addHop(i)
}

// addHop adds the current hop to a trace, unless it is already there.
func (a *Assembler) addHop(i int32) {
	e, hop := &a.traces[i], &a.scan.hop
	if h := a.findRepeat(i); h != nil {
		if h.Time == hop.Time {
			a.stats.Duplicates++
			saturatingIncrement(&e.duplicates)
			return
		}
		a.stats.Repeats++
		saturatingIncrement(&e.repeats)
		if h.Copies < 255 {
			h.Copies++
		}
		return
	}
	if int(e.count) == a.cfg.MaxHops {
		a.stats.Overflow++
		return
	}
	r := hop.rank()
	if r > e.latest {
		saturatingIncrement(&e.reordered)
	}
	e.latest = r
	n := int(e.count)
	e.count++
	if n < perBlock {
		e.fingerprints[n] = hop.fingerprint()
		e.hops[n] = *hop
		return
	}
	if n%perBlock == 0 && !a.addBlock(i) {
		e.count--
		a.stats.Overflow++
		return
	}
	a.more[e.more].hops[n%perBlock] = *hop
}

// findRepeat returns the hop of a trace that saw the packet in the current state.
func (a *Assembler) findRepeat(i int32) *Hop {
	e, hop := &a.traces[i], &a.scan.hop
	mark := hop.fingerprint()
	for n := range min(int(e.count), perBlock) {
		if h := &e.hops[n]; e.fingerprints[n] == mark && h.sameState(hop) {
			return h
		}
	}
	if e.count <= perBlock {
		return nil
	}
	n := (int(e.count)-1)%perBlock + 1 // hops of the latest block
	for b := e.more; b != none; b = a.more[b].before {
		for k := range n {
			if h := &a.more[b].hops[k]; h.sameState(hop) {
				return h
			}
		}
		n = perBlock
	}
	return nil
}

// addBlock adds a block for more hops to a trace, and reports false if there is no
// memory for it.
func (a *Assembler) addBlock(i int32) bool {
	for a.freeMore == none && a.isFull(len(a.traces), len(a.more)+1) {
		if a.oldest == i {
			return false
		}
		a.closeTrace(a.oldest, true)
	}
	b := a.freeMore
	if b == none {
		b = int32(len(a.more))
		a.more = append(a.more, block{})
	} else {
		a.freeMore = a.more[b].before
	}
	e := &a.traces[i]
	a.more[b].before, e.more = e.more, b
	return true
}

// isFull reports whether numbers of entries and blocks exceed the memory. Tables grow
// by a quarter and are copied, so that they take up to 2.5 times what is in use.
func (a *Assembler) isFull(traces, blocks int) bool {
	if a.cfg.Memory == 0 {
		return false
	}
	one := int(unsafe.Sizeof(entry{})) + a.cfg.FrameBytes + 4*int(unsafe.Sizeof(slot{}))
	return model.Bytes(traces*one+blocks*int(unsafe.Sizeof(block{}))) > a.cfg.Memory*2/5
}

// MirrorsLost says that mirrors were lost at an instant of the analyzer's clock,
// between the switches and here. A trace that was open then, or opened within
// Config.CloseAfter of it, may lack the end of its path, as mirrors of a packet may arrive in
// any order: that it ends early is no evidence that the packet was lost.
func (a *Assembler) MirrorsLost(now model.Time) { a.lostAt = max(a.lostAt, now) }

func saturatingIncrement(n *uint16) {
	if *n < 1<<16-1 {
		*n++
	}
}

// Advance closes the traces that have been quiet for Config.CloseAfter at an
// instant of the analyzer's clock. An instant before the last one is ignored.
func (a *Assembler) Advance(now model.Time) {
	a.now = max(a.now, now)
	for a.oldest != none && a.traces[a.oldest].due <= a.now {
		if i := a.oldest; !a.waitsForPause(i) {
			a.closeTrace(i, false)
		}
	}
}

// OldestOpen returns when the first mirror of any open trace arrived, and false if none is
// open.
func (a *Assembler) OldestOpen() (first model.Time, open bool) {
	for i := a.oldest; i != none; i = a.traces[i].after {
		if t := a.traces[i].first; !open || t < first {
			first, open = t, true
		}
	}
	return first, open
}

// Flush closes all traces, as at the end of a run: packets that were still in
// flight look lost. Check Stats.Open first if that matters.
func (a *Assembler) Flush() {
	for a.oldest != none {
		a.closeTrace(a.oldest, false)
	}
}

// evictAll closes all traces early, at the end.
func (a *Assembler) evictAll() {
	evicted := a.stats.Evicted
	for a.oldest != none {
		a.closeTrace(a.oldest, true)
	}
	a.stats.Stopped += a.stats.Evicted - evicted
	a.stats.Evicted = evicted
}

// ForgetOutPorts is Config.OutPorts of false from here on.
func (a *Assembler) ForgetOutPorts() { a.cfg.OutPorts = false }

// closeTrace passes a trace to done and frees its memory.
func (a *Assembler) closeTrace(i int32, evicted bool) {
	t := a.readTrace(i, evicted)
	for e := &a.traces[i]; e.more != none; {
		b := e.more
		e.more = a.more[b].before
		a.more[b].before, a.freeMore = a.freeMore, b
	}
	if e := &a.traces[i]; e.waits && (e.wait.forGood || evicted) {
		t.End, t.Paused = Unsettled, true
	}
	a.freeEntry(i)
	a.stats.Closed++
	if evicted {
		a.stats.Evicted++
	}
	if t.End == Lost && a.mayLackMirrors(t) {
		t.End = Unknown
		a.stats.Unproven++
	}
	a.done(t)
}

// mayLackMirrors reports whether mirrors were lost that may be the end of a trace's path.
func (a *Assembler) mayLackMirrors(t *Trace) bool {
	return a.lostAt != math.MinInt64 && t.First <= a.lostAt.Add(a.cfg.CloseAfter)
}

// readTrace makes the trace of an entry, which stays.
func (a *Assembler) readTrace(i int32, evicted bool) *Trace {
	e := &a.traces[i]
	t := &a.out
	*t = Trace{
		ID: e.id, Why: e.why, Length: e.length, First: e.first, Last: e.last, Hops: t.Hops[:0], Evicted: evicted, outPorts: a.cfg.OutPorts,
		Frame:     a.frames[int(i)*a.cfg.FrameBytes:][:e.frame],
		Reordered: int(e.reordered), Duplicates: int(e.duplicates), Repeats: int(e.repeats),
	}
	t.Hops = append(t.Hops, e.hops[:min(e.count, perBlock)]...)
	for b := e.more; b != none; b = a.more[b].before {
		t.Hops = append(t.Hops, a.more[b].hops[:]...) // in any order: they are sorted
	}
	if n := len(t.Hops) - int(e.count); n > 0 { // free hops of the latest block
		t.Hops = slices.Delete(t.Hops, 2*perBlock-n, 2*perBlock)
	}
	t.classify(a.intent, a.cfg.RouteSettle)
	return t
}

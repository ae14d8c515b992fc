package translate

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Outlet writes to a collector's memory. A Translator calls it from one
// goroutine; the outlet keeps nothing of what it is given. When a report is
// immediate, the outlet tells the collector's program after the write.
type Outlet interface {
	// Serves tells whether there is memory for such a report. It is safe to
	// call beside the others.
	Serves(r *dta.Report) bool
	// KeyWrite stores r.Data under r.Key in r.Redundancy places.
	KeyWrite(r *dta.Report)
	// KeyIncrement adds r.Delta to r.Key in r.Redundancy places.
	KeyIncrement(r *dta.Report)
	// Postcards stores a path under its key in p.Redundancy places.
	Postcards(p *Path)
	// Append puts entries, back to back, at the end of a list.
	Append(list dta.ListID, entries []byte, immediate bool)
	// Flush ends a batch of calls: what was written may be waited for.
	Flush(now model.Time)
}

// Config says how a Translator gathers.
type Config struct {
	Rows     int           // places for paths being gathered, a power of two
	Hops     int           // most hops of a path
	PathWait time.Duration // how long an incomplete path waits for its postcards
	Lists    []List        // the lists that are served
	Batch    int           // entries written to a list at once
	ListWait time.Duration // how long an entry waits for others
	Queries  []Query       // answered on the way
}

// List is one list of the collector.
type List struct {
	ID    dta.ListID
	Entry int // bytes of an entry
}

// Sizes of the paper's evaluation: a cache that fits a switch (section 5.2),
// the hops of a fat-tree, and the batch beyond which its line was full
// (section 6.7).
const (
	DefaultRows  = 32 << 10
	DefaultHops  = 5
	DefaultBatch = 16
)

// DefaultConfig serves no lists yet.
func DefaultConfig() Config {
	return Config{
		Rows: DefaultRows, Hops: DefaultHops, PathWait: 100 * time.Millisecond,
		Batch: DefaultBatch, ListWait: 10 * time.Millisecond,
	}
}

// Stats account for the reports of one Translator.
type Stats struct {
	KeyWrites     uint64
	KeyIncrements uint64
	Appends       uint64
	Batches       uint64 // writes that carried the appends
	Postcards     PostcardStats
	Matches       uint64 // paths that a standing query reported
}

// Translator turns reports into writes. It is for one goroutine at a time and
// allocates nothing after New.
type Translator struct {
	cfg     Config
	out     Outlet
	cache   cache
	lists   lists
	queries []Query
	match   []byte
	emit    func(*Path)
	stats   Stats
}

// New returns a Translator over an outlet.
func New(cfg Config, out Outlet) (*Translator, error) {
	c, err := newCache(cfg.Rows, cfg.Hops, cfg.PathWait)
	if err != nil {
		return nil, err
	}
	l, err := newLists(cfg)
	if err != nil {
		return nil, err
	}
	t := &Translator{cfg: cfg, out: out, cache: c, lists: l, queries: cfg.Queries}
	for _, q := range cfg.Queries {
		if err := q.check(cfg); err != nil {
			return nil, err
		}
	}
	t.match = make([]byte, 0, MatchSize(cfg.Hops))
	t.emit = t.path
	return t, nil
}

// Serves tells whether there is memory for such a report. It is safe to call
// beside Put.
func (t *Translator) Serves(r *dta.Report) bool {
	switch r.Primitive {
	case dta.Append:
		if _, entry, ok := t.lists.find(r.List); !ok || len(r.Data) != entry {
			return false
		}
	case dta.Postcarding:
		if len(r.Data) != 4 || int(r.Hop) >= t.cfg.Hops || r.Path != 0 && r.Hop >= r.Path {
			return false
		}
	}
	return t.out.Serves(r)
}

// Put translates reports that Serves agreed to.
func (t *Translator) Put(now model.Time, batch []dta.Report) {
	for i := range batch {
		r := &batch[i]
		switch r.Primitive {
		case dta.KeyWrite:
			t.stats.KeyWrites++
			t.out.KeyWrite(r)
		case dta.KeyIncrement:
			t.stats.KeyIncrements++
			t.out.KeyIncrement(r)
		case dta.Append:
			t.append(now, r)
		case dta.Postcarding:
			t.cache.put(now, r, binary.BigEndian.Uint32(r.Data), t.emit)
		}
	}
	t.out.Flush(now)
}

func (t *Translator) append(now model.Time, r *dta.Report) {
	t.stats.Appends++
	l, _, _ := t.lists.find(r.List)
	t.lists.add(now, l, r.Data, r.Immediate)
	if l.count == t.cfg.Batch || r.Immediate {
		t.write(l)
	}
}

// write gives a list's entries to the outlet.
func (t *Translator) write(l *list) {
	t.stats.Batches++
	t.out.Append(l.id, t.lists.take(l), l.immediate)
	l.immediate = false
}

// path takes a path that leaves the cache.
func (t *Translator) path(p *Path) {
	t.out.Postcards(p)
	if !p.Complete() {
		return // a sum over some of the hops would be below the truth
	}
	for i := range t.queries {
		if sum, ok := t.queries[i].answers(p); ok {
			t.stats.Matches++
			t.match = Match{Key: p.Key, Sum: sum, Path: p.hops()}.appendTo(t.match[:0], len(p.Values))
			t.out.Append(t.queries[i].List, t.match, true)
		}
	}
}

// Tick writes what has waited long enough.
func (t *Translator) Tick(now model.Time) {
	for l := t.lists.due(now.Add(-t.cfg.ListWait)); l != nil; l = t.lists.due(now.Add(-t.cfg.ListWait)) {
		t.write(l)
	}
	t.cache.sweep(now, t.emit)
	t.out.Flush(now)
}

// Drain writes everything, before an end.
func (t *Translator) Drain(now model.Time) {
	for l := t.lists.oldest(); l != nil; l = t.lists.oldest() {
		t.write(l)
	}
	t.cache.drain(t.emit)
	t.out.Flush(now)
}

// Stats returns the present counts.
func (t *Translator) Stats() Stats {
	st := t.stats
	st.Postcards = t.cache.stats
	return st
}

// hops returns the values of the path's hops.
func (p *Path) hops() []uint32 {
	if n := int(p.Length); n != 0 && n < len(p.Values) {
		return p.Values[:n]
	}
	return p.Values
}

// lists gathers the entries of lists. Those that hold entries form a queue by
// the time of their first entry, so that the oldest is found at once.
type lists struct {
	all    []list
	index  map[dta.ListID]int // nil when list i has ID i
	batch  int
	head   int // of the queue; -1 when empty
	tail   int
	memory []byte
}

type list struct {
	id         dta.ListID
	entry      int
	buf        []byte
	count      int
	since      model.Time
	immediate  bool
	next, prev int // in the queue
}

func newLists(cfg Config) (lists, error) {
	if cfg.Batch < 1 {
		return lists{}, fmt.Errorf("translate: batches of %d entries, want at least 1", cfg.Batch)
	}
	total, dense := 0, true
	for i, l := range cfg.Lists {
		if l.Entry < 1 || l.Entry > dta.MaxData {
			return lists{}, fmt.Errorf("translate: list %d with entries of %d bytes, want 1 to %d", l.ID, l.Entry, dta.MaxData)
		}
		total += l.Entry * cfg.Batch
		dense = dense && l.ID == dta.ListID(i)
	}
	ls := lists{all: make([]list, len(cfg.Lists)), batch: cfg.Batch, head: -1, tail: -1, memory: make([]byte, total)}
	if !dense {
		ls.index = make(map[dta.ListID]int, len(cfg.Lists))
	}
	at := 0
	for i, l := range cfg.Lists {
		end := at + l.Entry*cfg.Batch
		ls.all[i] = list{id: l.ID, entry: l.Entry, buf: ls.memory[at:at:end]}
		at = end
		if !dense {
			if _, twice := ls.index[l.ID]; twice {
				return lists{}, fmt.Errorf("translate: list %d twice", l.ID)
			}
			ls.index[l.ID] = i
		}
	}
	return ls, nil
}

// find returns a list and the size of its entries, which never changes.
func (ls *lists) find(id dta.ListID) (l *list, entry int, ok bool) {
	i := int(id)
	if ls.index != nil {
		if i, ok = ls.index[id]; !ok {
			return nil, 0, false
		}
	}
	if i >= len(ls.all) {
		return nil, 0, false
	}
	return &ls.all[i], ls.all[i].entry, true
}

func (ls *lists) at(l *list) int {
	if ls.index != nil {
		return ls.index[l.id]
	}
	return int(l.id)
}

// add puts an entry behind a list's others.
func (ls *lists) add(now model.Time, l *list, data []byte, immediate bool) {
	if l.count == 0 {
		l.since = now
		i := ls.at(l)
		l.prev, l.next = ls.tail, -1
		if ls.tail >= 0 {
			ls.all[ls.tail].next = i
		} else {
			ls.head = i
		}
		ls.tail = i
	}
	l.buf = append(l.buf, data...)
	l.count++
	l.immediate = l.immediate || immediate
}

// take empties a list and returns what it held, valid until the next add.
func (ls *lists) take(l *list) []byte {
	out := l.buf
	l.buf, l.count = l.buf[:0], 0
	if l.prev >= 0 {
		ls.all[l.prev].next = l.next
	} else {
		ls.head = l.next
	}
	if l.next >= 0 {
		ls.all[l.next].prev = l.prev
	} else {
		ls.tail = l.prev
	}
	return out
}

// oldest returns the list whose first entry has waited longest, or nil.
func (ls *lists) oldest() *list {
	if ls.head < 0 {
		return nil
	}
	return &ls.all[ls.head]
}

// due returns a list whose first entry came at or before then, or nil.
func (ls *lists) due(then model.Time) *list {
	if l := ls.oldest(); l != nil && l.since <= then {
		return l
	}
	return nil
}

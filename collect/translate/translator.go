package translate

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// MemoryWriter writes to a collector's memory. A Translator calls it from one
// goroutine; it must not keep its arguments. When a report is immediate, it
// notifies the collector's program after the write.
type MemoryWriter interface {
	// KeyWrite stores r.Data under r.Key in r.Redundancy slots.
	KeyWrite(r *dta.Report)
	// KeyIncrement adds r.Delta to r.Key in r.Redundancy cells.
	KeyIncrement(r *dta.Report)
	// WriteRun is KeyWrite or KeyIncrement for packed reports of one format, as in
	// a datagram. None is immediate. The first is also passed parsed.
	WriteRun(first *dta.Report, run []byte)
	// WritePath stores a path under its key in p.Redundancy chunks.
	WritePath(p *Path)
	// Append adds entries, back to back as list.Scheme encodes them, to the end of
	// a list. They are at most a batch of the list.
	Append(list dta.ListID, entries []byte, immediate bool)
	// Flush ends a batch of calls: callers may wait for what was written.
	Flush(now model.Time)
}

// Config configures a Translator.
type Config struct {
	Rows     int           // rows of the postcard cache, a power of two
	PathWait time.Duration // maximum time that an incomplete path waits for its postcards
	ListWait time.Duration // maximum time that an entry waits for others to fill a batch
	Queries  []Query       // standing queries on paths
	Heavy    []HeavyKeys   // standing queries on counters
	AddRows  int           // rows that add up Key-Increments before they are written; 0 writes each
	AddWait  time.Duration // maximum time that an addition waits for others of its key
}

// DefaultRows is the cache of the paper's translator (section 5.2).
const DefaultRows = 32 << 10

// DefaultConfig answers no queries.
func DefaultConfig() Config {
	return Config{Rows: DefaultRows, PathWait: 100 * time.Millisecond, ListWait: 10 * time.Millisecond, AddWait: 10 * time.Millisecond}
}

// Stats are the counters of one Translator.
type Stats struct {
	KeyWrites     uint64        `json:"key_writes"`
	KeyIncrements uint64        `json:"key_increments"`
	Additions     uint64        `json:"additions"` // writes that carried the Key-Increments
	Appends       uint64        `json:"appends"`
	Batches       uint64        `json:"batches"` // writes that carried the appends
	Postcards     PostcardStats `json:"postcards"`
	Matches       uint64        `json:"matches"` // paths that a standing query reported

	Heavy           uint64 `json:"heavy"`            // keys that a HeavyKeys query reported
	HeavyUnreported uint64 `json:"heavy_unreported"` // additions to keys that were not reported: more keys are heavy than one period can hold
}

// Translator turns reports into memory writes. It is for one goroutine at a time
// and allocates nothing after New.
type Translator struct {
	cfg     Config
	plan    *Plan
	out     MemoryWriter
	cache   postcardCache
	lists   listBatches
	queries []Query
	heavy   []heavySums
	adds    additionCache
	match   []byte
	emit    emitter
	write   func(*dta.Report) // writes a Key-Increment
	stats   Stats
}

// New returns a Translator for memories of the given geometry.
func New(cfg Config, plan *Plan, out MemoryWriter) (*Translator, error) {
	if err := plan.Check(); err != nil {
		return nil, err
	}
	hops := 1 // never used without postcards
	if plan.Postcards != nil {
		hops = plan.Postcards.Config().Hops
	}
	c, err := newCache(cfg.Rows, hops, cfg.PathWait)
	if err != nil {
		return nil, err
	}
	t := &Translator{cfg: cfg, plan: plan, out: out, cache: c, lists: newLists(plan), queries: cfg.Queries}
	for _, q := range cfg.Queries {
		if err := q.Check(plan); err != nil {
			return nil, err
		}
	}
	for _, q := range cfg.Heavy {
		if err := q.Check(plan); err != nil {
			return nil, err
		}
		t.heavy = append(t.heavy, newHeavySums(q))
	}
	if t.adds, err = newAdditionCache(cfg.AddRows, cfg.AddWait); err != nil {
		return nil, err
	}
	t.match = make([]byte, 0, MatchSize(hops))
	t.emit, t.write = t.emitPath, t.writeAddition
	return t, nil
}

// Admit implements Target. It is safe to call concurrently with Put.
func (t *Translator) Admit(r *dta.Report) dta.Verdict {
	if t.plan.Serves(r) {
		return dta.Stored
	}
	return dta.Unserved
}

// AdmitRun implements Target. It is safe to call concurrently with PutRun.
func (t *Translator) AdmitRun(first *dta.Report, run []byte, count int) dta.Verdict {
	if t.plan.ServesRun(first, run, count) {
		return dta.Stored
	}
	return dta.Unserved
}

// Put translates reports that were admitted.
func (t *Translator) Put(now model.Time, batch []dta.Report) {
	for ; len(batch) > batchSize; batch = batch[batchSize:] {
		t.put(now, batch[:batchSize])
	}
	t.put(now, batch)
	t.out.Flush(now)
}

// put translates at most batchSize reports.
func (t *Translator) put(now model.Time, batch []dta.Report) {
	var rows [batchSize]uint32
	t.cache.prefetchRows(&rows, batch)
	for i := range batch {
		r := &batch[i]
		switch r.Primitive {
		case dta.KeyWrite:
			t.stats.KeyWrites++
			t.out.KeyWrite(r)
		case dta.KeyIncrement:
			t.addIncrement(now, r)
		case dta.Append:
			t.addAppend(now, r)
		case dta.Postcarding:
			t.cache.add(now, r, rows[i], t.emit)
		}
	}
}

// PutRun implements Target.
func (t *Translator) PutRun(now model.Time, first *dta.Report, run []byte, count int) {
	switch first.Primitive {
	case dta.KeyWrite:
		t.stats.KeyWrites += uint64(count)
		t.out.WriteRun(first, run)
	case dta.KeyIncrement:
		t.addIncrements(now, first, run, count)
	case dta.Append:
		t.stats.Appends += uint64(count)
		t.addEntries(now, first.List, run, len(run)/count)
	case dta.Postcarding:
		t.cache.addRun(now, first, run, len(run)/count, t.emit)
	}
	t.out.Flush(now)
}

// addIncrement adds to a key.
func (t *Translator) addIncrement(now model.Time, r *dta.Report) {
	t.stats.KeyIncrements++
	t.checkHeavy(now, r)
	if len(t.adds.rows) == 0 {
		t.writeAddition(r)
		return
	}
	t.adds.add(now, r, t.write)
}

func (t *Translator) writeAddition(r *dta.Report) {
	t.stats.Additions++
	t.out.KeyIncrement(r)
}

// addIncrements is addIncrement for packed reports. They are written as they are unless
// something must see each of them.
func (t *Translator) addIncrements(now model.Time, first *dta.Report, run []byte, count int) {
	if len(t.heavy) == 0 && len(t.adds.rows) == 0 {
		t.stats.KeyIncrements += uint64(count)
		t.stats.Additions += uint64(count)
		t.out.WriteRun(first, run)
		return
	}
	for r := *first; len(run) > 0; {
		n, err := r.Parse(run)
		must(err)
		t.addIncrement(now, &r)
		run = run[n:]
	}
}

// addEntries is addEntry for packed reports of size bytes.
func (t *Translator) addEntries(now model.Time, id dta.ListID, run []byte, size int) {
	l := &t.lists.all[id]
	for len(run) > 0 {
		if l.count == 0 {
			t.lists.enqueue(now, l, int(id))
		}
		n := min(l.batch-l.count, len(run)/size)
		var err error
		l.buf, err = l.scheme.AppendRun(l.buf, l.id, run[:n*size], appendHead, size)
		must(err)
		run = run[n*size:]
		if l.count += n; l.count == l.batch {
			t.writeBatch(l, false)
		}
	}
}

// appendHead is the length of the header of an Append report.
const appendHead = 8

func (t *Translator) addAppend(now model.Time, r *dta.Report) {
	t.stats.Appends++
	t.addEntry(now, r.List, r.Data, r.Immediate)
}

// addEntry adds data to the pending batch of a list.
func (t *Translator) addEntry(now model.Time, id dta.ListID, data []byte, immediate bool) {
	l := &t.lists.all[id]
	if l.count == 0 {
		t.lists.enqueue(now, l, int(id))
	}
	var err error
	l.buf, err = l.scheme.AppendEntry(l.buf, l.id, data)
	must(err)
	l.count++
	if l.count == l.batch || immediate {
		t.writeBatch(l, immediate)
	}
}

// writeBatch writes a list's pending entries.
func (t *Translator) writeBatch(l *pendingBatch, immediate bool) {
	t.stats.Batches++
	i, entries := t.lists.dequeue(l)
	t.out.Append(dta.ListID(i), entries, immediate)
}

// emitPath writes a path that leaves the cache.
func (t *Translator) emitPath(now model.Time, p *Path) {
	t.out.WritePath(p)
	if !p.Complete() {
		return // a sum over some of the hops would be too low
	}
	for i := range t.queries {
		if sum, ok := t.queries[i].matches(p); ok {
			t.stats.Matches++
			t.match = Match{Key: p.Key, Sum: sum, Path: p.hops()}.AppendTo(t.match[:0])
			t.addEntry(now, t.queries[i].List, t.match, true)
		}
	}
}

// Tick writes paths and entries whose wait time is over.
func (t *Translator) Tick(now model.Time) {
	// A batch from the future is due, too: the clock was set.
	for l := t.lists.oldest(); l != nil && (now.Sub(l.since) >= t.cfg.ListWait || l.since.Sub(now) > time.Second); l = t.lists.oldest() {
		t.writeBatch(l, false)
	}
	t.cache.emitExpired(now, t.emit)
	t.adds.flushExpired(now, t.write)
	t.out.Flush(now)
}

// Drain writes everything, before shutdown.
func (t *Translator) Drain(now model.Time) {
	t.cache.emitAll(now, t.emit) // before the lists: a path may answer a query
	t.adds.flushAll(t.write)
	for l := t.lists.oldest(); l != nil; l = t.lists.oldest() {
		t.writeBatch(l, false)
	}
	t.out.Flush(now)
}

// Stats returns the current counters.
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

// Plus adds the counters of two Translators.
func (s Stats) Plus(o Stats) Stats {
	s.KeyWrites += o.KeyWrites
	s.KeyIncrements += o.KeyIncrements
	s.Additions += o.Additions
	s.Appends += o.Appends
	s.Batches += o.Batches
	s.Matches += o.Matches
	s.Heavy += o.Heavy
	s.HeavyUnreported += o.HeavyUnreported
	s.Postcards.Postcards += o.Postcards.Postcards
	s.Postcards.Emitted += o.Postcards.Emitted
	s.Postcards.Duplicate += o.Postcards.Duplicate
	s.Postcards.Complete += o.Postcards.Complete
	s.Postcards.Evicted += o.Postcards.Evicted
	s.Postcards.Superseded += o.Postcards.Superseded
	s.Postcards.Expired += o.Postcards.Expired
	return s
}

package translate

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// MemoryWriter writes to a collector's memory. A Translator calls it from one
// goroutine; the outlet keeps nothing of what it is given. When a report is
// immediate, the outlet tells the collector's program after the write.
type MemoryWriter interface {
	// KeyWrite stores r.Data under r.Key in r.Redundancy places.
	KeyWrite(r *dta.Report)
	// KeyIncrement adds r.Delta to r.Key in r.Redundancy places.
	KeyIncrement(r *dta.Report)
	// WriteRun is KeyWrite or KeyIncrement for reports of one shape, as they lie
	// side by side in a datagram. None is immediate. The first is given
	// parsed.
	WriteRun(first *dta.Report, run []byte)
	// WritePath stores a path under its key in p.Redundancy places.
	WritePath(p *Path)
	// Append puts entries, back to back as list.Scheme makes them, at the end
	// of a list. They are no more than a batch of the list's.
	Append(list dta.ListID, entries []byte, immediate bool)
	// Flush ends a batch of calls: what was written may be waited for.
	Flush(now model.Time)
}

// Config says how a Translator gathers.
type Config struct {
	Rows     int           // places for paths being gathered, a power of two
	PathWait time.Duration // how long an incomplete path waits for its postcards
	ListWait time.Duration // how long an entry waits for others to fill a batch
	Queries  []Query       // answered on the way
}

// DefaultRows is the cache of the paper's translator (section 5.2).
const DefaultRows = 32 << 10

// DefaultConfig answers no queries.
func DefaultConfig() Config {
	return Config{Rows: DefaultRows, PathWait: 100 * time.Millisecond, ListWait: 10 * time.Millisecond}
}

// Stats account for the reports of one Translator.
type Stats struct {
	KeyWrites     uint64        `json:"key_writes"`
	KeyIncrements uint64        `json:"key_increments"`
	Appends       uint64        `json:"appends"`
	Batches       uint64        `json:"batches"` // writes that carried the appends
	Postcards     PostcardStats `json:"postcards"`
	Matches       uint64        `json:"matches"` // paths that a standing query reported
}

// Translator turns reports into writes. It is for one goroutine at a time and
// allocates nothing after New.
type Translator struct {
	cfg     Config
	plan    *Plan
	out     MemoryWriter
	cache   postcardCache
	lists   listBatches
	queries []Query
	match   []byte
	emit    emitter
	stats   Stats
}

// New returns a Translator for memories of the given geometry, behind an
// outlet.
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
	t.match = make([]byte, 0, MatchSize(hops))
	t.emit = t.emitPath
	return t, nil
}

// Admit implements Target. It is safe to call beside Put.
func (t *Translator) Admit(r *dta.Report) dta.Verdict {
	if t.plan.Serves(r) {
		return dta.Stored
	}
	return dta.Unserved
}

// AdmitRun implements Target. It is safe to call beside PutRun.
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
			t.stats.KeyIncrements++
			t.out.KeyIncrement(r)
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
		t.stats.KeyIncrements += uint64(count)
		t.out.WriteRun(first, run)
	case dta.Append:
		t.stats.Appends += uint64(count)
		t.addEntries(now, first.List, run, len(run)/count)
	case dta.Postcarding:
		t.cache.addRun(now, first, run, len(run)/count, t.emit)
	}
	t.out.Flush(now)
}

// addEntries is entry for packed reports of size bytes.
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

// appendHead is what stands in front of an Append report's data.
const appendHead = 8

func (t *Translator) addAppend(now model.Time, r *dta.Report) {
	t.stats.Appends++
	t.addEntry(now, r.List, r.Data, r.Immediate)
}

// addEntry puts data behind a list's others.
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

// writeBatch gives a list's entries to the outlet.
func (t *Translator) writeBatch(l *pendingBatch, immediate bool) {
	t.stats.Batches++
	i, entries := t.lists.dequeue(l)
	t.out.Append(dta.ListID(i), entries, immediate)
}

// emitPath takes a path that leaves the cache.
func (t *Translator) emitPath(now model.Time, p *Path) {
	t.out.WritePath(p)
	if !p.Complete() {
		return // a sum over some of the hops would be below the truth
	}
	for i := range t.queries {
		if sum, ok := t.queries[i].matches(p); ok {
			t.stats.Matches++
			t.match = Match{Key: p.Key, Sum: sum, Path: p.hops()}.AppendTo(t.match[:0])
			t.addEntry(now, t.queries[i].List, t.match, true)
		}
	}
}

// Tick writes what has waited long enough.
func (t *Translator) Tick(now model.Time) {
	for l := t.lists.oldest(); l != nil && now.Sub(l.since) >= t.cfg.ListWait; l = t.lists.oldest() {
		t.writeBatch(l, false)
	}
	t.cache.emitExpired(now, t.emit)
	t.out.Flush(now)
}

// Drain writes everything, before an end.
func (t *Translator) Drain(now model.Time) {
	t.cache.emitAll(now, t.emit) // before the lists: a path may answer a query
	for l := t.lists.oldest(); l != nil; l = t.lists.oldest() {
		t.writeBatch(l, false)
	}
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

// Plus adds the counts of two Translators.
func (s Stats) Plus(o Stats) Stats {
	s.KeyWrites += o.KeyWrites
	s.KeyIncrements += o.KeyIncrements
	s.Appends += o.Appends
	s.Batches += o.Batches
	s.Matches += o.Matches
	s.Postcards.Postcards += o.Postcards.Postcards
	s.Postcards.Emitted += o.Postcards.Emitted
	s.Postcards.Duplicate += o.Postcards.Duplicate
	s.Postcards.Complete += o.Postcards.Complete
	s.Postcards.Evicted += o.Postcards.Evicted
	s.Postcards.Superseded += o.Postcards.Superseded
	s.Postcards.Expired += o.Postcards.Expired
	return s
}

package translate

import (
	"fmt"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Memory holds the memories of a collector. Any may be missing.
type Memory struct {
	KeyWrites []*keywrite.Table
	Counts    *count.Table
	Postcards *postcard.Table
	Lists     []*list.Table
}

// Plan returns the geometry.
func (m *Memory) Plan() *Plan {
	p := &Plan{}
	for _, k := range m.KeyWrites {
		p.KeyWrites = append(p.KeyWrites, &k.Scheme)
	}
	if m.Counts != nil {
		p.Counts = &m.Counts.Scheme
	}
	if m.Postcards != nil {
		p.Postcards = &m.Postcards.Scheme
	}
	for _, l := range m.Lists {
		p.Lists = append(p.Lists, l.Scheme)
	}
	return p
}

// Regions returns all memories, in the order Key-Write, Key-Increment,
// Postcarding, Append.
func (m *Memory) Regions() (all []*region.Region) {
	for _, k := range m.KeyWrites {
		all = append(all, k.Region())
	}
	if m.Counts != nil {
		all = append(all, m.Counts.Region())
	}
	if m.Postcards != nil {
		all = append(all, m.Postcards.Region())
	}
	for _, l := range m.Lists {
		all = append(all, l.Region())
	}
	return all
}

// ImmediateNotice notifies a collector's program that an immediate report has been
// written. Key is valid during the call.
type ImmediateNotice struct {
	Primitive dta.Primitive
	List      dta.ListID // Append
	Key       []byte     // all others
}

// LocalWriter is a MemoryWriter for memory of this process: a translator in the
// collector's NIC.
type LocalWriter struct {
	*Plan
	keyWrites []*keywrite.Writer
	counts    *count.Writer
	postcards *postcard.Writer
	paths     paths
	lists     []*list.Writer
	shared    bool
	notify    func(ImmediateNotice)
}

// NewLocalWriter returns the writer of one Translator among several, each with a
// different number, 0 to region.Writers-1. shared means that others add to the
// counters too. notify is called for immediate reports and must not block; it may
// be nil.
func NewLocalWriter(m *Memory, writer int, shared bool, notify func(ImmediateNotice)) (*LocalWriter, error) {
	o := &LocalWriter{Plan: m.Plan(), shared: shared, notify: notify}
	if err := o.Check(); err != nil {
		return nil, err
	}
	if writer < 0 || writer >= region.Writers {
		return nil, fmt.Errorf("translate: writer %d, want 0 to %d", writer, region.Writers-1)
	}
	for _, k := range m.KeyWrites {
		o.keyWrites = append(o.keyWrites, k.Writer(writer))
	}
	if m.Counts != nil {
		o.counts = m.Counts.Writer(writer)
	}
	if m.Postcards != nil {
		o.postcards = m.Postcards.Writer(writer)
		o.paths.rows = make([]byte, 0, batchSize*(dta.MaxKey+4*m.Postcards.Config().Hops))
	}
	for _, l := range m.Lists {
		o.lists = append(o.lists, l.Writer(writer))
	}
	return o, nil
}

// must checks the invariant that what Serves accepts can be written.
func must(err error) {
	if err != nil {
		panic("translate: an accepted report cannot be written: " + err.Error())
	}
}

// KeyWrite implements MemoryWriter.
func (o *LocalWriter) KeyWrite(r *dta.Report) {
	must(o.keyWrites[o.keyWriteIndex(len(r.Data))].Write(r.Key, r.Data, int(r.Redundancy)))
	o.notifyKeyed(r)
}

// KeyIncrement implements MemoryWriter.
func (o *LocalWriter) KeyIncrement(r *dta.Report) {
	add := o.counts.Add
	if o.shared {
		add = o.counts.AddShared
	}
	must(add(r.Key, r.Delta, int(r.Redundancy)))
	o.notifyKeyed(r)
}

// runHead is the length of the header of a keyed report.
const runHead = 4

// WriteRun implements MemoryWriter.
func (o *LocalWriter) WriteRun(first *dta.Report, run []byte) {
	if first.Primitive == dta.KeyWrite {
		_, err := o.keyWrites[o.keyWriteIndex(len(first.Data))].WriteRun(run, runHead, len(first.Key), int(first.Redundancy))
		must(err)
		return
	}
	if !o.shared {
		_, err := o.counts.AddRun(run, runHead, len(first.Key), int(first.Redundancy))
		must(err)
		return
	}
	for r := *first; len(run) > 0; {
		n, err := r.Parse(run)
		must(err)
		o.KeyIncrement(&r)
		run = run[n:]
	}
}

// WritePath implements MemoryWriter. Paths wait for others with the same
// redundancy and key length, to be written together, and at most until Flush.
func (o *LocalWriter) WritePath(p *Path) {
	run, copies := &o.paths, o.copies(p)
	free := cap(run.rows) - len(run.rows)
	if run.keyLen != len(p.Key) || run.copies != copies || free < len(p.Key)+4*len(p.Values) {
		o.writePaths()
		run.keyLen, run.copies = len(p.Key), copies
	}
	var hops [postcard.MaxHops]uint32
	var err error
	run.rows, err = o.Plan.Postcards.AppendRow(run.rows, p.Key, fillHops(&hops, p))
	must(err)
	if p.Immediate && o.notify != nil {
		o.writePaths()
		o.notify(ImmediateNotice{Primitive: dta.Postcarding, Key: p.Key})
	}
}

// paths is a run for postcard.Writer.WriteRun.
type paths struct {
	keyLen, copies int
	rows           []byte
}

func (o *LocalWriter) writePaths() {
	if len(o.paths.rows) > 0 {
		_, err := o.postcards.WriteRun(o.paths.rows, o.paths.keyLen, o.paths.copies)
		must(err)
		o.paths.rows = o.paths.rows[:0]
	}
}

// Append implements MemoryWriter.
func (o *LocalWriter) Append(id dta.ListID, entries []byte, immediate bool) {
	i, n := o.listIndex(id)
	must(o.lists[i].Append(n, entries))
	if immediate && o.notify != nil {
		o.notify(ImmediateNotice{Primitive: dta.Append, List: id})
	}
}

// Flush implements MemoryWriter.
func (o *LocalWriter) Flush(model.Time) { o.writePaths() }

func (o *LocalWriter) notifyKeyed(r *dta.Report) {
	if r.Immediate && o.notify != nil {
		o.notify(ImmediateNotice{Primitive: r.Primitive, Key: r.Key})
	}
}

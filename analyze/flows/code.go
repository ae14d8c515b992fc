package flows

import (
	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
)

// FilterState is a flow filter and what its hash functions are made of. No words: there is
// none.
type FilterState struct {
	Geometry sketch.Geometry
	Seed     uint64
	Words    sketch.Filter
}

// CodeRecords codes records as columns.
func CodeRecords(c *fieldcodec.Coder, s *[]Record) {
	n := c.Length(len(*s), model.KeyColumns+5)
	if c.Reading() {
		*s = make([]Record, n)
	}
	list := *s
	model.CodeKeys(c, list, func(r *Record) *model.FlowKey { return &r.Key })
	fieldcodec.Field(c, list, func(r *Record) *uint64 { return &r.Packets })
	fieldcodec.Field(c, list, func(r *Record) *uint64 { return &r.Bytes })
	fieldcodec.Field(c, list, func(r *Record) *model.PortID { return &r.In })
	fieldcodec.Field(c, list, func(r *Record) *model.PortID { return &r.Out })
	grade := func(r *Record) uint64 { return uint64(r.Grade) }
	fieldcodec.Column(c, list, uint64(Exact), grade, func(r *Record, v uint64) { r.Grade = Grade(v) })
}

// Code codes all of a result but its records, which travel in parts, and Likely.
func (d *Decoded) Code(c *fieldcodec.Coder) {
	fieldcodec.Unsigned(c, &d.Switch)
	fieldcodec.Unsigned(c, &d.Scope)
	c.Bool(&d.V6)
	fieldcodec.Unsigned(c, &d.Slot)
	fieldcodec.Signed(c, &d.Start)
	fieldcodec.Signed(c, &d.Length)
	fieldcodec.Unsigned(c, &d.Undecoded)
	c.Uint64(&d.Unexplained)
	fieldcodec.Unsigned(c, &d.MissingCells)
	fieldcodec.Unsigned(c, &d.MissingFilter)
	fieldcodec.Unsigned(c, &d.Unkeyed)
	fieldcodec.Unsigned(c, &d.Probes)
	fieldcodec.Unsigned(c, &d.Missed)
	f := &d.Filter
	words := []uint64(f.Words)
	c.Words(&words)
	f.Words = words
	if len(words) == 0 {
		return
	}
	g := &f.Geometry
	fieldcodec.Unsigned(c, &g.FilterHashes)
	fieldcodec.Unsigned(c, &g.Tables)
	fieldcodec.Unsigned(c, &g.TableCells)
	c.Uint64(&f.Seed)
	if c.Reading() && c.Err() == nil {
		d.restoreFilter(c)
	}
}

// restoreFilter makes MayContain of a filter that was read.
func (d *Decoded) restoreFilter(c *fieldcodec.Coder) {
	g := &d.Filter.Geometry
	g.FilterBits = uint32(len(d.Filter.Words)) * 64
	if err := g.Check(); err != nil || len(d.Filter.Words) > 1<<25 {
		c.Fail("flows: filter of %d words: %w", len(d.Filter.Words), err)
		return
	}
	if d.V6 {
		d.MayContain = restoredFilter[sketch.Key6](d.Filter)
	} else {
		d.MayContain = restoredFilter[sketch.Key4](d.Filter)
	}
}

// restoredFilter makes the hash functions when they are first asked for: most filters are
// never, and each partition gets those of all switches.
func restoredFilter[K sketch.Key](f FilterState) func(k model.FlowKey) bool {
	var m *membership[K]
	return func(k model.FlowKey) bool {
		if m == nil {
			family, err := sketch.NewFamily(f.Geometry, f.Seed)
			if err != nil {
				panic("flows: geometry was checked: " + err.Error())
			}
			m = &membership[K]{family, f.Words}
		}
		return m.mayContain(k)
	}
}

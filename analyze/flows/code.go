package flows

import (
	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/sketch"
)

// FilterState is a flow filter and what its hash functions are made of. No words: there is
// none.
type FilterState struct {
	Geometry sketch.Geometry
	Seed     uint64
	Words    sketch.Filter
}

// Code codes a record.
func (r *Record) Code(c *fieldcodec.Coder) {
	r.Key.Code(c)
	c.Uint64(&r.Packets)
	c.Uint64(&r.Bytes)
	fieldcodec.Unsigned(c, &r.In)
	fieldcodec.Unsigned(c, &r.Out)
	fieldcodec.Unsigned(c, &r.Grade)
	if r.Grade > Exact {
		c.Fail("flows: grade %d", r.Grade)
	}
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
	family, err := sketch.NewFamily(*g, d.Filter.Seed)
	if err != nil || len(d.Filter.Words) > 1<<25 {
		c.Fail("flows: filter of %d words: %w", len(d.Filter.Words), err)
		return
	}
	if d.V6 {
		d.MayContain = (&membership[sketch.Key6]{family, d.Filter.Words}).mayContain
	} else {
		d.MayContain = (&membership[sketch.Key4]{family, d.Filter.Words}).mayContain
	}
}

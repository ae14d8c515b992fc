package nccl

import (
	"maps"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/internal/fieldcodec"
)

// Code codes the records and ranks of a dump, for another process.
func (d *Dump) Code(c *fieldcodec.Coder) {
	fieldcodec.Slice(c, &d.Records, func(r *Record) {
		r.Group.code(c)
		fieldcodec.Signed(c, &r.Rank)
		c.String(&r.Host)
		c.String(&r.Op)
		c.Uint64(&r.Seq)
		c.Uint64(&r.Bytes)
		codeTime(c, &r.Time)
		fieldcodec.Signed(c, &r.Duration)
		c.Bool(&r.Waiting)
	})
	fieldcodec.Slice(c, &d.Members, func(m *Member) {
		m.Group.code(c)
		fieldcodec.Signed(c, &m.Rank)
		c.String(&m.Host)
		codeTime(c, &m.Time)
		m.codeLaunched(c)
		c.Bool(&m.Missing)
		c.Bool(&m.Dead)
		c.String(&m.Error)
	})
}

func (g *Group) code(c *fieldcodec.Coder) {
	c.String(&g.ID)
	c.String(&g.Title)
	c.String(&g.Ranks)
	fieldcodec.Signed(c, &g.Size)
}

// codeLaunched codes the operations in order.
func (m *Member) codeLaunched(c *fieldcodec.Coder) {
	ops := slices.Sorted(maps.Keys(m.Launched))
	if c.Reading() {
		m.Launched = map[string]uint64{}
	}
	fieldcodec.Slice(c, &ops, func(op *string) {
		c.String(op)
		n := m.Launched[*op]
		c.Uint64(&n)
		if c.Reading() {
			m.Launched[*op] = n
		}
	})
}

// codeTime codes a time, which may be zero, without its zone.
func codeTime(c *fieldcodec.Coder, t *time.Time) {
	known := !t.IsZero()
	if c.Bool(&known); !known {
		return
	}
	at := t.UnixNano()
	c.Int64(&at)
	if c.Reading() {
		*t = time.Unix(0, at).UTC()
	}
}

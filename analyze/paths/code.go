package paths

import (
	"math"

	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
)

// NewPartResult returns a Part to decode into, of the fabric's ports.
func NewPartResult(p *Ports) *Part { return &Part{ports: p} }

// Code codes what a Detector found, so that a Merger in another process can use it.
func (c *Part) Code(f *fieldcodec.Coder) {
	if f.Reading() {
		c.reset(0)
	}
	f.Int64(&c.slot)
	fieldcodec.Slice(f, &c.list, func(one *Finding) { one.Code(f) })
	fieldcodec.Slice(f, &c.places, func(p *uint32) { fieldcodec.Unsigned(f, p) })
	if len(c.places) != len(c.list) {
		f.Fail("paths: %d findings at %d places", len(c.list), len(c.places))
		c.list, c.places = nil, nil
	}
	c.passed.code(f)
	c.asIntended.code(f)
}

// Code codes a finding.
func (x *Finding) Code(f *fieldcodec.Coder) {
	fieldcodec.Unsigned(f, &x.Kind)
	if x.Kind > WrongRoute {
		f.Fail("paths: finding of kind %d", x.Kind)
		x.Kind = Loop
	}
	f.Int64(&x.Slot)
	f.Bool(&x.Confirmed)
	x.At.Code(f)
	x.Next.Code(f)
	f.Bool(&x.HasNext)
	fieldcodec.Slice(f, &x.Switches, func(id *model.NodeID) { fieldcodec.Unsigned(f, id) })
	if x.Kind == Loop && len(x.Switches) == 0 {
		f.Fail("paths: a loop of no switches")
	}
	fieldcodec.Slice(f, &x.Flows, func(k *model.FlowKey) { k.Code(f) })
	fieldcodec.Signed(f, &x.Others)
}

// code codes the numbers that are not 0.
func (c *counts) code(f *fieldcodec.Coder) {
	used := c.used
	if n := f.Length(len(used), 2); f.Reading() {
		used = make([]uint32, n)
	}
	fieldcodec.Field(f, used, func(i *uint32) *uint32 { return i })
	count := func(i *uint32) uint64 { return uint64(c.n[*i]) }
	fieldcodec.Column(f, used, math.MaxInt32, count, func(i *uint32, v uint64) {
		switch {
		case int(*i) >= len(c.n):
			f.Fail("paths: port number %d of %d", *i, len(c.n))
		case v != 0 && c.n[*i] == 0:
			c.n[*i], c.used = int32(v), append(c.used, *i)
		}
	})
}

package model

import "github.com/weft-telemetry/weft/internal/fieldcodec"

// Code codes a key: see package fieldcodec.
func (k *FlowKey) Code(c *fieldcodec.Coder) {
	k.Src.Code(c)
	k.Dst.Code(c)
	fieldcodec.Unsigned(c, &k.SrcPort)
	fieldcodec.Unsigned(c, &k.DstPort)
	fieldcodec.Unsigned(c, &k.Proto)
	c.Bool(&k.V6)
}

// KeyColumns is how many columns CodeKeys codes.
const KeyColumns = 5

// CodeKeys codes the keys of a list's elements as columns.
func CodeKeys[T any](c *fieldcodec.Coder, list []T, key func(*T) *FlowKey) {
	fieldcodec.Field(c, list, func(e *T) *uint64 { return &key(e).Src.Hi })
	fieldcodec.Field(c, list, func(e *T) *uint64 { return &key(e).Src.Lo })
	fieldcodec.Field(c, list, func(e *T) *uint64 { return &key(e).Dst.Hi })
	fieldcodec.Field(c, list, func(e *T) *uint64 { return &key(e).Dst.Lo })
	get := func(e *T) uint64 {
		k := key(e)
		v := uint64(k.SrcPort)<<25 | uint64(k.DstPort)<<9 | uint64(k.Proto)<<1
		if k.V6 {
			v |= 1
		}
		return v
	}
	fieldcodec.Column(c, list, 1<<41-1, get, func(e *T, v uint64) {
		k := key(e)
		k.SrcPort, k.DstPort, k.Proto, k.V6 = uint16(v>>25), uint16(v>>9), Proto(v>>1), v&1 != 0
	})
}

// Code codes an address.
func (a *Addr) Code(c *fieldcodec.Coder) {
	c.Uint64(&a.Hi)
	c.Uint64(&a.Lo)
}

// Code codes a port.
func (p *Port) Code(c *fieldcodec.Coder) {
	fieldcodec.Unsigned(c, &p.Node)
	fieldcodec.Unsigned(c, &p.Port)
}

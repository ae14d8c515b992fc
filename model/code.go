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

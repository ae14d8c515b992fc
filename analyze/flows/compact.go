package flows

import (
	"math"

	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// CompactRecord is the record of an IPv4 flow whose counters are exact, in half of the
// memory of a Record.
type CompactRecord struct {
	key    sketch.Key4
	counts uint64 // as in a cell: packets, and the two ports
	bytes  uint64
}

// PutKey sets a key to that of the flow.
func (c *CompactRecord) PutKey(k *model.FlowKey) { sketch.PutFlowKey(k, &c.key) }

// Packets returns the packets.
func (c *CompactRecord) Packets() uint64 { return c.counts >> 32 }

// Bytes returns the bytes; 0 where cells carry none.
func (c *CompactRecord) Bytes() uint64 { return c.bytes }

// Ports returns the ports, as Record has them.
func (c *CompactRecord) Ports() (in, out model.PortID) {
	return model.PortID(c.counts >> 16), model.PortID(c.counts)
}

// ForgetPortsAbove makes ports beyond the highest one of the switch unknown ones.
func (c *CompactRecord) ForgetPortsAbove(highest model.PortID) {
	in, out := c.Ports()
	if in > highest {
		c.counts &^= 0xffff << 16
	}
	if out > highest {
		c.counts &^= 0xffff
	}
}

// plausible reports whether the counters are such that a Record is Exact with them.
func (c *CompactRecord) plausible(all *flowset.Counts, hasBytes bool) bool {
	p := c.Packets()
	return p > 0 && p <= all.Packets && (!hasBytes || c.bytes > 0 && c.bytes <= all.Bytes)
}

// Flows returns the number of records, compact ones or not.
func (d *Decoded) Flows() int { return len(d.Records) + len(d.Compact) }

// Record sets a record to the one with an index below Flows.
func (d *Decoded) Record(i int, r *Record) {
	if i < len(d.Records) {
		*r = d.Records[i]
		return
	}
	c := &d.Compact[i-len(d.Records)]
	r.Packets, r.Bytes, r.Grade = c.Packets(), c.Bytes(), Exact
	r.In, r.Out = c.Ports()
	c.PutKey(&r.Key)
}

// putRecords makes the records of those of a table that is empty without them, and grades
// them by what the switch counted.
func (d *Decoded) putRecords(list []CompactRecord, all *flowset.Counts, hasBytes bool) {
	records := d.Records[:len(list)]
	for i := range list {
		c, r := &list[i], &records[i]
		c.PutKey(&r.Key)
		r.Packets, r.Bytes = c.Packets(), c.Bytes()
		r.In, r.Out = c.Ports()
		if r.grade(true, all, hasBytes); r.Grade == Exact {
			d.Unexplained -= r.Packets
		}
	}
}

// keyPadding is how many bits at the end of an IPv4 key are padding.
const keyPadding = 24

// CodeCompact codes compact records as columns.
func CodeCompact(c *fieldcodec.Coder, s *[]CompactRecord) {
	n := c.Length(len(*s), 6)
	if c.Reading() {
		*s = make([]CompactRecord, n)
	}
	list := *s
	fieldcodec.Field(c, list, func(r *CompactRecord) *uint64 { return &r.key[0] })
	tail := func(r *CompactRecord) uint64 { return r.key[1] >> keyPadding }
	fieldcodec.Column(c, list, math.MaxUint64>>keyPadding, tail,
		func(r *CompactRecord, v uint64) { r.key[1] = v << keyPadding })
	fieldcodec.Column(c, list, math.MaxUint32, (*CompactRecord).Packets,
		func(r *CompactRecord, v uint64) { r.counts = v << 32 })
	in := func(r *CompactRecord) uint64 { return r.counts >> 16 & math.MaxUint16 }
	fieldcodec.Column(c, list, math.MaxUint16, in, func(r *CompactRecord, v uint64) { r.counts |= v << 16 })
	out := func(r *CompactRecord) uint64 { return r.counts & math.MaxUint16 }
	fieldcodec.Column(c, list, math.MaxUint16, out, func(r *CompactRecord, v uint64) { r.counts |= v })
	fieldcodec.Field(c, list, func(r *CompactRecord) *uint64 { return &r.bytes })
}

package flows

import (
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

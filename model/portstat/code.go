package portstat

import "github.com/weft-telemetry/weft/internal/fieldcodec"

// Code codes a reading.
func (r *Reading) Code(c *fieldcodec.Coder) {
	r.Port.Code(c)
	fieldcodec.Signed(c, &r.From)
	fieldcodec.Signed(c, &r.To)
	fieldcodec.Unsigned(c, &r.Source)
	r.Counters.code(c)
}

func (t *Counters) code(c *fieldcodec.Coder) {
	fieldcodec.Unsigned(c, &t.Has)
	for _, v := range []*uint64{
		&t.RxBytes, &t.TxBytes, &t.RxPackets, &t.TxPackets, &t.RxDiscards, &t.TxDiscards, &t.RxErrors, &t.TxErrors,
		&t.FCSErrors, &t.FECCorrected, &t.FECUncorrectable,
	} {
		c.Uint64(v)
	}
	for i := range t.Drops {
		c.Uint64(&t.Drops[i])
	}
	fieldcodec.Unsigned(c, &t.DropReasons)
	for i := range t.Class {
		t.Class[i].code(c)
	}
}

// code codes a class: one without fields, as most are, in a byte.
func (t *ClassCounters) code(c *fieldcodec.Coder) {
	fieldcodec.Unsigned(c, &t.Has)
	if t.Has == 0 {
		return
	}
	c.Uint64(&t.RxPauses)
	c.Uint64(&t.TxPauses)
	c.Uint64(&t.RxTransitions)
	fieldcodec.Signed(c, &t.RxPaused)
	fieldcodec.Signed(c, &t.TxPaused)
	c.Uint64(&t.TxBytes)
	c.Uint64(&t.Dropped)
	c.Uint64(&t.ECNMarked)
	fieldcodec.Signed(c, &t.QueueWatermark)
	fieldcodec.Signed(c, &t.PGWatermark)
	fieldcodec.Signed(c, &t.HeadroomWatermark)
	fieldcodec.Unsigned(c, &t.Watchdog)
	c.Uint64(&t.Storms)
}

// Code codes a sample.
func (s *Sample) Code(c *fieldcodec.Coder) {
	fieldcodec.Unsigned(c, &s.Node)
	fieldcodec.Unsigned(c, &s.In)
	fieldcodec.Unsigned(c, &s.Out)
	fieldcodec.Signed(c, &s.At)
	fieldcodec.Unsigned(c, &s.Source)
	fieldcodec.Unsigned(c, &s.Has)
	s.Flow.Code(c)
	fieldcodec.Unsigned(c, &s.Priority)
	fieldcodec.Unsigned(c, &s.Bytes)
	fieldcodec.Unsigned(c, &s.Rate)
	c.Uint64(&s.Pool)
	fieldcodec.Signed(c, &s.QueueDepth)
	fieldcodec.Signed(c, &s.Delay)
	fieldcodec.Unsigned(c, &s.Drop)
}

// Code codes a flow record.
func (r *FlowRecord) Code(c *fieldcodec.Coder) {
	fieldcodec.Unsigned(c, &r.Node)
	fieldcodec.Signed(c, &r.From)
	fieldcodec.Signed(c, &r.To)
	fieldcodec.Unsigned(c, &r.Source)
	r.Flow.Code(c)
	c.Uint64(&r.Packets)
	c.Uint64(&r.Bytes)
	fieldcodec.Unsigned(c, &r.Sampling)
}

package control

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/model/record"
)

// CounterStats account for what switches on sale report: readings of port counters,
// and samples of packets.
type CounterStats struct {
	Readings, Samples uint64
	FlowRecords       uint64
	Elsewhere         uint64 // flow records of packets that another switch reports
	Unknown           uint64 // of a port or switch that is not in the fabric
	Untimely          uint64 // further than TimeWindow from the collector's clock
}

// IngestReading takes a reading of a port's counters, which arrived at a time of the
// collector's clock.
func (c *Controller) IngestReading(now model.Time, r *portstat.Reading) {
	c.now = max(c.now, now)
	c.stats.Counters.Readings++
	if c.cfg.Forward != nil {
		c.cfg.Forward.Reading(c.now, r)
		return
	}
	if !c.fabric.HasNode(r.Port.Node) || c.fabric.Port(r.Port) == nil {
		c.stats.Counters.Unknown++
		return
	}
	if !c.timely(now, r.To) || r.Interval() <= 0 {
		c.stats.Counters.Untimely++
		return
	}
	c.protect("counters", func() {
		c.recordReading(r)
		c.counters.AddReading(r)
		c.auditor.AddReading(r)
	})
	c.liveness.markAlive(now, PortReading, r.Port.Node)
}

// IngestSample takes a sampled or dropped packet.
func (c *Controller) IngestSample(now model.Time, s *portstat.Sample) {
	c.now = max(c.now, now)
	c.stats.Counters.Samples++
	if c.cfg.Forward != nil {
		c.cfg.Forward.Sample(c.now, s)
		return
	}
	switch {
	case !c.fabric.HasNode(s.Node):
		c.stats.Counters.Unknown++
		return
	case !c.timely(now, s.At):
		c.stats.Counters.Untimely++
		return
	}
	c.protect("counters", func() {
		c.counters.AddSample(s)
		c.auditor.AddSample(s)
		c.addSampledFlow(now, s)
	})
	c.liveness.markAlive(now, PacketSample, s.Node)
}

// minRound bounds how often counters are judged, however often switches are polled.
const minRound = 10 * time.Millisecond

// concludeCounters judges readings and samples once per interval of the readings.
func (c *Controller) concludeCounters(now model.Time) {
	if now.Sub(c.counted) < minRound {
		return
	}
	interval := c.counters.Interval()
	if interval == 0 || now.Sub(c.counted) < interval {
		return
	}
	c.counted = now
	list := c.counters.Conclude()
	for i := range list {
		c.addEvidence(c.counters.Evidence(&list[i], now))
	}
}

// timely reports whether the time of a record is near the collector's clock.
func (c *Controller) timely(now, at model.Time) bool {
	return c.cfg.TimeWindow == 0 || at.Sub(now).Abs() <= c.cfg.TimeWindow
}

// readingLasts is for how many of its intervals a reading is a port's rate.
const readingLasts = 3

// recordReading records a port's load, paused time and longest queue.
func (c *Controller) recordReading(r *portstat.Reading) {
	rate := portRate{at: r.To, lasts: readingLasts * r.Interval()}
	seen := r.Has.All(portstat.HasBytes)
	if seen {
		rate.load = model.Rate(float64(r.TxBytes) * 8 / r.Interval().Seconds())
	}
	queue := model.Bytes(0)
	for i := range r.Class {
		k := &r.Class[i]
		if k.Has.All(portstat.HasRxPaused) {
			rate.paused, seen = max(rate.paused, float64(k.RxPaused)/float64(r.Interval())), true
		}
		if k.Has.All(portstat.HasQueueWatermark) {
			queue, seen = max(queue, k.QueueWatermark), true
		}
	}
	if !seen {
		return
	}
	c.meter.rate[r.Port] = rate
	c.meter.addReading(r, time.Duration(rate.paused*float64(r.Interval())))
	c.batch.Ports = append(c.batch.Ports, record.PortSample{
		Time: c.wallTime(r.To), Node: c.nodeName(r.Port.Node), Port: r.Port.Port, Samples: 1,
		Load: rate.load, Paused: rate.paused, Queue: queue, QueueMax: queue,
	})
}

package control

import (
	"math"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// readCounters reads the counters of all ports, unless that was done in this slot.
func (c *Controller) readCounters(now model.Time) {
	if now.Sub(c.meter.readAt) >= min(c.cfg.SampleInterval, c.cfg.Flows.Slot) {
		c.readNewestCounters(now)
	}
}

// readNewestCounters reads the counters of all ports.
func (c *Controller) readNewestCounters(now model.Time) {
	m := &c.meter
	if now == m.readAt {
		return
	}
	m.readAt = now
	m.list = c.devices.Counters(m.list[:0])
	for _, k := range m.list {
		reported := k.At != 0
		if !reported {
			k.At = now
		} else if !c.timely(now, k.At) {
			continue
		}
		p := m.ports[k.Port]
		switch {
		case p == nil:
			c.auditCounters(&k)
			m.ports[k.Port] = &meteredPort{last: k, sampled: k, reported: reported}
			m.order = append(m.order, k.Port)
		case k.At <= p.last.At:
			continue
		case k.restarted(&p.last):
			c.auditCounters(&k)
			*p = meteredPort{last: k, sampled: k, reported: reported}
		default:
			c.auditCounters(&k)
			span := k.At.Sub(p.last.At)
			m.addCounters(p.last.At, k.At, k.Port, min(k.Paused-p.last.Paused, span), k.Discards-p.last.Discards)
			if p.interval = span; k.Paused > p.last.Paused {
				p.pausedAt = k.At
			}
			p.last = k
		}
	}
}

// restarted reports whether counters are lower than before: the switch has restarted.
func (k *PortCounters) restarted(before *PortCounters) bool {
	return k.Bytes < before.Bytes || k.Discards < before.Discards || k.Paused < before.Paused
}

// samplePorts records every port: its newest label, and its counters since the
// last sample.
func (c *Controller) samplePorts(now model.Time) {
	c.readCounters(now)
	m := &c.meter
	span := now.Sub(m.sampledAt)
	if span < c.cfg.SampleInterval {
		return
	}
	m.sampledAt = now
	board := c.ports.States()
	for _, id := range m.order {
		p := m.ports[id]
		if p.last.At <= p.sampled.At {
			continue
		}
		counted := p.last.At.Sub(p.sampled.At)
		r := portRate{
			load:   model.Rate(float64(p.last.Bytes-p.sampled.Bytes) * 8 / counted.Seconds()),
			paused: min(1, float64(p.last.Paused-p.sampled.Paused)/float64(counted)),
		}
		if p.reported {
			r.at, r.lasts = p.last.At, readingLasts*max(counted, span)
		}
		m.rate[id], p.sampled = r, p.last
		s := record.PortSample{
			Time: c.wallTime(now), Node: c.nodeName(id.Node), Port: id.Port, Samples: 1, Load: r.load, Paused: r.paused,
		}
		if age, ok := board.Age(id, now); ok && age <= max(span, m.slot) {
			state, _ := board.Newest(id)
			s.Queue, s.Latency = state.DequeueDepth, state.Latency
		}
		c.batch.Ports = append(c.batch.Ports, s)
	}
	c.sampleLabelledPorts(now, span)
}

// sampleLabelledPorts records ports without counters: their newest labels since
// the last sample.
func (c *Controller) sampleLabelledPorts(now model.Time, span time.Duration) {
	board := c.ports.States()
	for _, p := range board.ReportedPorts() {
		// A label has no more than the moment of one packet: counters win.
		r := c.meter.rate[p]
		if m := c.meter.ports[p]; m != nil && (!m.reported || r.counted(now)) {
			continue
		}
		age, _ := board.Age(p, now)
		if age > span {
			if !r.counted(now) {
				delete(c.meter.rate, p)
			}
			continue
		}
		state, _ := board.Newest(p)
		if q := c.fabric.Port(p); q != nil && !r.counted(now) {
			r = portRate{}
			r.load = model.Rate(float64(q.Rate) * float64(state.Utilisation) / math.MaxUint16)
		}
		c.meter.rate[p] = r
		c.batch.Ports = append(c.batch.Ports, record.PortSample{
			Time: c.wallTime(now), Node: c.nodeName(p.Node), Port: p.Port, Samples: 1,
			Queue: state.DequeueDepth, Latency: state.Latency, Load: r.load, Paused: r.paused,
		})
	}
}

package control

import (
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

// portMeter turns port counters into rates, and remembers slots in which ports were
// paused or discarded packets: a packet that is stuck in a paused queue is not
// lost, and one that a full buffer discarded was not lost silently.
type portMeter struct {
	at   model.Time // of the last sample
	last map[model.Port]PortCounters
	list []PortCounters
	rate map[model.Port]portRate // over the last sample

	slot  time.Duration
	slots []slotCounters // the newest slots, by number modulo their count
}

// portRate is what a port did between two samples.
type portRate struct {
	load   model.Rate
	paused float64 // share of the time
	// lasts is for how long after at it is a port's rate, if it comes from a reading of
	// counters, whose interval is longer than that of samples; else 0.
	at    model.Time
	lasts time.Duration
}

// counted reports whether the rate comes from a reading that still holds.
func (r *portRate) counted(now model.Time) bool { return r.lasts > 0 && now.Sub(r.at) <= r.lasts }

// slotCounters are the counters of one slot.
type slotCounters struct {
	number   int64
	paused   map[model.Port]time.Duration
	discards map[model.NodeID]uint64 // by switch: a loss is not located more precisely
}

// meterSlots is how many slots are remembered.
const meterSlots = 16

func newPortMeter(slot time.Duration) portMeter {
	return portMeter{last: map[model.Port]PortCounters{}, rate: map[model.Port]portRate{}, slot: slot, slots: make([]slotCounters, meterSlots)}
}

// addCounters adds what a port counted up to an instant.
func (m *portMeter) addCounters(now model.Time, port model.Port, paused time.Duration, discards uint64) {
	if paused == 0 && discards == 0 {
		return
	}
	// What was counted up to a slot's first instant happened before it.
	n := (int64(now) - 1) / int64(m.slot)
	h := &m.slots[((n%meterSlots)+meterSlots)%meterSlots]
	if h.number != n || h.paused == nil {
		*h = slotCounters{n, map[model.Port]time.Duration{}, map[model.NodeID]uint64{}}
	}
	h.paused[port] += paused
	h.discards[port.Node] += discards
}

// hasCounters reports whether counters of a port are known.
func (m *portMeter) hasCounters(port model.Port) bool {
	_, known := m.last[port]
	return known
}

// pausedIn is the largest share of a slot, of those from first to last, that a
// port was paused. Port 0 of a switch is any of its ports.
func (m *portMeter) pausedIn(port model.Port, first, last int64) (share float64) {
	for i := range m.slots {
		h := &m.slots[i]
		if h.number < first || h.number > last {
			continue
		}
		for p, d := range h.paused {
			if p.Node == port.Node && (port.Port == 0 || p.Port == port.Port) {
				share = max(share, float64(d)/float64(m.slot))
			}
		}
	}
	return share
}

// pausedFor is pausedIn of the port that flows should leave a switch by, where the
// switch says that they left by none: another of its ports does not hold them.
func (m *portMeter) pausedFor(port model.Port, flows []model.FlowKey, routes *topo.Routes, first, last int64) (share float64) {
	if port.Port != 0 {
		return m.pausedIn(port, first, last)
	}
	for i := range flows {
		if out, ok := routes.NextHop(port.Node, flows[i]); ok {
			share = max(share, m.pausedIn(model.Port{Node: port.Node, Port: out}, first, last))
		}
	}
	return share
}

// pausedPorts lists the ports that were paused for at least a share of a slot,
// ascending.
func (m *portMeter) pausedPorts(slot int64, share float64) (list []model.Port) {
	h := &m.slots[((slot%meterSlots)+meterSlots)%meterSlots]
	if h.number != slot {
		return nil
	}
	for p, d := range h.paused {
		if float64(d) >= share*float64(m.slot) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, model.Port.Compare)
	return list
}

// discardedIn is how many packets a switch discarded in slots.
func (m *portMeter) discardedIn(sw model.NodeID, first, last int64) (n uint64) {
	for i := range m.slots {
		if h := &m.slots[i]; h.number >= first && h.number <= last {
			n += h.discards[sw]
		}
	}
	return n
}

// samplePorts records every port: its newest label, and its counters since the
// last sample.
func (c *Controller) samplePorts(now model.Time) {
	m := &c.meter
	span := now.Sub(m.at)
	if span < c.cfg.SampleInterval {
		return
	}
	m.at = now
	m.list = c.devices.Counters(m.list[:0])
	board := c.ports.States()
	for _, k := range m.list {
		before, known := m.last[k.Port]
		m.last[k.Port] = k
		if !known {
			continue
		}
		m.addCounters(now, k.Port, k.Paused-before.Paused, k.Discards-before.Discards)
		r := portRate{
			load:   model.Rate(float64(k.Bytes-before.Bytes) * 8 / span.Seconds()),
			paused: min(1, float64(k.Paused-before.Paused)/float64(span)),
		}
		m.rate[k.Port] = r
		s := record.PortSample{
			Time: c.wallTime(now), Node: c.nodeName(k.Port.Node), Port: k.Port.Port, Samples: 1, Load: r.load, Paused: r.paused,
		}
		if age, ok := board.Age(k.Port, now); ok && age <= max(span, m.slot) {
			state, _ := board.Newest(k.Port)
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
		if _, counted := c.meter.last[p]; counted {
			continue
		}
		age, _ := board.Age(p, now)
		// A label has no more than the moment of one packet: counters win.
		r := c.meter.rate[p]
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

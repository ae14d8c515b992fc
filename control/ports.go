package control

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// meter turns counters of ports into rates.
type meter struct {
	at   model.Time // of the last sample
	last map[model.Port]PortCount
	list []PortCount
}

// sample records every port: what labels said last, and what its counters say
// of the time since the last sample.
func (c *Controller) sample(now model.Time) {
	m := &c.meter
	span := now.Sub(m.at)
	if span < c.cfg.Sample {
		return
	}
	m.at = now
	m.list = c.devices.Counters(m.list[:0])
	board := c.ports.Board()
	for _, k := range m.list {
		before, known := m.last[k.Port]
		m.last[k.Port] = k
		if !known {
			continue
		}
		s := record.PortSample{
			Time: c.time(now), Node: c.name(k.Port.Node), Port: k.Port.Port, Samples: 1,
			Load:   model.Rate(float64(k.Bytes-before.Bytes) * 8 / span.Seconds()),
			Paused: min(1, float64(k.Paused-before.Paused)/float64(span)),
		}
		if age, ok := board.Age(k.Port, now); ok && age <= max(span, 10*time.Millisecond) {
			state, _ := board.Newest(k.Port)
			s.Queue, s.Latency = state.DequeueDepth, state.Latency
		}
		c.batch.Ports = append(c.batch.Ports, s)
	}
}

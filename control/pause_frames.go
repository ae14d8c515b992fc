package control

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/pfc"
)

// framePauses are the pauses of a port that its mirrored PFC frames show, of any class: of
// switches that report no counters they are the only sign of pauses.
type framePauses struct {
	until    [pfc.Priorities]model.Time // by class: when its newest pause ends
	newest   model.Time                 // frame
	credited model.Time                 // pauses up to here are in the slots
}

// addPauseFrame takes a PFC frame that a port received.
func (c *Controller) addPauseFrame(at model.Time, port model.Port, f *pfc.Frame) {
	if !c.fabric.HasNode(port.Node) || !c.timely(c.now, at) {
		return
	}
	link := c.fabric.Port(port)
	if link == nil || link.Rate <= 0 {
		return
	}
	p := c.meter.framePauses[port]
	switch {
	case p == nil:
		p = &framePauses{credited: at}
		c.meter.framePauses[port] = p
	case at < p.newest:
		return // it was overtaken
	}
	c.meter.creditFrames(port, p, at)
	p.newest = at
	for class := range p.until {
		if quanta, ok := f.PauseOf(model.Priority(class)); ok {
			p.until[class] = at.Add(quanta.Duration(link.Rate))
		}
	}
}

// creditPauseFrames notes the pauses up to an instant, of those that still last.
func (m *portMeter) creditPauseFrames(to model.Time) {
	for port, p := range m.framePauses {
		m.creditFrames(port, p, to)
	}
}

// creditFrames notes a port's pauses up to an instant.
func (m *portMeter) creditFrames(port model.Port, p *framePauses, to model.Time) {
	from, end := p.credited, min(to, slices.Max(p.until[:]))
	p.credited = max(from, to)
	for from < end {
		n := int64(from) / int64(m.slot)
		next := min(end, model.Time((n+1)*int64(m.slot)))
		if h := m.slotCounters(n); h != nil {
			h.byFrames[port] += next.Sub(from)
		}
		from = next
	}
}

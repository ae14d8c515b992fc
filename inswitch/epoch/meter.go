package epoch

import (
	"github.com/weft-telemetry/weft/model"
)

// meter counts the traffic from one ingress to one egress port in an epoch.
type meter struct {
	number  uint32
	packets uint32
	bytes   uint64
}

// meter returns the current epoch's meter of a pair of ports.
func (t *telemetry) meter(in, out model.PortID, class model.Priority) *meter {
	table := &t.meters[class&7]
	side := t.ports + 1
	if *table == nil {
		*table = make([]meter, t.cfg.Epochs*side*side)
	}
	m := &(*table)[(t.now.index*side+int(in))*side+int(out)]
	if m.number != t.now.number {
		*m = meter{number: t.now.number}
	}
	return m
}

// leadsToPausedPort reports whether a meter counts the last traffic of an
// ingress port to an egress port that was paused: polls follow that direction,
// and the analysis must see why.
func (t *telemetry) leadsToPausedPort(m *meter, in, out model.PortID, now model.Time) bool {
	return t.lastArrivalEpoch[in]-m.number < uint32(t.cfg.Epochs) && t.wasPaused(in, out, now)
}

// hadTraffic reports whether traffic went from one port to another in the
// epochs kept, counted from the last packet that arrived at the first, or is
// still queued: in a deadlock no packet moves.
func (t *telemetry) hadTraffic(in, out model.PortID) bool {
	side := t.ports + 1
	for class := range t.meters {
		if t.meters[class] == nil {
			continue
		}
		if h := t.occupancy.pair(in, out, model.Priority(class)); t.occupancy.current(&h.backlog, out,
			model.Priority(class)).packets > 0 {
			return true
		}
		for i := range t.cfg.Epochs {
			if m := &t.meters[class][(i*side+int(in))*side+int(out)]; m.packets > 0 &&
				t.lastArrivalEpoch[in]-m.number < uint32(t.cfg.Epochs) {
				return true
			}
		}
	}
	return false
}

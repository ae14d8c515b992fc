package truth

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Peak is the deepest that a queue was, and when first.
type Peak struct {
	Bytes   model.Bytes
	Packets int32 // at that time
	At      engine.Time
}

type depths struct{ peaks []Peak } // by port × priorities

// enqueued is told before the packet joins the queue.
func (d *depths) enqueued(now engine.Time, queue int32, p *sim.Packet, out *sim.Port) {
	depth := model.Bytes(out.QueueBytes(p.Priority) + int64(p.Size))
	if pk := &d.peaks[queue]; depth > pk.Bytes {
		*pk = Peak{depth, out.QueuePackets(p.Priority) + 1, now}
	}
}

// Peak returns the deepest that a switch's egress queue was.
func (r *Recorder) Peak(p model.Port, prio model.Priority) Peak {
	if r.depths == nil {
		return Peak{}
	}
	return r.depths.peaks[(r.base[p.Node]+int32(p.Port)-1)*priorities+int32(prio)]
}

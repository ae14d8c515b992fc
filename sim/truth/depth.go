package truth

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Peak is the maximum length of a queue, and when it was first reached.
type Peak struct {
	Bytes   model.Bytes
	Packets int32 // at that time
	At      engine.Time
}

type depths struct{ peaks []Peak } // by port × priorities

// enqueued is called before the packet is enqueued.
func (d *depths) enqueued(now engine.Time, queue int32, p *sim.Packet, out *sim.Port) {
	depth := model.Bytes(out.QueueBytes(p.Priority) + int64(p.Size))
	if pk := &d.peaks[queue]; depth > pk.Bytes {
		*pk = Peak{depth, out.QueuePackets(p.Priority) + 1, now}
	}
}

// Peak returns the maximum length of a switch's egress queue.
func (r *Recorder) Peak(p model.Port, prio model.Priority) Peak {
	if r.depths == nil {
		return Peak{}
	}
	return r.depths.peaks[(r.base[p.Node]+int32(p.Port)-1)*priorities+int32(prio)]
}

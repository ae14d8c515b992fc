package truth

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Reasons is the number of drop reasons.
const Reasons = len(sim.Counts{}.Drops)

// Drop is one dropped packet.
type Drop struct {
	At       engine.Time
	Port     model.Port // the full queue, the link that lost it, or the ingress port
	Reason   sim.Reason
	Kind     sim.Kind
	Key      model.FlowKey // zero for a pause frame
	Flow     int           // -1 for none
	Reverse  bool
	Priority model.Priority
	Seq      int64
	Size     int32 // bytes on the wire
}

type drops struct {
	list       []Drop
	max        int
	unrecorded int64
	totals     [Reasons]int64
}

func (d *drops) dropped(now engine.Time, p *sim.Packet, at *sim.Port, why sim.Reason) {
	d.totals[why]++
	if len(d.list) >= d.max {
		d.unrecorded++
		return
	}
	id, reverse := p.Flow()
	d.list = append(d.list, Drop{
		At: now, Port: model.Port{Node: at.Node, Port: at.ID}, Reason: why, Kind: p.Kind,
		Key: p.Key, Flow: id, Reverse: reverse, Priority: p.Priority, Seq: p.Seq, Size: p.Size,
	})
}

// Drops returns the drops in time order, pause frames included. The list
// belongs to the Recorder.
func (r *Recorder) Drops() []Drop {
	if r.drops == nil {
		return nil
	}
	// The network runs one node after the other, one lookahead window each.
	slices.SortStableFunc(r.drops.list, func(a, b Drop) int { return cmp.Compare(a.At, b.At) })
	return r.drops.list
}

// DropTotals counts all drops by sim.Reason, including those beyond the list's
// bound.
func (r *Recorder) DropTotals() [Reasons]int64 {
	if r.drops == nil {
		return [Reasons]int64{}
	}
	return r.drops.totals
}

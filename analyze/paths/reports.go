package paths

import (
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Reports says which switches reported a slot, how completely, and which flows they prove
// to be absent. Maps of one slot, each with a part of its flows, share it.
type Reports struct {
	Slot   int64 // index: the start divided by the length
	Length time.Duration

	rows  []switchReports
	index []int32                // by node: row plus one; 0: no report
	far   map[model.NodeID]int32 // the same for ids that no fabric has
	lost  map[family]bool        // flowsets that a switch usually sends did not all arrive
}

// switchReports is one switch's flowsets of the slot.
type switchReports struct {
	sw   model.NodeID
	sets []flowsetReport
}

// flowsetReport is what is kept of a flowset besides its records.
type flowsetReport struct {
	mayContain func(model.FlowKey) bool // nil: absence is not proven
	v6         bool
	complete   bool
	partial    bool // some of it did not arrive
}

// family is the flows of one address family at a switch.
type family struct {
	sw model.NodeID
	v6 bool
}

// NewReports returns the reports of a slot in which none has arrived.
func NewReports(slot int64, length time.Duration) *Reports {
	r := &Reports{lost: map[family]bool{}, far: map[model.NodeID]int32{}}
	r.Reset(slot, length)
	return r
}

// Reset starts another slot with the same memory.
func (r *Reports) Reset(slot int64, length time.Duration) {
	r.Slot, r.Length = slot, length
	for i := range r.rows {
		if id := r.rows[i].sw; int(id) < len(r.index) {
			r.index[id] = 0
		}
		clear(r.rows[i].sets) // filters are large
	}
	r.rows = r.rows[:0]
	clear(r.far)
	clear(r.lost)
}

// Add notes that a flowset has arrived.
func (r *Reports) Add(d *flows.Decoded) {
	set := flowsetReport{v6: d.V6, complete: d.Complete(), partial: d.MissingCells+d.MissingFilter > 0}
	if d.Missed == 0 {
		set.mayContain = d.MayContain
	}
	i := r.row(d.Switch)
	if i < 0 {
		i = len(r.rows)
		if i < cap(r.rows) {
			r.rows = r.rows[:i+1]
			r.rows[i].sw, r.rows[i].sets = d.Switch, r.rows[i].sets[:0]
		} else {
			r.rows = append(r.rows, switchReports{sw: d.Switch})
		}
		r.setRow(d.Switch, int32(i+1))
	}
	r.rows[i].sets = append(r.rows[i].sets, set)
}

// row returns a switch's row, or -1.
func (r *Reports) row(sw model.NodeID) int {
	if uint64(sw) < uint64(len(r.index)) {
		return int(r.index[sw]) - 1
	}
	if len(r.far) == 0 {
		return -1
	}
	return int(r.far[sw]) - 1
}

func (r *Reports) setRow(sw model.NodeID, row int32) {
	if int64(sw) >= topo.MaxNodes {
		r.far[sw] = row
		return
	}
	for int(sw) >= len(r.index) {
		r.index = append(r.index, make([]int32, max(int(sw)+1-len(r.index), 64))...)
	}
	r.index[sw] = row
}

// MarkLost says that a flowset of a switch did not arrive. What the others do not
// have is then not absent, and their counters may lack packets. Call it before
// records are added.
func (r *Reports) MarkLost(sw model.NodeID, v6 bool) { r.lost[family{sw, v6}] = true }

// Start returns the start of the slot on a clock without offset.
func (r *Reports) Start() model.Time { return model.Time(r.Slot * int64(r.Length)) }

// End returns the end of the slot on a clock without offset.
func (r *Reports) End() model.Time { return r.Start().Add(r.Length) }

// Reported reports whether a switch's flowset is on the map.
func (r *Reports) Reported(sw model.NodeID) bool { return r.row(sw) >= 0 }

// Complete reports whether everything that a switch counted is on the map.
func (r *Reports) Complete(sw model.NodeID) bool {
	i := r.row(sw)
	if i < 0 {
		return false
	}
	for _, set := range r.rows[i].sets {
		if !set.complete || len(r.lost) > 0 && r.lost[family{sw, set.v6}] {
			return false
		}
	}
	return true
}

// partial reports whether something that a switch reported about a family of flows
// did not arrive.
func (r *Reports) partial(sw model.NodeID, v6 bool) bool {
	if i := r.row(sw); i >= 0 {
		for _, set := range r.rows[i].sets {
			if set.v6 == v6 && set.partial {
				return true
			}
		}
	}
	return r.lost[family{sw, v6}]
}

// withoutRecord returns what is known about a flow that a switch has no record of.
func (r *Reports) withoutRecord(sw model.NodeID, key *model.FlowKey) Presence {
	i := r.row(sw)
	if i < 0 || len(r.lost) > 0 && r.lost[family{sw, key.V6}] {
		return Unknown
	}
	absent := Unknown
	for _, set := range r.rows[i].sets {
		if set.v6 != key.V6 {
			continue // not about this flow
		}
		if set.mayContain == nil || set.mayContain(*key) {
			return Unknown
		}
		absent = Absent
	}
	return absent
}

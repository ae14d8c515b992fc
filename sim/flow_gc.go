package sim

import (
	"slices"

	"github.com/weft-telemetry/weft/sim/engine"
)

// ForgetFinished releases flows that finished before an instant, so that a run
// can continue for ever in bounded memory. Records no longer lists them, and
// later flows reuse their ids; an observer that keeps ids must be done with
// them. Their packets that are still in flight are dropped.
func (n *Network) ForgetFinished(before engine.Time) {
	n.settle()
	n.recyclesIDs = true
	forget := func(r FlowRecord) bool {
		if r.Finish >= before {
			return false
		}
		if f := n.flows[r.ID]; f != nil && f.done {
			n.flows[r.ID] = nil
			n.free = append(n.free, freeID{int32(r.ID), f.timerGen + 1})
		}
		return true
	}
	n.records = slices.DeleteFunc(n.records, forget)
	n.computations = slices.DeleteFunc(n.computations, forget)
}

// freeID is a flow id for reuse. Timers of its last flow may be pending, so
// generations continue from there.
type freeID struct {
	id  int32
	gen uint16
}

// assignID gives a flow its id, the index in flows.
func (n *Network) assignID(f *flow) {
	if last := len(n.free) - 1; last >= 0 {
		f.id, f.timerGen = n.free[last].id, n.free[last].gen
		n.free = n.free[:last]
		n.flows[f.id] = f
		return
	}
	f.id = int32(len(n.flows))
	n.flows = append(n.flows, f)
}

// flowOf returns the flow that a packet belongs to, or nil if it was forgotten.
func (n *Network) flowOf(p *Packet) *flow {
	f := n.flows[p.flow]
	if !n.recyclesIDs || f != nil && (f.key.Equal(&p.Key) || f.reverseKey.Equal(&p.Key)) {
		return f
	}
	return nil
}

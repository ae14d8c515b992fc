package embedded

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// flowIDs numbers the flows and the paths of appended records: the rows of
// flow_keys and flow_paths. A number is used while it is in memory, and never again;
// what returns later gets another. So memory is bounded, and both tables need
// neither an index nor a search. They shrink with retention: see pruneFlowIDs.
type flowIDs struct {
	index map[model.FlowKey]int32 // into flows
	flows []numberedFlow
	paths map[string]*numberedPath // by appendPath

	most               int  // of flows in memory
	twice              bool // a flow may have two numbers
	nextFlow, nextPath int64
	// What this batch added, to be appended with it.
	newFlows []numberedFlow
	newPaths []*numberedPath
	text     []byte
}

type numberedFlow struct {
	id       int64
	key      model.FlowKey
	src, dst string
	path     *numberedPath // its last one
}

type numberedPath struct {
	id       int64
	slot     int64
	exact    bool
	partial  bool
	switches []string
}

// flowsPerPath is how many times fewer paths than flows are in memory.
const flowsPerPath = 8

// reset forgets all numbers. Those up to the given ones are used.
func (n *flowIDs) reset(lastFlow, lastPath int64) {
	*n = flowIDs{
		index: map[model.FlowKey]int32{}, paths: map[string]*numberedPath{},
		most: n.most, nextFlow: lastFlow + 1, nextPath: lastPath + 1, twice: n.twice || lastFlow > 0,
	}
}

// beginBatch begins the records of a transaction.
func (n *flowIDs) beginBatch() { n.newFlows, n.newPaths = n.newFlows[:0], n.newPaths[:0] }

// abandonBatch forgets the numbers of a transaction that failed: their rows do not
// exist.
func (n *flowIDs) abandonBatch() { n.reset(n.nextFlow-1, n.nextPath-1) }

// number returns the numbers of a record's flow and path.
func (n *flowIDs) number(r *record.FlowSlot) (flow, path int64) {
	at, known := n.index[r.Flow]
	if !known || n.flows[at].src != r.Src || n.flows[at].dst != r.Dst {
		at = n.addFlow(r, at, known)
	}
	f := &n.flows[at]
	if f.path == nil || !f.path.equals(r) {
		f.path = n.pathOf(r)
	}
	return f.id, f.path.id
}

// addFlow numbers a flow; one with other hosts than before replaces that.
func (n *flowIDs) addFlow(r *record.FlowSlot, at int32, known bool) int32 {
	f := numberedFlow{id: n.nextFlow, key: r.Flow, src: r.Src, dst: r.Dst}
	n.nextFlow++
	n.newFlows = append(n.newFlows, f)
	if known {
		n.twice = true // if it gets its former hosts again
		n.flows[at] = f
		return at
	}
	if len(n.flows) >= n.most {
		n.twice = true
		clear(n.index)
		clear(n.flows)
		n.flows = n.flows[:0]
	}
	at = int32(len(n.flows))
	n.flows = append(n.flows, f)
	n.index[r.Flow] = at
	return at
}

func (n *flowIDs) pathOf(r *record.FlowSlot) *numberedPath {
	n.text = appendPath(n.text[:0], r)
	if p := n.paths[string(n.text)]; p != nil {
		return p
	}
	if len(n.paths) >= max(n.most/flowsPerPath, 1) {
		clear(n.paths)
	}
	p := &numberedPath{id: n.nextPath, slot: int64(r.Slot), exact: r.Exact, partial: r.Partial, switches: make([]string, len(r.Path))}
	for i := range r.Path {
		p.switches[i] = r.Path[i].Switch
	}
	n.nextPath++
	n.newPaths = append(n.newPaths, p)
	n.paths[string(n.text)] = p
	return p
}

// appendPath appends what identifies a path: no two have the same bytes.
func appendPath(b []byte, r *record.FlowSlot) []byte {
	b = binary.AppendVarint(b, int64(r.Slot))
	flags := byte(0)
	if r.Exact {
		flags |= 1
	}
	if r.Partial {
		flags |= 2
	}
	b = append(b, flags)
	for i := range r.Path {
		b = binary.AppendUvarint(b, uint64(len(r.Path[i].Switch)))
		b = append(b, r.Path[i].Switch...)
	}
	return b
}

func (p *numberedPath) equals(r *record.FlowSlot) bool {
	return p.slot == int64(r.Slot) && p.exact == r.Exact && p.partial == r.Partial &&
		slices.EqualFunc(p.switches, r.Path, func(s string, h record.FlowHop) bool { return s == h.Switch })
}

// forgetBefore forgets the numbers below the given ones, whose rows were removed.
func (n *flowIDs) forgetBefore(flow, path int64) {
	if slices.ContainsFunc(n.flows, func(f numberedFlow) bool { return f.id < flow }) {
		kept := n.flows[:0]
		clear(n.index)
		for _, f := range n.flows {
			if f.id >= flow {
				n.index[f.key] = int32(len(kept))
				kept = append(kept, f)
			}
		}
		clear(n.flows[len(kept):])
		n.flows = kept
	}
	maps.DeleteFunc(n.paths, func(_ string, p *numberedPath) bool { return p.id < path })
	for i := range n.flows {
		if p := n.flows[i].path; p != nil && p.id < path {
			n.flows[i].path = nil
		}
	}
}

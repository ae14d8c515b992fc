package embedded

import (
	"encoding/binary"
	"hash/maphash"
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
	seeds [2]maphash.Seed
	// Flows of two generations: when the recent one is full it becomes the former, and
	// those of the former that did not return are forgotten. So a fabric with as many
	// flows as fit into one keeps all its numbers.
	recent, former map[flowHash]flowNumber
	paths          map[string]*numberedPath // by appendPath

	most               int  // of flows in memory
	twice              bool // a flow may have two numbers
	nextFlow, nextPath int64
	// What this batch added, to be appended with it.
	newFlows []numberedFlow
	newPaths []*numberedPath
	text     []byte
}

// flowHash stands for a flow and its hosts, with keys that are drawn for each process: 128
// bits do not collide, and take a quarter of the memory.
type flowHash [2]uint64

type flowNumber struct {
	id   int64
	path *numberedPath // its last one
}

type numberedFlow struct {
	id       int64
	key      model.FlowKey
	src, dst string
}

type numberedPath struct {
	id       int64
	slot     int64
	exact    bool
	partial  bool
	switches []string
}

// flowsPerPath is how many times fewer paths than flows are in memory.
const flowsPerPath = 32

// reset forgets all numbers. Those up to the given ones are used.
func (n *flowIDs) reset(lastFlow, lastPath int64) {
	*n = flowIDs{
		seeds:  [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		recent: map[flowHash]flowNumber{}, former: map[flowHash]flowNumber{}, paths: map[string]*numberedPath{},
		most: n.most, nextFlow: lastFlow + 1, nextPath: lastPath + 1, twice: n.twice || lastFlow > 0,
	}
}

// beginBatch begins the records of a transaction.
func (n *flowIDs) beginBatch() { n.newFlows, n.newPaths = n.newFlows[:0], n.newPaths[:0] }

// abandonBatch forgets the numbers of a transaction that failed: their rows do not
// exist.
func (n *flowIDs) abandonBatch() { n.reset(n.nextFlow-1, n.nextPath-1) }

// number returns the number of a record's flow, and its path.
func (n *flowIDs) number(r *record.FlowSlot) (flow int64, path *numberedPath) {
	name := flowName{r.Flow, r.Src, r.Dst}
	h := flowHash{maphash.Comparable(n.seeds[0], name), maphash.Comparable(n.seeds[1], name)}
	f, known := n.recent[h]
	if known && f.path != nil && f.path.equals(r) {
		return f.id, f.path
	}
	if !known {
		if f, known = n.former[h]; !known {
			f = flowNumber{id: n.nextFlow}
			n.nextFlow++
			n.newFlows = append(n.newFlows, numberedFlow{f.id, r.Flow, r.Src, r.Dst})
		}
		n.makeSpace()
	}
	if f.path == nil || !f.path.equals(r) {
		f.path = n.pathOf(r)
	}
	n.recent[h] = f
	return f.id, f.path
}

// makeSpace begins a new generation if the recent one is full.
func (n *flowIDs) makeSpace() {
	if len(n.recent) < max(n.most/2, 1) {
		return
	}
	n.twice = n.twice || len(n.former) > 0
	clear(n.former)
	n.recent, n.former = n.former, n.recent
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
	for _, generation := range []map[flowHash]flowNumber{n.recent, n.former} {
		for h, f := range generation {
			if f.id < flow {
				delete(generation, h)
			} else if f.path != nil && f.path.id < path {
				generation[h] = flowNumber{id: f.id}
			}
		}
	}
	maps.DeleteFunc(n.paths, func(_ string, p *numberedPath) bool { return p.id < path })
}

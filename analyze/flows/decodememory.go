package flows

import (
	"sync"

	"github.com/weft-telemetry/weft/sketch"
)

// Memory is memory for decoding one slot after the other. The zero value is ready. One
// call at a time uses it.
type Memory struct {
	v4 alonePool[sketch.Key4]
	v6 alonePool[sketch.Key6]
	// records are those of the last results, by index of the flowset. Results that
	// needed neighbours are not among them.
	records [][]Record
	compact [][]CompactRecord // likewise
}

// alonePool holds the memory of workers.
type alonePool[K sketch.Key] struct {
	mu   sync.Mutex
	free []*alone[K]
}

func (p *alonePool[K]) take() *alone[K] {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	if last < 0 {
		return new(alone[K])
	}
	a := p.free[last]
	p.free = p.free[:last]
	return a
}

func (p *alonePool[K]) put(a *alone[K]) {
	p.mu.Lock()
	p.free = append(p.free, a)
	p.mu.Unlock()
}

// alonesOf returns the memory of one family.
func alonesOf[K sketch.Key](m *Memory) *alonePool[K] {
	if p, ok := any(&m.v4).(*alonePool[K]); ok {
		return p
	}
	return any(&m.v6).(*alonePool[K])
}

// reset begins a slot of some flowsets. What the last one had more of is released.
func (m *Memory) reset(sets int) {
	m.records, m.compact = resizedLists(m.records, sets), resizedLists(m.compact, sets)
}

// resizedLists returns n lists, and keeps those that there are.
func resizedLists[T any](lists [][]T, n int) [][]T {
	if n < len(lists) {
		clear(lists[n:])
	}
	return append(lists[:min(n, len(lists))], make([][]T, max(n-len(lists), 0))...)
}

// lend gives a decoder the memory for the records of a flowset.
func lend[T any](lists [][]T, set, flows int) []T {
	list := lists[set]
	lists[set] = nil
	if cap(list) < flows || cap(list) > 4*flows+1024 {
		return nil
	}
	return list
}

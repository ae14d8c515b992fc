package flows

import "github.com/weft-telemetry/weft/sketch"

// flowIndex assigns an id to every flow of all switches. Several goroutines may
// look up at once; only one may add.
type flowIndex[K sketch.Key] struct {
	family *sketch.Family // any; for its hash
	keys   []K            // by id
	slots  []uint32       // id + 1; 0: free. A power of two, at most half full.
}

func newFlowIndex[K sketch.Key](f *sketch.Family) *flowIndex[K] {
	return &flowIndex[K]{family: f, slots: make([]uint32, 1<<10)}
}

// lookup returns the flow's id, or noFlow.
func (x *flowIndex[K]) lookup(key *K) uint32 {
	mask := uint64(len(x.slots) - 1)
	for i := sketch.HashOf(x.family, key).A & mask; ; i = (i + 1) & mask {
		n := x.slots[i]
		if n == 0 {
			return noFlow
		}
		if x.keys[n-1] == *key {
			return n - 1
		}
	}
}

// addFlow returns the flow's id and whether it is new.
func (x *flowIndex[K]) addFlow(key *K) (number uint32, fresh bool) {
	if number = x.lookup(key); number != noFlow {
		return number, false
	}
	x.keys = append(x.keys, *key)
	if 2*len(x.keys) > len(x.slots) {
		x.slots = make([]uint32, 2*len(x.slots))
		for i := range x.keys {
			x.insert(uint32(i))
		}
	} else {
		x.insert(uint32(len(x.keys) - 1))
	}
	return uint32(len(x.keys) - 1), true
}

func (x *flowIndex[K]) insert(number uint32) {
	mask := uint64(len(x.slots) - 1)
	i := sketch.HashOf(x.family, &x.keys[number]).A & mask
	for x.slots[i] != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = number + 1
}

const noFlow = ^uint32(0)

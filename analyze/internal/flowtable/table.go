// Package flowtable numbers flows: an open-addressing table from keys to small numbers,
// which index the columns of its user. Numbers of deleted flows are given again. Once its
// memory has grown, it allocates nothing.
package flowtable

import (
	"math/rand/v2"

	"github.com/weft-telemetry/weft/internal/hugepages"
	"github.com/weft-telemetry/weft/model"
)

// seed makes collisions unpredictable for those who choose flows. No result depends on
// it: numbers follow the order of insertion.
var seed = rand.Uint64()

// Hash returns the hash of a key that all tables of the process use.
func Hash(key *model.FlowKey) uint64 { return key.Hash(seed) }

// Table is a set of numbered flows. The zero value is empty.
type Table struct {
	// slots hold 0, or the upper half of a hash and a number plus one. A flow is at
	// its hash modulo the length, or after it with no empty slot between.
	// Invariant: at least half are 0.
	slots []uint64
	keys  []model.FlowKey // by number
	free  []uint32        // numbers of deleted flows
	// hinted are numbers by hint: that of the flow that was found with the hint before.
	hinted []uint32
}

const (
	tagMask    = ^uint64(1<<32 - 1)
	firstSlots = 16
)

// Len returns the number of flows.
func (t *Table) Len() int { return len(t.keys) - len(t.free) }

// Numbers returns how many numbers have been in use at once: columns have that length.
func (t *Table) Numbers() int { return len(t.keys) }

// Key returns the key of a numbered flow.
func (t *Table) Key(number uint32) *model.FlowKey { return &t.keys[number] }

// Find returns the number of a flow.
func (t *Table) Find(key *model.FlowKey, hash uint64) (number uint32, ok bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s == 0 {
			return 0, false
		}
		if (s^hash)&tagMask == 0 {
			if n := uint32(s) - 1; t.keys[n].Equal(key) {
				return n, true
			}
		}
	}
}

// TouchBatch is how many flows are touched at once.
const TouchBatch = 32

// Touch loads what the search for some flows, at most TouchBatch, reads: the slots of all,
// then the keys of all. A search waits for its slot, its key and, after a wrong prediction,
// for both again; here the loads of different flows overlap. Numbers are set to those that
// the flows have if they are where their hashes say. The result has no meaning.
func (t *Table) Touch(hashes []uint64, numbers *[TouchBatch]uint32) (touched uint64) {
	if len(t.keys) == 0 {
		return 0
	}
	mask := uint64(len(t.slots) - 1)
	for k, h := range hashes {
		// An empty slot has the number before the first one.
		numbers[k&(TouchBatch-1)] = uint32(t.slots[h&mask]) - 1
	}
	last := uint32(len(t.keys) - 1)
	for k := range hashes {
		n := min(numbers[k&(TouchBatch-1)], last)
		numbers[k&(TouchBatch-1)] = n
		touched += t.keys[n].Dst.Lo
	}
	return touched
}

// FindHinted is Find with a hint, a small number that is usually the same for one flow:
// then the flow is found without a search. Any hint gives the same result.
func (t *Table) FindHinted(key *model.FlowKey, hash uint64, hint uint32) (number uint32, ok bool) {
	if int(hint) < len(t.hinted) {
		// Numbers that were deleted have the zero key, those that were given again another.
		if n := t.hinted[hint]; int(n) < len(t.keys) && t.keys[n].Equal(key) && !key.IsZero() {
			return n, true
		}
	}
	number, ok = t.Find(key, hash)
	if ok {
		if n := int(hint) + 1 - len(t.hinted); n > 0 {
			t.hinted = append(t.hinted, make([]uint32, n)...)
		}
		t.hinted[hint] = number
	}
	return number, ok
}

// FindOrAdd returns the number of a flow, a new one if the table does not have it.
func (t *Table) FindOrAdd(key *model.FlowKey, hash uint64) (number uint32, added bool) {
	if 2*(t.Len()+1) > len(t.slots) {
		t.resize(max(2*len(t.slots), firstSlots))
	}
	mask := uint64(len(t.slots) - 1)
	i := hash & mask
	for ; t.slots[i] != 0; i = (i + 1) & mask {
		if s := t.slots[i]; (s^hash)&tagMask == 0 {
			if n := uint32(s) - 1; t.keys[n].Equal(key) {
				return n, false
			}
		}
	}
	if last := len(t.free) - 1; last >= 0 {
		number = t.free[last]
		t.free = t.free[:last]
		t.keys[number] = *key
	} else {
		number = uint32(len(t.keys))
		t.keys = append(t.keys, *key)
	}
	t.slots[i] = hash&tagMask | uint64(number+1)
	return number, true
}

// Delete removes a flow. Its number is given to another one later.
func (t *Table) Delete(number uint32) {
	mask := uint64(len(t.slots) - 1)
	i := Hash(&t.keys[number]) & mask
	for uint32(t.slots[i]) != number+1 {
		i = (i + 1) & mask
	}
	// Flows after it move up, unless they would be before their hash.
	for next := (i + 1) & mask; t.slots[next] != 0; next = (next + 1) & mask {
		home := Hash(&t.keys[uint32(t.slots[next])-1]) & mask
		if (next-home)&mask >= (next-i)&mask {
			t.slots[i], i = t.slots[next], next
		}
	}
	t.slots[i] = 0
	t.keys[number] = model.FlowKey{}
	t.free = append(t.free, number)
}

// Clear removes all flows and keeps the memory.
func (t *Table) Clear() {
	clear(t.slots)
	t.keys, t.free = t.keys[:0], t.free[:0]
}

// resize makes the table larger.
func (t *Table) resize(slots int) {
	old := t.slots
	t.slots = hugepages.Make[uint64](slots)
	mask := uint64(slots - 1)
	for _, s := range old {
		if s == 0 {
			continue
		}
		i := Hash(&t.keys[uint32(s)-1]) & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}

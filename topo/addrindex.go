package topo

import (
	"math/bits"

	"github.com/weft-telemetry/weft/model"
)

// addrIndex maps addresses to nodes. Every forwarded packet looks one up, and
// a built-in map takes about twice as long (BenchmarkByAddr). IPv4 and IPv6
// are separate, so that the common small slots stay in cache.
type addrIndex struct {
	v4 probeTable[uint32]
	v6 probeTable[model.Addr]
}

func newAddrIndex(nodes []Node) addrIndex {
	x := addrIndex{newProbeTable[uint32](len(nodes)), newProbeTable[model.Addr](len(nodes))}
	for i := range nodes {
		n := &nodes[i]
		x.v4.insert(n.IPv4.V4(), fold4(n.IPv4), n.ID)
		x.v6.insert(n.IPv6, fold6(n.IPv6), n.ID)
	}
	return x
}

func (x *addrIndex) lookup(a model.Addr) (model.NodeID, bool) {
	if a.Is4() {
		return x.v4.lookup(a.V4(), fold4(a))
	}
	return x.v6.lookup(a, fold6(a))
}

// Both folds multiply by 2^64 over the golden ratio, because addresses count
// up in their low bits and a table is indexed by the top bits.
func fold4(a model.Addr) uint64 { return uint64(a.V4()) * 0x9e3779b97f4a7c15 }
func fold6(a model.Addr) uint64 { return (a.Lo ^ bits.RotateLeft64(a.Hi, 32)) * 0x9e3779b97f4a7c15 }

// probeTable is open addressing with linear probing, at most half full.
type probeTable[K comparable] struct {
	slots []slot[K] // a power of two
	shift uint8     // 64 - log2(slots)
}

// slot is free while id is 0.
type slot[K comparable] struct {
	key K
	id  uint32 // node id + 1
}

func newProbeTable[K comparable](n int) probeTable[K] {
	log := bits.Len(uint(2 * n))
	return probeTable[K]{slots: make([]slot[K], 1<<log), shift: uint8(64 - log)}
}

func (t *probeTable[K]) lookup(k K, folded uint64) (model.NodeID, bool) {
	for i := int(folded >> t.shift); ; i++ {
		s := &t.slots[i&(len(t.slots)-1)]
		if s.id == 0 {
			return 0, false
		}
		if s.key == k {
			return model.NodeID(s.id - 1), true
		}
	}
}

func (t *probeTable[K]) insert(k K, folded uint64, id model.NodeID) {
	i := int(folded >> t.shift)
	for t.slots[i&(len(t.slots)-1)].id != 0 {
		i++
	}
	t.slots[i&(len(t.slots)-1)] = slot[K]{k, uint32(id) + 1}
}

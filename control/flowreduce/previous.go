package flowreduce

import (
	"math/bits"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// previous is the slot before: its flows by key, and the records of those that were
// not stored.
type previous struct {
	known   bool
	records []record.FlowSlot
	kept    []bool
	seen    []bool  // in the slot after it
	table   []int32 // open addressing: 1 + index into records; 0: free
	ended   []record.FlowSlot
}

func (p *previous) forget() {
	p.known = false
	clear(p.records)
	p.records = p.records[:0]
}

// remember replaces the slot. Records are copied, their paths are not: the caller keeps
// them for one more slot.
func (p *previous) remember(slot []record.FlowSlot, kept []bool) {
	p.known = true
	clear(p.records)
	p.records = append(p.records[:0], slot...)
	p.kept = append(p.kept[:0], kept...)
	p.seen = append(p.seen[:0], make([]bool, len(slot))...)
	size := 2 << bits.Len(uint(len(slot)))
	if len(p.table) != size {
		p.table = make([]int32, size)
	} else {
		clear(p.table)
	}
	for i := range p.records {
		at := p.records[i].Flow.Hash(0) & uint64(size-1)
		for p.table[at] != 0 {
			at = (at + 1) & uint64(size-1)
		}
		p.table[at] = int32(i + 1)
	}
}

// find returns the record of a flow, or -1.
func (p *previous) find(k *model.FlowKey) int {
	if !p.known {
		return -1
	}
	for at := k.Hash(0) & uint64(len(p.table)-1); p.table[at] != 0; at = (at + 1) & uint64(len(p.table)-1) {
		if i := int(p.table[at] - 1); p.records[i].Flow.Equal(k) {
			return i
		}
	}
	return -1
}

// changed reports whether a flow appeared, or its bytes grew or shrank by a factor.
// Nothing is known after a slot that was stored completely.
func (p *previous) changed(f *record.FlowSlot, factor uint64) bool {
	if !p.known {
		return false
	}
	i := p.find(&f.Flow)
	if i < 0 {
		return true
	}
	small, large := min(p.records[i].Bytes, f.Bytes), max(p.records[i].Bytes, f.Bytes)
	return small < large && large/factor >= small
}

// findEnded finds up to most flows that are not in the next slot and were not stored,
// the largest first.
func (p *previous) findEnded(next []record.FlowSlot, most int) {
	clear(p.ended)
	if p.ended = p.ended[:0]; !p.known {
		return
	}
	for i := range next {
		if at := p.find(&next[i].Flow); at >= 0 {
			p.seen[at] = true
		}
	}
	var list []rank
	for i := range p.records {
		if !p.seen[i] && !p.kept[i] {
			list = append(list, rank{p.records[i].Bytes, int32(i)})
		}
	}
	most = min(most, len(list))
	selectLargest(list, most, func(a, b rank) bool {
		if a.bytes != b.bytes {
			return a.bytes > b.bytes
		}
		return p.records[a.at].Flow.Compare(p.records[b.at].Flow) < 0
	})
	for _, f := range list[:most] {
		p.ended = append(p.ended, p.records[f.at])
	}
}

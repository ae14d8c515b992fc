package flows

import "slices"

// decodeAlone decodes the parts whose tables empty by themselves, and keeps those of
// their flows that the others may hold.
//
// The result is the same as if they took part in all rounds, because nothing can be
// claimed where every cell is empty. What is lost is a doubt: a flow of a neighbour
// that passes the filter here was counted as an unknown, in equations that had no
// need of it. Where the equations then had several solutions, because it shares cells
// with others, their counts were called estimates. SingleDecode, which
// does not see the neighbour, calls them exact; see proof for how rare that is.
func (n *network[K]) decodeAlone(out []Decoded) {
	if n.together {
		return
	}
	memory := alonesOf[K](n.Memory)
	parallelFor(n.Workers, len(n.parts), func(i int) {
		p := n.parts[i]
		// A filter with missing bytes may have any flow of a neighbour. An impossible
		// count is an estimate in the result, and no help to others.
		if p.fs.MissingFilter != 0 {
			return
		}
		a := memory.take()
		most := min(int(p.fs.Counts.Flows), len(p.sums))
		a.records, a.asCompact, a.inPlace = lend(n.Memory.records, p.set, most), n.Compact, n.InPlace
		if n.Compact {
			a.compact = lend(n.Memory.compact, p.set, most)
		}
		d, ok := a.decode(p.fs, p.table)
		if ok && d.Compact != nil {
			a.compact = d.Compact
		} else if ok {
			a.records = d.Records
		}
		if ok && !a.odd {
			out[p.set], p.alone = d, true
		}
		n.Memory.records[p.set], a.records = a.records, nil
		if n.Compact {
			n.Memory.compact[p.set], a.compact = a.compact, nil
		}
		memory.put(a)
	})
	if n.anyStuck() {
		parallelFor(n.Workers, len(n.parts), func(i int) { n.keepUseful(n.parts[i], out) })
	}
}

// anyStuck reports whether a part is left to decode.
func (n *network[K]) anyStuck() bool {
	return slices.ContainsFunc(n.parts, func(p *part[K]) bool { return !p.alone })
}

// keepUseful takes the flows of a part that emptied by itself, as far as the filter of
// some other part has them. Flows that no other filter has would be claimed nowhere,
// and their counts are no one's guess.
func (n *network[K]) keepUseful(p *part[K], out []Decoded) {
	if !p.alone {
		return
	}
	var packets, bytes []uint64
	d := &out[p.set]
	var r Record
	for i := range d.Flows() {
		d.Record(i, &r)
		key, _ := pack[K](&r.Key)
		for _, q := range n.parts {
			if !q.alone && q.has(&key) {
				p.found = append(p.found, key)
				packets, bytes = append(packets, r.Packets), append(bytes, r.Bytes)
				break
			}
		}
	}
	given := make([]uint32, len(p.found)) // any cell
	p.ownPackets = &flowCounts{values: packets, source: given}
	if p.layout.Bytes != 0 {
		p.ownBytes = &flowCounts{values: bytes, source: given}
	}
}

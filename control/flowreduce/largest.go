package flowreduce

import "math/bits"

// rank is a flow in the order of size.
type rank struct {
	bytes uint64
	part  int32
	at    int32
}

// keepLargest keeps the n largest of the flows that are eligible, and returns their
// number.
func (r *Reducer) keepLargest(n int, eligible func(*part, int) bool) int {
	list := r.largest(r.parts, n, eligible)
	for _, f := range list {
		r.parts[f.part].keep[f.at] = true
	}
	return len(list)
}

// listEnded lists up to most flows of the slot before that are not in this one and were
// not stored, the largest.
func (r *Reducer) listEnded(most int) {
	clear(r.ended)
	if r.ended = r.ended[:0]; !r.known {
		return
	}
	for _, f := range r.largest(r.last, most, (*part).unstored) {
		r.ended = append(r.ended, Flow{r.last[f.part].m, int(f.at)})
	}
}

// largest returns the n largest flows that are eligible, in any order. Of equal ones the
// first by key are chosen. The result is valid until the next call.
//
// Most flows are small, and need not be compared with each other: sizes are counted by
// class first, and only flows of the classes that reach the n-th are looked at.
func (r *Reducer) largest(parts []part, n int, eligible func(*part, int) bool) []rank {
	r.ranks = r.ranks[:0]
	if n <= 0 {
		return r.ranks
	}
	var classes [sizeClasses]int32
	for i := range parts {
		p := &parts[i]
		for k := range p.totals {
			if eligible(p, k) {
				classes[sizeClass(p.totals[k].Bytes)]++
			}
		}
	}
	least, count := sizeClasses, 0
	for least > 0 && count < n {
		least--
		count += int(classes[least])
	}
	for i := range parts {
		p := &parts[i]
		for k := range p.totals {
			if bytes := p.totals[k].Bytes; sizeClass(bytes) >= least && eligible(p, k) {
				r.ranks = append(r.ranks, rank{bytes, int32(i), int32(k)})
			}
		}
	}
	n = min(n, len(r.ranks))
	selectLargest(r.ranks, n, func(a, b rank) bool {
		if a.bytes != b.bytes {
			return a.bytes > b.bytes
		}
		return parts[a.part].m.Key(int(a.at)).Compare(*parts[b.part].m.Key(int(b.at))) < 0
	})
	return r.ranks[:n]
}

// Sizes are in classes of an eighth of a power of two.
const sizeClasses = 65 * 8

// sizeClass returns the class of a size: that of a larger one is no lower.
func sizeClass(bytes uint64) int {
	n := bits.Len64(bytes)
	if n <= 4 {
		return int(bytes)
	}
	return n<<3 | int(bytes>>(n-4)&7)
}

// selectLargest moves the n first of an order to the front, in any order among them.
func selectLargest(list []rank, n int, before func(a, b rank) bool) {
	for n > 0 && n < len(list) {
		// The middle one splits sorted input in half.
		last := len(list) - 1
		list[len(list)/2], list[last] = list[last], list[len(list)/2]
		split := 0
		for i := range last {
			if before(list[i], list[last]) {
				list[i], list[split] = list[split], list[i]
				split++
			}
		}
		list[split], list[last] = list[last], list[split]
		if split >= n {
			list = list[:split]
		} else {
			list, n = list[split+1:], n-split-1
		}
	}
}

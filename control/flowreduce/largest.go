package flowreduce

import "math/bits"

// rank is a flow in the order of size.
type rank struct {
	bytes uint64
	part  int32
	at    int32
}

// keepLargest keeps the n largest of the flows that may be chosen, and returns their
// number.
func (r *Reducer) keepLargest(n int, of choice) int {
	list := r.largest(r.parts, n, of)
	for _, f := range list {
		r.parts[f.part].states[f.at] |= kept
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
	for _, f := range r.largest(r.last, most, unstored) {
		r.ended = append(r.ended, Flow{r.last[f.part].m, int(f.at)})
	}
}

// largest returns the n largest flows that may be chosen, in any order. Of equal ones the
// first by key are chosen. The result is valid until the next call.
//
// Most flows are small, and need not be compared with each other: sizes are counted by
// class first. Of the classes above the one that has the n-th all are chosen, and only those of
// that class are compared.
func (r *Reducer) largest(parts []part, n int, of choice) []rank {
	r.ranks = r.ranks[:0]
	if n <= 0 {
		return r.ranks
	}
	var classes [sizeClasses]int32
	for i := range parts {
		p := &parts[i]
		for k, s := range p.states {
			if of.includes(s) {
				classes[p.classes[k]]++
			}
		}
	}
	least, count := sizeClasses, 0
	for least > 0 && count < n {
		least--
		count += int(classes[least])
	}
	larger := count - int(classes[least]) // in classes above
	above := 0
	for i := range parts {
		p := &parts[i]
		for k, s := range p.states {
			if class := int(p.classes[k]); class >= least && of.includes(s) {
				r.ranks = append(r.ranks, rank{p.totals[k].Bytes, int32(i), int32(k)})
				if class > least {
					last := len(r.ranks) - 1
					r.ranks[above], r.ranks[last] = r.ranks[last], r.ranks[above]
					above++
				}
			}
		}
	}
	n = min(n, len(r.ranks))
	selectLargest(r.ranks[larger:], n-larger, func(a, b rank) bool {
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

package flows

import (
	"github.com/weft-telemetry/weft/internal/hugepages"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
)

// alone decodes tables that peeling empties, which is what tables are planned for.
// Flows and all their counts come out in one pass: a pure cell has the packets,
// bytes and ports of its flow, too. Other tables are left to the peeler.
type alone[K sketch.Key] struct {
	left    []cellSum[K] // what is left of the table
	queue   []uint32
	odd     bool     // a count of the last table is impossible, and graded as an estimate
	records []Record // memory for those of the next table
	compact []CompactRecord
	// asCompact: the result has compact records, where it can. Otherwise compact is only a step
	// on the path to records.
	asCompact bool
	// inPlace: a table that empties is emptied, not a copy of it.
	inPlace bool
	touched uint64 // by loads that are made for their effect on the cache
}

// decode decodes a flowset whose table empties. It reports false if the table does
// not, or may not: then nothing is known.
//
// It removes the same flows in the same order as peeler.peel, whose result is kept
// by the following.
//   - A key that fails the filter is removed here, and makes the result void: the
//     answers of the filter are collected, without a branch, and looked at in the
//     end. So it does not matter when the filter is asked.
//   - A flow's count is what its cell has left when the flow is removed: that is
//     peeler.count, as all flows are peeled and no cell has a flaw.
//   - In the end every cell has to be zero, to the last packet and byte. That is
//     what exactFlows asks for to call all counts exact.
//   - Packets are subtracted modulo 2³² here, and modulo 2⁶⁴ by peeler.count. The
//     flows of every cell sum to its packets modulo 2³², and a cell has fewer than
//     2³²: each sum is too large by 0 or a multiple of 2³². If the sums of all cells
//     together are not too large, none is, and both arithmetics have the same result.
func (a *alone[K]) decode(fs *Flowset, t *table[K]) (Decoded, bool) {
	if t.flaws != nil || t.high != nil || t.family.Tables < 3 || !mayEmpty(fs) {
		return Decoded{}, false
	}
	a.odd = false
	d := fs.emptyResult()
	n := min(int(fs.Counts.Flows), len(t.sums))
	ok := false
	if a4, is4 := any(a).(*alone[sketch.Key4]); is4 && t.family.Tables == 3 {
		a.compact = resizedRecords(a.compact, n)
		total, tail := a.load(t, a.inPlace)
		n, ok = peelUsual(a4, fs, &t.family, t.filter, tail, a.compact, total)
		if a.inPlace {
			if !ok || a.odd {
				restoreUsual(a4.left, &t.family, a.compact[:n])
			}
			a.left = nil
		}
		if !ok {
			return Decoded{}, false
		}
		if a.asCompact {
			d.Compact, a.compact = a.compact[:n:n], nil
			d.Unexplained -= total / uint64(t.family.Tables)
		} else {
			d.Records, a.records = resizedRecords(a.records, n), nil
			d.putRecords(a.compact[:n], &fs.Counts, t.layout.Bytes != 0)
		}
	} else {
		a.records = resizedRecords(a.records, n)
		d.Records = a.records
		total, tail := a.load(t, false)
		if n, ok = a.peel(fs, t, tail, &d, total); !ok {
			return Decoded{}, false
		}
		d.Records, a.records = d.Records[:n:n], nil
	}
	d.Undecoded -= uint32(n)
	return d, true
}

// resizedRecords returns n records, not nil, in the memory of others if it is enough.
func resizedRecords[T any](list []T, n int) []T {
	if cap(list) < n || list == nil {
		return hugepages.Make[T](n)
	}
	return list[:n:n]
}

// load copies the table, unless it is decoded in place, and queues the first pure cells. It
// returns the packets of all cells together.
func (a *alone[K]) load(t *table[K], inPlace bool) (packets uint64, queued int) {
	if len(a.queue) < len(t.sums)+sketch.MaxTables {
		a.queue = hugepages.Make[uint32](len(t.sums) + sketch.MaxTables)
	}
	last := len(*new(K)) - 1
	queue := a.queue
	if inPlace {
		a.left = t.sums
		for i := range t.sums {
			packets += t.sums[i].counts >> 32
			queue[queued] = uint32(i)
			if showsSingleKey(t.sums[i].key[last]) {
				queued++
			}
		}
		return packets, queued
	}
	if cap(a.left) < len(t.sums) {
		a.left = hugepages.Make[cellSum[K]](len(t.sums))
	}
	a.left = a.left[:len(t.sums)]
	left := a.left
	for i := range t.sums {
		left[i] = t.sums[i]
		packets += left[i].counts >> 32
		queue[queued] = uint32(i)
		if showsSingleKey(left[i].key[last]) {
			queued++
		}
	}
	return packets, queued
}

// peel removes all flows and writes their records to d. It returns their number, and
// whether the table is empty.
func (a *alone[K]) peel(fs *Flowset, t *table[K], tail int, d *Decoded, total uint64) (n int, ok bool) {
	last := len(*new(K)) - 1
	family, filter, left, queue := &t.family, t.filter, a.left, a.queue
	tables := int(family.Tables)
	cells := [sketch.MaxTables]uint32{noCell, noCell, noCell, noCell}
	hasBytes := t.layout.Bytes != 0
	var missing, sum uint64
	for head := 0; head < tail; head++ {
		i := queue[head]
		flow := left[i]
		if flow.key[last]&countMask != zeroFlows+1 {
			continue
		}
		flow.key[last] &^= countMask
		h := sketch.HashOf(family, &flow.key)
		family.CellsOf(h, &cells)
		if cells[0] != i && cells[1] != i && cells[2] != i && cells[3] != i {
			continue
		}
		if n == len(d.Records) || tail+tables > len(queue) {
			return n, false // more flows than were inserted, or than there are cells
		}
		missing |= filter.Missing(family, h)
		for _, c := range cells[:tables] {
			s := &left[c]
			for w := range len(flow.key) {
				s.key[w] ^= flow.key[w]
			}
			s.key[last]--
			s.counts = (s.counts - flow.counts&^portsMask) ^ flow.counts&portsMask
			s.bytes -= flow.bytes
			queue[tail] = c
			if showsSingleKey(s.key[last]) {
				tail++
			}
		}
		sum += flow.counts >> 32
		r := &d.Records[n]
		sketch.PutFlowKey(&r.Key, &flow.key)
		r.Packets, r.Bytes = flow.counts>>32, flow.bytes
		r.In, r.Out = model.PortID(flow.counts>>16), model.PortID(flow.counts)
		if r.grade(true, &fs.Counts, hasBytes); r.Grade == Exact {
			d.Unexplained -= r.Packets
		} else {
			a.odd = true
		}
		n++
	}
	if missing != 0 || uint64(tables)*sum != total {
		return n, false
	}
	var rest uint64
	for i := range left {
		s := &left[i]
		s.key[last] ^= zeroFlows
		for w := range len(s.key) {
			rest |= s.key[w]
		}
		rest |= s.counts>>32 | s.bytes
	}
	return n, rest == 0
}

// mayEmpty reports whether the table is worth trying: whether its cells are enough for
// its flows. Small tables may empty in any case, and cost little.
func mayEmpty(fs *Flowset) bool {
	const small, slack = 4096, 0.98
	cells := float64(fs.Tables) * float64(fs.TableCells)
	return cells < small || cells > float64(fs.Counts.Flows)*peelThreshold[fs.Tables]*slack
}

// peelThreshold is the cells per flow below which large tables do not empty, by the
// number of sub-tables (docs/flowset.md, TestPeelingThresholdIsTheoretical).
var peelThreshold = [sketch.MaxTables + 1]float64{3: 1.222, 4: 1.295}

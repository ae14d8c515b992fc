package flows

import "github.com/weft-telemetry/weft/sketch"

// peelBatch is how many queued cells are looked at together. Whether a queued cell still
// has its flow cannot be predicted, and a wrong prediction discards the loads after it,
// which peeling a table larger than a CPU's own cache waits for. In a batch they are
// made before such a branch: 5.3 to 6.1 instead of 6.5 to 7.8 ms for 100,000 flows, and no
// difference for 10,000 (BenchmarkSingleDecode without the filter, on a busy Xeon with
// 2 MiB of cache per core).
const peelBatch = 16

// pureCells are some cells with a single flow, and where that flow's cells are.
type pureCells [peelBatch]struct{ cell, c0, c1, c2 uint32 }

// peelUsual is alone.peel for IPv4 keys and three sub-tables, which is what switches
// export. Its keys are words in registers: it takes about four fifths of the time
// (BenchmarkSingleDecode; TestUsualPeelEqualsGeneral compares the results). The flows are
// compact, for records to be made of them; their length is how many there may be.
//
// The steps for a batch are functions, none of which the compiler puts into another: a loop
// with all of them has too few registers, and waits for what it keeps in memory.
//
// The filter is asked in the end, flow after flow: beside the table, which alone is larger
// than a CPU's own cache, it would have to be loaded again and again.
func peelUsual(a *alone[sketch.Key4], fs *Flowset, family *sketch.Family, filter sketch.Filter, tail int, flows []CompactRecord, total uint64) (n int, ok bool) {
	var batch pureCells
	for head := 0; head < tail; {
		end := min(head+peelBatch, tail)
		count := takePure(a.left, a.queue[head:end], &batch)
		head = end
		count, touched := locatePure(a.left, family, &batch, count)
		a.touched |= touched
		if n, tail, ok = removeUsual(a, &batch, count, tail, flows, n); !ok {
			return n, false
		}
	}
	return n, emptyUsual(a.left) && checkUsual(a, fs, family, filter, flows[:n], total)
}

// takePure takes the queued cells that still have a single flow.
//
//go:noinline
func takePure(left []cellSum[sketch.Key4], queue []uint32, batch *pureCells) (count int) {
	for _, i := range queue {
		batch[count&(peelBatch-1)].cell = i
		if left[i].key[1]&countMask == zeroFlows+1 {
			count++
		}
	}
	return count
}

// locatePure finds the cells of the flows of pure cells, and loads them. It leaves out cells
// that are none of their key's.
//
//go:noinline
func locatePure(left []cellSum[sketch.Key4], family *sketch.Family, batch *pureCells, count int) (kept int, touched uint64) {
	second, third := family.TableCells, 2*family.TableCells
	for k := range count {
		cell := batch[k&(peelBatch-1)].cell
		key := &left[cell].key
		c0, c1, c2 := family.Cells3(family.HashWords4(key[0], key[1]&^countMask))
		// Which sub-table a cell is of cannot be predicted: no branch.
		own := c0
		if cell >= second {
			own = c1
		}
		if cell >= third {
			own = c2
		}
		f := &batch[kept&(peelBatch-1)]
		f.cell, f.c0, f.c1, f.c2 = cell, c0, c1, c2
		if own == cell {
			kept++
		}
		touched |= left[c0].bytes | left[c1].bytes | left[c2].bytes
	}
	return kept, touched
}

// removeUsual removes the flows of a batch, and puts them after the first n. It returns
// their number and the end of the queue. It reports false if there are more flows than were
// inserted, or than there are cells.
//
//go:noinline
func removeUsual(a *alone[sketch.Key4], batch *pureCells, count, tail int, flows []CompactRecord, n int) (found, end int, ok bool) {
	left, queue := a.left, a.queue
	for k := range count {
		f := &batch[k&(peelBatch-1)]
		s := &left[f.cell]
		w0, w1, counts, bytes := s.key[0], s.key[1], s.counts, s.bytes
		// The same flow may have been in another cell of the batch.
		if w1&countMask != zeroFlows+1 {
			continue
		}
		if n >= len(flows) || tail+3 > len(queue) {
			return n, tail, false
		}
		w1 &^= countMask
		c := &flows[n]
		c.key[0], c.key[1], c.counts, c.bytes = w0, w1, counts, bytes
		n++
		packets, ports := counts&^portsMask, counts&portsMask
		queue[tail] = f.c0
		tail += removeFrom(&left[f.c0], w0, w1, packets, ports, bytes)
		queue[tail] = f.c1
		tail += removeFrom(&left[f.c1], w0, w1, packets, ports, bytes)
		queue[tail] = f.c2
		tail += removeFrom(&left[f.c2], w0, w1, packets, ports, bytes)
	}
	return n, tail, true
}

// removeFrom removes a flow from a cell, and returns 1 if a single key is left in it.
func removeFrom(s *cellSum[sketch.Key4], w0, w1, packets, ports, bytes uint64) int {
	word := (s.key[1] ^ w1) - 1
	s.key[0], s.key[1] = s.key[0]^w0, word
	s.counts = (s.counts - packets) ^ ports
	s.bytes -= bytes
	if showsSingleKey(word) {
		return 1
	}
	return 0
}

// emptyUsual reports whether all cells are zero, to the last packet and byte.
func emptyUsual(left []cellSum[sketch.Key4]) bool {
	var rest uint64
	for i := range left {
		s := &left[i]
		rest |= s.key[0] | s.key[1] ^ zeroFlows | s.counts>>32 | s.bytes
	}
	return rest == 0
}

// checkUsual reports whether the packets of flows add up to a third of those of all cells, and
// the filter has all flows. It notes whether a count is impossible.
//
//go:noinline
func checkUsual(a *alone[sketch.Key4], fs *Flowset, family *sketch.Family, filter sketch.Filter, flows []CompactRecord, total uint64) bool {
	hasBytes := fs.Layout.Bytes != 0
	var sum, missing uint64
	for i := range flows {
		f := &flows[i]
		sum += f.counts >> 32
		a.odd = a.odd || !f.plausible(&fs.Counts, hasBytes)
		missing |= filter.Missing(family, family.HashWords4(f.key[0], f.key[1]))
	}
	return missing == 0 && 3*sum == total
}

// restoreUsual undoes removeFrom: it puts the flows that were removed back.
func restoreUsual(left []cellSum[sketch.Key4], family *sketch.Family, flows []CompactRecord) {
	for i := len(flows) - 1; i >= 0; i-- {
		f := &flows[i]
		c0, c1, c2 := family.Cells3(family.HashWords4(f.key[0], f.key[1]))
		for _, c := range [...]uint32{c2, c1, c0} {
			s := &left[c]
			s.key[0], s.key[1] = s.key[0]^f.key[0], (s.key[1]+1)^f.key[1]
			s.counts = (s.counts ^ f.counts&portsMask) + f.counts&^portsMask
			s.bytes += f.bytes
		}
	}
}

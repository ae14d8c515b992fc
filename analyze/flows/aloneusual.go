package flows

import "github.com/weft-telemetry/weft/sketch"

// peelBatch is how many queued cells are looked at together. Whether a queued cell still
// has its flow cannot be predicted, and a wrong prediction discards the loads after it,
// which peeling a table larger than a CPU's own cache waits for. In a batch they are
// made before such a branch: 5.3 to 6.1 instead of 6.5 to 7.8 ms for 100,000 flows, and no
// difference for 10,000 (BenchmarkSingleDecode without the filter, on a busy Xeon with
// 2 MiB of cache per core).
const peelBatch = 16

// peelUsual is alone.peel for IPv4 keys and three sub-tables, which is what switches
// export. Its keys are words in registers: it takes about four fifths of the time
// (BenchmarkSingleDecode; TestUsualPeelEqualsGeneral compares the results). The flows are
// compact, for records to be made of them; most is how many there may be.
//
// The filter is asked in the end, flow after flow: beside the table, which alone is larger
// than a CPU's own cache, it would have to be loaded again and again.
func peelUsual(a *alone[sketch.Key4], fs *Flowset, family *sketch.Family, filter sketch.Filter, tail int, flows []CompactRecord, total uint64) (n int, ok bool) {
	left, queue := a.left, a.queue
	hasBytes := fs.Layout.Bytes != 0
	var batch [peelBatch]struct{ cell, c0, c1, c2 uint32 }
	var sum, touched uint64
	for head := 0; head < tail; {
		count := 0
		for end := min(head+peelBatch, tail); head < end; head++ {
			i := queue[head]
			batch[count&(peelBatch-1)].cell = i
			if left[i].key[1]&countMask == zeroFlows+1 {
				count++
			}
		}
		for k := range count {
			f := &batch[k&(peelBatch-1)]
			key := &left[f.cell].key
			f.c0, f.c1, f.c2 = family.Cells3(family.HashWords4(key[0], key[1]&^countMask))
			touched |= left[f.c0].bytes | left[f.c1].bytes | left[f.c2].bytes
		}
		for k := range count {
			f := &batch[k&(peelBatch-1)]
			s := &left[f.cell]
			w0, w1, counts, bytes := s.key[0], s.key[1], s.counts, s.bytes
			// The same flow may have been in another cell of the batch.
			if w1&countMask != zeroFlows+1 || f.c0 != f.cell && f.c1 != f.cell && f.c2 != f.cell {
				continue
			}
			if n == len(flows) || tail+3 > len(queue) {
				return n, false // more flows than were inserted, or than there are cells
			}
			w1 &^= countMask
			packets, ports := counts&^portsMask, counts&portsMask
			queue[tail] = f.c0
			tail += removeFrom(&left[f.c0], w0, w1, packets, ports, bytes)
			queue[tail] = f.c1
			tail += removeFrom(&left[f.c1], w0, w1, packets, ports, bytes)
			queue[tail] = f.c2
			tail += removeFrom(&left[f.c2], w0, w1, packets, ports, bytes)
			sum += counts >> 32
			c := &flows[n]
			c.key[0], c.key[1], c.counts, c.bytes = w0, w1, counts, bytes
			a.odd = a.odd || !c.plausible(&fs.Counts, hasBytes)
			n++
		}
	}
	a.touched = touched
	if 3*sum != total {
		return n, false
	}
	var rest, missing uint64
	for i := range left {
		s := &left[i]
		rest |= s.key[0] | s.key[1] ^ zeroFlows | s.counts>>32 | s.bytes
	}
	if rest != 0 {
		return n, false
	}
	for i := range flows[:n] {
		key := &flows[i].key
		missing |= filter.Missing(family, family.HashWords4(key[0], key[1]))
	}
	return n, missing == 0
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

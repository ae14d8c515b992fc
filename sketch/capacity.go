package sketch

// MeasureCapacity returns how many flows with random keys a table holds before
// decoding fails. One more flow never makes decoding easier, so the numbers are
// found by bisection, to one part in 4,096 of the table.
//
// Peel is the number of flows that peeling alone decodes. Solve is the number
// that leave a core, after peeling, of no more flows than cells: with fewer
// equations than unknowns no decoder can find the counters, and in random tables
// the probability that this many equations do not suffice is small compared with
// that of having too few.
func (m *CapacityMeter) MeasureCapacity(g Geometry, seed uint64) (peel, solve int, err error) {
	f, err := NewFamily(g, seed)
	if err != nil {
		return 0, 0, err
	}
	cells, k := g.Cells(), int(g.Tables)
	// Nothing has more than one flow per cell to solve, by Solve's definition.
	m.edges = resize(m.edges, (cells+1)*k)
	m.degree = resize(m.degree, cells)
	m.xor = resize(m.xor, cells)
	random := splitMix(^seed)
	for i := range cells + 1 {
		key := Key4{random.next(), random.next() &^ (1<<24 - 1)}
		h := HashOf(&f, &key)
		for t := range k {
			m.edges[i*k+t] = f.Cell(h, t)
		}
	}
	step := max(1, cells/4096)
	most := func(lo int, ok func(flows, cells int) bool) int {
		hi := cells + 1
		for hi-lo > step {
			mid := (lo + hi) / 2
			if ok(m.core(k, mid)) {
				lo = mid
			} else {
				hi = mid
			}
		}
		return lo
	}
	peel = most(0, func(flows, _ int) bool { return flows == 0 })
	solve = most(peel, func(flows, cells int) bool { return flows <= cells })
	return peel, solve, nil
}

// CapacityMeter holds the memory of MeasureCapacity, reused by many
// measurements.
type CapacityMeter struct {
	edges  []uint32 // the cells of each flow
	degree []uint32 // flows of each cell
	xor    []uint32 // of the flows' numbers
	queue  []uint32
}

// core peels the first n flows and returns what is left: flows, and cells that
// hold any.
func (m *CapacityMeter) core(k, n int) (flows, cells int) {
	clear(m.degree)
	clear(m.xor)
	for e, c := range m.edges[:n*k] {
		m.degree[c]++
		m.xor[c] ^= uint32(e / k)
	}
	m.queue = m.queue[:0]
	for c, d := range m.degree {
		if d == 1 {
			m.queue = append(m.queue, uint32(c))
		}
	}
	flows = n
	for len(m.queue) > 0 {
		c := m.queue[len(m.queue)-1]
		m.queue = m.queue[:len(m.queue)-1]
		if m.degree[c] != 1 {
			continue
		}
		flow := m.xor[c]
		flows--
		for _, at := range m.edges[int(flow)*k : int(flow)*k+k] {
			m.degree[at]--
			m.xor[at] ^= flow
			if m.degree[at] == 1 {
				m.queue = append(m.queue, at)
			}
		}
	}
	for _, d := range m.degree {
		if d > 0 {
			cells++
		}
	}
	return flows, cells
}

func resize(s []uint32, n int) []uint32 {
	if cap(s) < n {
		return make([]uint32, n)
	}
	return s[:n]
}

package attribution

// passCycle lets what enters the slices of a cycle pass along them as in
// solveCycle, and reports what passed through each on its path to each root.
func (e *engine) passCycle(c *component, pass func(s *state, root int32, time float64)) {
	order := e.states[c.members[0]].order
	position := make(map[int32]int, len(c.members))
	edges := 0
	for i, m := range c.members {
		position[m] = i
		edges += len(e.states[m].edges)
	}
	inside := func(n *edge) bool { return n.state >= 0 && e.states[n.state].order == order }
	masses := make([][]float64, c.steps) // by step, then member
	for k := range masses {
		masses[k] = make([]float64, len(c.members))
		for i, m := range c.members {
			if k == 0 {
				masses[0][i] = e.states[m].mass
				continue
			}
			for j := range e.states[m].edges {
				if n := &e.states[m].edges[j]; inside(n) {
					masses[k][position[n.state]] += masses[k-1][i] * n.share
				}
			}
		}
	}
	roots := e.rootsOf(c)
	if c.steps*edges*len(roots) > 16*maxCycleWork {
		roots = nil // the account does not need it
	}
	ahead, next := make([]float64, len(c.members)), make([]float64, len(c.members))
	for _, r := range roots {
		// next: the share of a slice's mass that still comes to r after step k.
		clear(next)
		if e.roots[r].kind == Deadlock && e.sameCycle(c, r) {
			for i := range next {
				next[i] = 1
			}
		}
		for k := c.steps - 1; k >= 0; k-- {
			for i, m := range c.members {
				ahead[i] = 0
				s := &e.states[m]
				for j := range s.edges {
					if n := &s.edges[j]; inside(n) {
						ahead[i] += n.share * next[position[n.state]]
					} else {
						ahead[i] += n.share * e.shareOf(n, r)
					}
				}
				if masses[k][i] > 0 && ahead[i] > 0 {
					pass(s, r, masses[k][i]*ahead[i])
				}
			}
			ahead, next = next, ahead
		}
	}
	for i, m := range c.members {
		for k := 1; k < c.steps; k++ {
			e.states[m].mass += masses[k][i]
		}
	}
}

// rootsOf returns the roots of what entered the slices of a component.
func (e *engine) rootsOf(c *component) (list []int32) {
	for _, m := range c.members {
		if e.states[m].mass > 0 {
			for _, r := range e.states[m].shares {
				e.sum.add(r.root, r.share, 0)
			}
		}
	}
	for _, r := range e.sum.take() {
		list = append(list, r.root)
	}
	return list
}

// sameCycle reports whether a deadlock is that of a component.
func (e *engine) sameCycle(c *component, root int32) bool {
	return e.roots[root].cycle >= 0 && e.roots[root].cycle == c.cycle
}

// shareOf returns the share of what an edge leads to that is due to a root.
func (e *engine) shareOf(n *edge, root int32) float64 {
	if n.root >= 0 {
		if n.root == root {
			return 1
		}
		return 0
	}
	for _, r := range e.states[n.state].shares {
		if r.root == root {
			return r.share
		}
	}
	return 0
}

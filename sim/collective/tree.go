package collective

// tree reduces chunks up to the root and sends the sums down again. Even channels
// use one tree, odd channels its mirror image, so that the leaves of one are inner
// nodes of the other.
func (p *planner) tree(channel int) {
	parent := p.parents(channel)
	children, root := make([][]int, p.Ranks), 0
	for rank, up := range parent {
		if up < 0 {
			root = rank
			continue
		}
		children[up] = append(children[up], rank)
	}
	// Parents before children.
	order := append(make([]int, 0, p.Ranks), root)
	for i := 0; i < len(order); i++ {
		order = append(order, children[order[i]]...)
	}
	up, down := make([]int, p.Ranks), make([]int, p.Ranks) // sends to and from each rank's parent
	p.chunks(channel, func(offset, size int64, last bool) {
		for i := len(order) - 1; i > 0; i-- {
			rank := order[i]
			up[rank] = p.send(Send{
				From: rank, To: parent[rank], Channel: channel, Offset: offset, Bytes: size, Reduce: true,
			}, sendsOf(up, children[rank])...)
		}
		for _, rank := range order {
			for _, child := range children[rank] {
				after := []int{down[rank]}
				if rank == root {
					after = sendsOf(up, children[rank])
				}
				down[child] = p.send(Send{From: rank, To: child, Channel: channel, Offset: offset, Bytes: size}, after...)
			}
		}
		if !last {
			return
		}
		for _, rank := range order {
			if rank != root {
				p.done(rank, up[rank], down[rank])
			}
			p.done(rank, sendsOf(down, children[rank])...)
		}
	})
}

func sendsOf(sends, ranks []int) []int {
	out := make([]int, 0, len(ranks)+1) // and the one before on the connection
	for _, r := range ranks {
		out = append(out, sends[r])
	}
	return out
}

// parents returns the parent of each rank in a channel's tree; -1: the root. The
// first rank of each server, another in each pair of channels, is in the tree of
// servers; the others follow it in a chain.
func (p *planner) parents(channel int) []int {
	servers := p.Ranks / p.PerServer
	head := func(server int) int { return server*p.PerServer + channel/2%p.PerServer }
	parent := make([]int, p.Ranks)
	for s := range servers {
		up := treeParent(servers, s)
		switch mirrored := channel%2 == 1; {
		case mirrored && servers%2 == 0:
			if up = treeParent(servers, servers-1-s); up >= 0 {
				up = servers - 1 - up
			}
		case mirrored:
			if up = treeParent(servers, (s+servers-1)%servers); up >= 0 {
				up = (up + 1) % servers
			}
		}
		parent[head(s)] = -1
		if up >= 0 {
			parent[head(s)] = head(up)
		}
		for i := 1; i < p.PerServer; i++ {
			local := func(i int) int { return s*p.PerServer + (head(s)+i)%p.PerServer }
			parent[local(i)] = local(i - 1)
		}
	}
	return parent
}

// treeParent returns the parent of a node in a binary tree of n nodes whose leaves
// are the odd ones; -1 for node 0, the root. A node's lowest bit is its level: its
// parent has that bit moved up by one, or cleared where there is no such node.
func treeParent(n, node int) int {
	if node == 0 {
		return -1
	}
	bit := node & -node
	if up := node&^bit | bit<<1; up < n {
		return up
	}
	return node &^ bit
}

package jobs

import "slices"

// thinEdge is the share of the largest edge below which an edge has no part in a pattern:
// barriers, and answers.
const thinEdge = 0.05

// neighbours are the hosts that each sends to, without thin edges.
func neighbours(edges map[[2]string]uint64) map[string][]string {
	var largest uint64
	for _, n := range edges {
		largest = max(largest, n)
	}
	out := map[string][]string{}
	for e, n := range edges {
		if float64(n) >= thinEdge*float64(largest) {
			out[e[0]] = append(out[e[0]], e[1])
		}
	}
	return out
}

// patternOf names the pattern of edges between hosts.
func patternOf(hosts []string, edges map[[2]string]uint64) Pattern {
	to := neighbours(edges)
	n := len(hosts)
	sum, mutual := 0, true
	for h, list := range to {
		sum += len(list)
		for _, other := range list {
			mutual = mutual && slices.Contains(to[other], h)
		}
	}
	switch {
	case n < 2:
		return Mesh
	case n == 2:
		return Pair
	case sum == n && len(cycleFrom(hosts[0], to)) == n:
		return Ring
	case float64(sum) >= 0.9*float64(n*(n-1)):
		return AllToAll
	case mutual && sum == 2*(n-1): // connected, since every rank reaches every other
		return Tree
	case mutual && sum == 2*n && len(cycleFrom(hosts[0], oneWay(to, hosts[0]))) == n:
		return Ring
	}
	return Mesh
}

// cycleFrom follows single edges from a host until one repeats.
func cycleFrom(h string, to map[string][]string) (list []string) {
	seen := map[string]bool{}
	for !seen[h] {
		seen[h] = true
		list = append(list, h)
		if len(to[h]) != 1 {
			return nil
		}
		h = to[h][0]
	}
	if h != list[0] {
		return nil
	}
	return list
}

// oneWay turns a ring with edges in both directions into one; nil if it is none.
func oneWay(to map[string][]string, first string) map[string][]string {
	out := map[string][]string{}
	last, h := "", first
	for range to {
		list := slices.Clone(to[h])
		if len(list) != 2 {
			return nil
		}
		slices.SortFunc(list, compareNames)
		next := list[0]
		if next == last {
			next = list[1]
		}
		out[h] = []string{next}
		last, h = h, next
	}
	return out
}

// ringOrder lists the hosts of a ring along it.
func ringOrder(hosts []string, edges map[[2]string]uint64) []string {
	to := neighbours(edges)
	if list := cycleFrom(hosts[0], to); list != nil {
		return list
	}
	return cycleFrom(hosts[0], oneWay(to, hosts[0]))
}

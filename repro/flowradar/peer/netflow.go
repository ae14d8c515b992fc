package peer

import "math"

// NetFlowBytes returns the memory of NetFlow on a perfect hash, which no switch has:
// a cell per flow, with its key, its counter and, where idle flows must be found
// and removed, the times of its first and last packet.
func NetFlowBytes(flows int, timestamps bool) int {
	cell := KeyBytes + CounterBytes
	if timestamps {
		cell += 2 * TimestampBytes
	}
	return flows * cell
}

// PlainHashBytes returns the memory of a hash table without any means against
// collisions, large enough to have none with the given probability.
func PlainHashBytes(flows int, success float64) float64 {
	// The n flows are in n(n-1)/2 pairs, each of which meets in one of m cells
	// with probability 1/m.
	n := float64(flows)
	cells := n * (n - 1) / 2 / -math.Log(success)
	return cells * (KeyBytes + CounterBytes)
}

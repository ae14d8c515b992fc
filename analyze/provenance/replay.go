package provenance

import (
	"math/bits"
	"slices"
)

// flowLoad is the traffic of one flow at a port in one epoch, without paused
// packets.
type flowLoad struct {
	packets int
	depth   int // mean number of packets ahead of each of its packets
}

// replayer computes which flows delayed which in a queue, from counts alone. As
// in the paper, each flow's packets are spread evenly over the epoch and
// merged; a packet then waits for as many of those before it as its flow's mean
// depth says. Its memory is reused.
type replayer struct {
	flowBits int
	spread   []arrival // flow by flow
	order    []arrival // in the order of time
	first    []int32   // by bucket of time: where its arrivals begin
	begin    []float64 // by position: the weight of packets whose waiting begins there
	waiters  []waiter  // by flow
}

// arrival is a packet: when it came, as a fraction of the epoch, and in the
// low bits the number of its flow. So packets of one time are ordered by flow.
type arrival uint64

// waiter is the state of a flow in the replay.
type waiter struct {
	depth        int
	weight       float64 // of one of its packets, so that all of them weigh 1
	contribution float64
}

// contributions returns each flow's contribution to the contention: how many of
// its packets others waited for, less how many of others its own waited for,
// each as a mean over the packets that wait.
//
// A packet at position p waits for positions p-d to p-1. Seen from position q,
// those that wait for it are a range: going backwards, a packet's weight is
// added where its range ends and subtracted where it begins. That is linear in
// packets, where comparing every pair is packets times depth.
func (r *replayer) contributions(flows []flowLoad, out []float64) []float64 {
	r.merge(flows)
	r.waiters = r.waiters[:0]
	for _, s := range flows {
		r.waiters = append(r.waiters, waiter{depth: s.depth, weight: 1 / float64(s.packets)})
	}
	r.begin = append(r.begin[:0], make([]float64, len(r.order))...)
	begin, mask, waiting := r.begin, arrival(1)<<r.flowBits-1, 0.0
	for q := len(r.order) - 1; q >= 0; q-- {
		f := &r.waiters[r.order[q]&mask]
		d := min(f.depth, q)
		f.contribution += waiting - float64(d)*f.weight
		begin[q-d] += f.weight
		waiting += f.weight - begin[q]
	}
	out = out[:0]
	for i := range r.waiters {
		out = append(out, r.waiters[i].contribution)
	}
	return out
}

// merge puts all packets in the order of their times, those of one time by
// flow. With as many buckets as packets, each holds about one, so that little
// is left to sort within them; a general sort took five times as long.
func (r *replayer) merge(flows []flowLoad) {
	total := 0
	for _, s := range flows {
		total += s.packets
	}
	r.flowBits = bits.Len(uint(len(flows)))
	r.spread = slices.Grow(r.spread[:0], total)
	r.order = slices.Grow(r.order[:0], total)[:total]
	r.first = append(r.first[:0], make([]int32, total+1)...)
	first, whole := r.first, uint64(1)<<(64-r.flowBits)
	for f, s := range flows {
		// Packet j comes at j/packets, rounded down to as many bits as the flow's
		// number leaves. The step has 64 bits more and is rounded up, so that
		// times are as divisions make them: equal ones of two flows are equal.
		n := uint64(s.packets)
		step := whole / n
		low, _ := bits.Div64(whole%n, 0, n)
		at, below, carry := uint64(0), uint64(0), uint64(0)
		spread := r.spread[len(r.spread) : len(r.spread)+s.packets]
		for j := range spread {
			a := arrival(at<<r.flowBits | uint64(f))
			spread[j] = a
			first[a.bucket(total)]++
			below, carry = bits.Add64(below, low+1, 0)
			at += step + carry
		}
		r.spread = r.spread[:len(r.spread)+s.packets]
	}
	at := int32(0)
	for i, n := range first {
		first[i] = at
		at += n
	}
	order := r.order
	for _, a := range r.spread {
		at := &first[a.bucket(total)]
		order[*at] = a
		*at++
	}
	for i := 1; i < len(order); i++ {
		a, at := order[i], i
		for ; at > 0 && order[at-1] > a; at-- {
			order[at] = order[at-1]
		}
		order[at] = a
	}
}

// bucket returns which of a number of buckets an arrival's time is in.
func (a arrival) bucket(count int) uint64 {
	b, _ := bits.Mul64(uint64(a), uint64(count))
	return b
}

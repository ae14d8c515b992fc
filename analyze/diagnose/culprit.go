package diagnose

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// culprits returns the flows that compete for a queue's link, by their share of
// what waits for it: in the queue itself, and in the paused queues directly
// upstream, where PFC holds back a part of every burst. If nothing waits any
// more, their share of what waited in the epochs counts.
//
// Paper: flows with positive weight in the replayed queue. Those weights are
// what a flow gives to others less what it gets: each of four equal flows in an
// incast weighs about nothing, and the rule would find no flow at all; of
// unequal ones it finds only the heaviest. A share of the queue has no such
// blind spot.
func (m *analysis) culprits(n int) []Culprit {
	weights := m.queuedBytesByFlow(n)
	if len(weights) == 0 {
		weights = m.epochBytesByFlow(n)
	}
	return m.culpritList(weights)
}

// competitors returns the flows that a packet of the victim met in a queue of
// its own path: those in it, and those that left it since the packet was sent.
// A burst is most of what the packet waited for, and its flows leave one by one
// while it drains: what is left of it at the detection is the flows that came
// last. What the victim's packets found in the queue, less what the queue holds
// now, has left it.
func (m *analysis) competitors(n int) []Culprit {
	weights := m.epochBytesByFlow(n)
	if m.atSnapshot {
		sum := 0.0
		for _, bytes := range weights {
			sum += bytes
		}
		left := max(0, m.backlogFound(n)-m.queuedBytes(n))
		for f := range weights {
			weights[f] *= left / sum
		}
		for f, bytes := range m.queuedBytesByFlow(n) {
			weights[f] += bytes
		}
	}
	return m.culpritList(weights)
}

// backlogFound returns the largest backlog in bytes that the victim's packets
// found in a queue since the slow packet was sent, as a mean over an epoch. For
// a victim that was there before, the mean says little, as most of its packets
// may have met nothing: then that of any flow counts.
func (m *analysis) backlogFound(n int) (bytes float64) {
	ahead := m.aheadOfVictim(n)
	flow := m.g.Flow(m.detection.Victim)
	_, _, came := m.victimFirstEnqueue(n, m.victimEnqueueLowerBound(n))
	most := 0.0
	for _, p := range m.g.FlowEpochsAt(n) {
		free := float64(p.Record.Packets) - float64(p.Record.Paused)
		if ahead(p) == 0 || free <= 0 {
			continue
		}
		mean := float64(p.Record.Depth) / free * packetSize
		if most = max(most, mean); p.Flow == flow {
			bytes = max(bytes, mean)
		}
	}
	if !came || 2*bytes < m.queuedBytes(n) {
		return most
	}
	return bytes
}

// aheadOfVictim returns a function that says how much of a flow's epoch record
// at a queue may have been ahead of the victim's packet: nothing that came
// after the victim's last. If the victim arrived since the packet was sent,
// that is what its first packet found there, and a pause until then kept it
// longer; otherwise it is what had not left when the packet was sent, judged by
// what the flow's own packets found.
func (m *analysis) aheadOfVictim(n int) func(provenance.FlowEpoch) float64 {
	node := &m.g.Nodes[n]
	since, until := m.victimEnqueueLowerBound(n), m.victimLastEnqueue(n)
	first, found, ok := m.victimFirstEnqueue(n, since)
	if !ok {
		size := m.meanPacketSize(n)
		return func(p provenance.FlowEpoch) float64 {
			return m.fractionBetween(p, since.Add(-m.foundDrainTime(p, size)), until)
		}
	}
	if deepest := m.drainTime(n, float64(node.Episode.MaxBytes)); deepest > 0 {
		found = min(found, deepest)
	}
	from := first.Add(-found)
	if p := &node.Pauses; p.Pauses > 0 && p.LastEnd >= from && p.LastEnd > p.LastStart && first > p.LastStart {
		from = from.Add(-min(p.LastEnd, first).Sub(p.LastStart))
	}
	return func(p provenance.FlowEpoch) float64 { return m.fractionBetween(p, from, until) }
}

// victimLastEnqueue returns when the last packet of the victim joined a queue;
// the end of time if none is known to have joined.
func (m *analysis) victimLastEnqueue(n int) model.Time {
	flow, at := m.g.Flow(m.detection.Victim), model.Time(math.MinInt64)
	for _, p := range m.g.FlowEpochsAt(n) {
		if _, last := m.enqueueTimes(p); p.Flow == flow {
			at = max(at, last)
		}
	}
	if at == math.MinInt64 {
		return math.MaxInt64
	}
	return at
}

// victimEnqueueLowerBound returns the earliest time at which the victim's
// packet can have been in a queue; if its latency is unknown, PauseBurstGap
// before the poll.
func (m *analysis) victimEnqueueLowerBound(n int) model.Time {
	if m.detection.Latency > 0 {
		return m.packetWindowStart(n)
	}
	return m.g.Nodes[n].PolledAt.Add(-epoch.PauseBurstGap)
}

// foundDrainTime returns how long the backlog takes to drain that a flow's
// packets found in a queue on average, given the packet size.
func (m *analysis) foundDrainTime(p provenance.FlowEpoch, size float64) time.Duration {
	mean := float64(p.Record.Depth+p.Record.PausedDepth) / float64(max(p.Record.Packets, 1))
	return m.drainTime(p.Node, mean*size)
}

// victimFirstEnqueue returns when the victim's first packet joined a queue, if
// that was after a time, and the longest time that what it found there can take
// to drain. The switch reports only the mean of what the packets found: the
// first found more, by as much as the queue drained until the last came.
func (m *analysis) victimFirstEnqueue(n int, since model.Time) (first model.Time, found time.Duration, ok bool) {
	flow := m.g.Flow(m.detection.Victim)
	for _, p := range m.g.FlowEpochsAt(n) { // in the order of epochs
		if p.Flow != flow {
			continue
		}
		from, to := m.enqueueTimes(p)
		if to < since {
			continue
		}
		return from, m.foundDrainTime(p, m.meanPacketSize(n)) + to.Sub(from), from >= since
	}
	return 0, 0, false
}

// meanPacketSize returns the mean size of a queue's packets, in bytes.
func (m *analysis) meanPacketSize(n int) float64 {
	bytes, packets := 0.0, 0.0
	for _, p := range m.g.FlowEpochsAt(n) {
		bytes += float64(p.Record.Bytes)
		packets += float64(p.Record.Packets)
	}
	return bytes / max(packets, 1)
}

// drainTime returns how long a queue's link takes to send some bytes.
func (m *analysis) drainTime(n int, bytes float64) time.Duration {
	return time.Duration(bytes / m.linkBytes(n, time.Nanosecond))
}

// passedBetween reports whether a flow passed a queue between two times.
func (m *analysis) passedBetween(p provenance.FlowEpoch, from, to model.Time) bool {
	first, last := m.enqueueTimes(p)
	return last >= from && first <= to
}

// fractionBetween returns the fraction of a flow's epoch record that lies
// between two times, if its packets came evenly: 1 is all of it. A record that
// touches the window counts as one packet at least.
func (m *analysis) fractionBetween(p provenance.FlowEpoch, from, to model.Time) float64 {
	if !m.passedBetween(p, from, to) {
		return 0
	}
	first, last := m.enqueueTimes(p)
	if first >= from && last <= to {
		return 1
	}
	return max(float64(min(last, to).Sub(max(first, from)))/float64(last.Sub(first)), 1/float64(p.Record.Packets))
}

// culpritList returns the flows whose weight is not far below the heaviest's.
func (m *analysis) culpritList(weights map[int]float64) (list []Culprit) {
	total, most := 0.0, 0.0
	for _, w := range weights {
		total += w
		most = max(most, w)
	}
	for f, w := range weights {
		if w > 0 && w >= m.cfg.MinCulpritShare*most {
			list = append(list, Culprit{m.g.Flows[f], w / total})
		}
	}
	slices.SortFunc(list, func(a, b Culprit) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), a.Flow.Compare(b.Flow))
	})
	return list
}

// queuedBytesByFlow returns the bytes of each flow that wait for a queue's
// link.
func (m *analysis) queuedBytesByFlow(n int) map[int]float64 {
	weights := map[int]float64{}
	passes := map[int]bool{}
	for _, w := range m.g.QueuedAt(n) {
		weights[w.Flow] += float64(w.Bytes)
		passes[w.Flow] = true
	}
	for _, p := range m.g.FlowEpochsAt(n) {
		passes[p.Flow] = true
	}
	for _, up := range m.pausedFeedersOf(n) {
		for _, w := range m.g.QueuedAt(up) {
			if passes[w.Flow] {
				weights[w.Flow] += float64(w.Bytes)
			}
		}
	}
	return weights
}

// pausedFeedersOf returns the paused upstream queues whose packets a queue
// holds.
func (m *analysis) pausedFeedersOf(n int) (list []int) {
	if m.pausedFeeders == nil {
		m.pausedFeeders = map[int][]int{}
		for _, e := range m.g.Held {
			if m.g.Nodes[e.From].PausedAtSnapshot() {
				m.pausedFeeders[e.To] = append(m.pausedFeeders[e.To], e.From)
			}
		}
	}
	return m.pausedFeeders[n]
}

// epochBytesByFlow returns the bytes of each flow that a packet found ahead of
// it in a queue on average, of the flows ahead of the victim if there are any,
// otherwise of all that were reported.
//
// A switch sums up the depth that a flow's packets met. In a queue that sends,
// depth is time to wait, and by Little's law a flow's share of a queue is the
// sum of its packets' waiting times: the sum is the flow's share of the queue.
func (m *analysis) epochBytesByFlow(n int) map[int]float64 {
	if weights := m.weightedBytesByFlow(n, m.aheadOfVictim(n)); len(weights) > 0 {
		return weights
	}
	return m.weightedBytesByFlow(n, func(provenance.FlowEpoch) float64 { return 1 })
}

// weightedBytesByFlow is epochBytesByFlow of the fraction of each record that
// counts.
func (m *analysis) weightedBytesByFlow(n int, counts func(provenance.FlowEpoch) float64) map[int]float64 {
	weights := map[int]float64{}
	packets := 0.0
	for _, p := range m.g.FlowEpochsAt(n) {
		if p.Record.Depth == 0 || p.Record.Packets <= p.Record.Paused {
			continue
		}
		part := counts(p)
		if part == 0 {
			continue
		}
		weights[p.Flow] += part * float64(p.Record.Depth) * float64(p.Record.Bytes) / float64(p.Record.Packets)
		packets += part * float64(p.Record.Packets-p.Record.Paused)
	}
	for f := range weights {
		weights[f] /= packets
	}
	return weights
}

// flowsBeforePause returns the culprits at a paused queue: what is in it now is
// what was in it when it was paused, and flows that wait upstream had no part
// in that. It leaves out flows that came after its pauses began: they triggered
// nothing. If the reported epochs do not reach back that far, it knows nothing
// of the flows that were there, and leaves out those whose waiting bytes all
// came since the last pause started.
func (m *analysis) flowsBeforePause(n int) []Culprit {
	pauses := &m.g.Nodes[n].Pauses
	first := map[int]model.Time{}
	since := map[int]float64{} // bytes that joined after the last pause started
	oldest := model.Time(math.MaxInt64)
	for _, p := range m.g.FlowEpochsAt(n) {
		at, _ := m.enqueueTimes(p)
		if was, known := first[p.Flow]; !known || at < was {
			first[p.Flow] = at
		}
		if at > pauses.LastStart {
			since[p.Flow] += float64(p.Record.Bytes)
		}
		oldest = min(oldest, at)
	}
	waiting := map[int]float64{}
	for _, w := range m.g.QueuedAt(n) {
		waiting[w.Flow] += float64(w.Bytes)
	}
	list := m.culpritList(waiting)
	if len(list) == 0 {
		list = m.culprits(n)
	}
	late := func(f int) bool {
		if oldest > pauses.BurstStart {
			return since[f] > 0 && since[f] >= waiting[f]
		}
		at, known := first[f]
		return known && at > pauses.BurstStart
	}
	kept, sum := []Culprit(nil), 0.0
	for _, c := range list {
		if !late(m.g.Flow(c.Flow)) {
			kept = append(kept, c)
			sum += c.Weight
		}
	}
	if len(kept) == 0 {
		return list
	}
	for i := range kept {
		kept[i].Weight /= sum
	}
	return kept
}

// routingFault finds the route that closes a cycle: one that sends packets of
// the cycle off the intended routes, or, where static routes are intended so,
// away from their destination. Of several it returns the one with most bytes
// waiting.
func (m *analysis) routingFault(cycle []int) *RoutingFault {
	type candidate struct {
		fault  RoutingFault
		grade  int
		weight float64
	}
	var best *candidate
	weights := map[RoutingFault]float64{}
	consider := func(n, flow int, bytes float64) {
		node := &m.g.Nodes[n]
		key := m.g.Flows[flow]
		dst, ok := m.fabric.ByAddr(key.Dst)
		if !ok {
			return
		}
		grade := 0
		here, ok1 := m.routes.Distance(node.Node, key.Dst)
		there, ok2 := m.routes.Distance(node.Peer.Node, key.Dst)
		if ok1 && ok2 && there >= here {
			grade++
		}
		if !slices.Contains(m.routes.NextHops(node.Node, key.Dst), node.Port.Port) {
			grade += 2
		}
		if grade == 0 {
			return
		}
		f := RoutingFault{node.Node, dst, node.Peer.Node}
		weights[f] += bytes
		if best == nil || cmp.Or(cmp.Compare(grade, best.grade), cmp.Compare(weights[f], best.weight)) > 0 {
			best = &candidate{f, grade, weights[f]}
		}
	}
	for _, n := range cycle {
		for _, w := range m.g.QueuedAt(n) {
			consider(n, w.Flow, float64(w.Bytes))
		}
		for _, p := range m.g.FlowEpochsAt(n) {
			consider(n, p.Flow, 1)
		}
	}
	if best == nil {
		return nil
	}
	return &best.fault
}

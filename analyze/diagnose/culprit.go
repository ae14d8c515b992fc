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
// what waits for it: in the queue itself, and in the paused queues right before
// it, where PFC makes a part of every burst wait. Where nothing waits any more,
// by their share of what waited in the epochs.
//
// Paper: flows with positive weight in the replayed queue. Those weights are
// what a flow gives to others less what it gets: of four equal flows in an
// incast each weighs about nothing, and the rule would find no flow at all; of
// unequal ones it finds only the heaviest. A share of the queue has no such
// blind spot.
func (m *matching) culprits(n int) []Culprit {
	weights := m.queuedFor(n)
	if len(weights) == 0 {
		weights = m.waitedAt(n)
	}
	return m.list(weights)
}

// competitors returns the flows that a packet of the victim met in a queue of
// its own way: those in it, and those that lately were. A burst is most of what
// the packet waited for, and its flows leave one by one while it drains: what
// is left of it when the host complains is those that came last. So much as the
// queue holds less than the victim's packets lately found in it has left it.
func (m *matching) competitors(n int) []Culprit {
	weights := m.waitedAt(n)
	if m.now {
		sum := 0.0
		for _, bytes := range weights {
			sum += bytes
		}
		left := max(0, m.found(n)-m.queued(n))
		for f := range weights {
			weights[f] *= left / sum
		}
		for f, bytes := range m.queuedFor(n) {
			weights[f] += bytes
		}
	}
	return m.list(weights)
}

// found is the most bytes that the victim's packets lately found in a queue, in
// the mean over an epoch. Of a victim that was there before, the mean says
// little, as most of its packets may have met nothing: then that of any flow.
func (m *matching) found(n int) (bytes float64) {
	ahead := m.ahead(n)
	flow := m.g.Flow(m.complaint.Victim)
	_, _, came := m.entered(n, m.sent(n))
	most := 0.0
	for _, p := range m.g.PassagesAt(n) {
		free := float64(p.Did.Packets) - float64(p.Did.Paused)
		if ahead(p) == 0 || free <= 0 {
			continue
		}
		mean := float64(p.Did.Depth) / free * packet
		if most = max(most, mean); p.Flow == flow {
			bytes = max(bytes, mean)
		}
	}
	if !came || 2*bytes < m.queued(n) {
		return most
	}
	return bytes
}

// ahead tells of what flows did in a queue how much of it may have been before the
// victim's packet: nothing that came after the victim's last. If the victim came
// to it since the packet was sent, that is what its first packet found there, and
// a pause until then kept it longer; else what had not left when the packet was
// sent, by what the flow's own packets found.
func (m *matching) ahead(n int) func(provenance.Passage) float64 {
	node := &m.g.Nodes[n]
	since, until := m.sent(n), m.left(n)
	first, found, ok := m.entered(n, since)
	if !ok {
		size := m.size(n)
		return func(p provenance.Passage) float64 { return m.part(p, since.Add(-m.drain(p, size)), until) }
	}
	if deepest := m.drained(n, float64(node.Wave.MaxBytes)); deepest > 0 {
		found = min(found, deepest)
	}
	from := first.Add(-found)
	if p := &node.Pauses; p.Pauses > 0 && p.LastEnd >= from && p.LastEnd > p.LastStart && first > p.LastStart {
		from = from.Add(-min(p.LastEnd, first).Sub(p.LastStart))
	}
	return func(p provenance.Passage) float64 { return m.part(p, from, until) }
}

// left is when the last packet of the victim joined a queue; the end of time
// where none is known to have.
func (m *matching) left(n int) model.Time {
	flow, at := m.g.Flow(m.complaint.Victim), model.Time(math.MinInt64)
	for _, p := range m.g.PassagesAt(n) {
		if _, last := m.joined(p); p.Flow == flow {
			at = max(at, last)
		}
	}
	if at == math.MinInt64 {
		return math.MaxInt64
	}
	return at
}

// sent is from when on the victim's packet may have been in a queue; if nobody
// knows how long it took, a moment ago.
func (m *matching) sent(n int) model.Time {
	if m.complaint.Took > 0 {
		return m.since(n)
	}
	return m.g.Nodes[n].Asked.Add(-epoch.PauseBurstGap)
}

// drain is how long what a flow's packets found in a queue takes to drain, in
// the mean, if its packets have a size.
func (m *matching) drain(p provenance.Passage, size float64) time.Duration {
	mean := float64(p.Did.Depth+p.Did.PausedDepth) / float64(max(p.Did.Packets, 1))
	return m.drained(p.Node, mean*size)
}

// entered is when the victim's first packet joined a queue, if that was after a
// time, and how long what it found there takes to drain, at most. Only the mean
// of what its packets found is told: the first found more by as much as the
// queue drained until the last came.
func (m *matching) entered(n int, since model.Time) (first model.Time, found time.Duration, ok bool) {
	flow := m.g.Flow(m.complaint.Victim)
	for _, p := range m.g.PassagesAt(n) { // by epoch
		if p.Flow != flow {
			continue
		}
		from, to := m.joined(p)
		if to < since {
			continue
		}
		return from, m.drain(p, m.size(n)) + to.Sub(from), from >= since
	}
	return 0, 0, false
}

// size is that of a queue's packets in the mean, in bytes.
func (m *matching) size(n int) float64 {
	bytes, packets := 0.0, 0.0
	for _, p := range m.g.PassagesAt(n) {
		bytes += float64(p.Did.Bytes)
		packets += float64(p.Did.Packets)
	}
	return bytes / max(packets, 1)
}

// drained is how long a queue's link takes for some bytes.
func (m *matching) drained(n int, bytes float64) time.Duration {
	return time.Duration(bytes / m.bytesIn(n, time.Nanosecond))
}

// between tells whether a flow passed a queue between two times.
func (m *matching) between(p provenance.Passage, from, to model.Time) bool {
	first, last := m.joined(p)
	return last >= from && first <= to
}

// part is how much of what a flow did in a queue was between two times, if its
// packets came evenly: all of it is 1. At the edges, a packet at least.
func (m *matching) part(p provenance.Passage, from, to model.Time) float64 {
	if !m.between(p, from, to) {
		return 0
	}
	first, last := m.joined(p)
	if first >= from && last <= to {
		return 1
	}
	return max(float64(min(last, to).Sub(max(first, from)))/float64(last.Sub(first)), 1/float64(p.Did.Packets))
}

// list makes culprits of flows whose weight is not far below the heaviest's.
func (m *matching) list(weights map[int]float64) (list []Culprit) {
	total, most := 0.0, 0.0
	for _, w := range weights {
		total += w
		most = max(most, w)
	}
	for f, w := range weights {
		if w > 0 && w >= m.cfg.Part*most {
			list = append(list, Culprit{m.g.Flows[f], w / total})
		}
	}
	slices.SortFunc(list, func(a, b Culprit) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), a.Flow.Compare(b.Flow))
	})
	return list
}

// queuedFor returns the bytes of each flow that wait for a queue's link.
func (m *matching) queuedFor(n int) map[int]float64 {
	weights := map[int]float64{}
	passes := map[int]bool{}
	for _, w := range m.g.WaitingAt(n) {
		weights[w.Flow] += float64(w.Bytes)
		passes[w.Flow] = true
	}
	for _, p := range m.g.PassagesAt(n) {
		passes[p.Flow] = true
	}
	for _, up := range m.waitingFor(n) {
		for _, w := range m.g.WaitingAt(up) {
			if passes[w.Flow] {
				weights[w.Flow] += float64(w.Bytes)
			}
		}
	}
	return weights
}

// waitingFor returns the paused queues of which a queue holds packets.
func (m *matching) waitingFor(n int) (list []int) {
	if m.stopped == nil {
		m.stopped = map[int][]int{}
		for _, e := range m.g.Held {
			if m.g.Nodes[e.From].Stands() {
				m.stopped[e.To] = append(m.stopped[e.To], e.From)
			}
		}
	}
	return m.stopped[n]
}

// waitedAt returns the bytes of each flow that a packet found before it in a
// queue in the mean, of flows that lately joined it if any did, else of all that
// were told.
//
// A switch sums up the depth that a flow's packets met. In a queue that sends,
// depth is time to wait, and by Little's law a flow has so much in a queue as
// its packets' times to wait come to: the sum is the flow's share of the queue.
func (m *matching) waitedAt(n int) map[int]float64 {
	if weights := m.waitedIn(n, m.ahead(n)); len(weights) > 0 {
		return weights
	}
	return m.waitedIn(n, func(provenance.Passage) float64 { return 1 })
}

// waitedIn is waitedAt of the part of what flows did that counts.
func (m *matching) waitedIn(n int, counts func(provenance.Passage) float64) map[int]float64 {
	weights := map[int]float64{}
	packets := 0.0
	for _, p := range m.g.PassagesAt(n) {
		if p.Did.Depth == 0 || p.Did.Packets <= p.Did.Paused {
			continue
		}
		part := counts(p)
		if part == 0 {
			continue
		}
		weights[p.Flow] += part * float64(p.Did.Depth) * float64(p.Did.Bytes) / float64(p.Did.Packets)
		packets += part * float64(p.Did.Packets-p.Did.Paused)
	}
	for f := range weights {
		weights[f] /= packets
	}
	return weights
}

// starters returns the flows of a queue that stands: what is in it is what was
// when it stopped, and who waits before it had no part in that. It leaves out
// those that came after its pauses began: they did not begin anything. Where the epochs told do not reach back
// so far, nothing is known of those who were there, and something of those who
// came since the last of its pauses: all that they have waiting.
func (m *matching) starters(n int) []Culprit {
	pauses := &m.g.Nodes[n].Pauses
	first := map[int]model.Time{}
	since := map[int]float64{} // bytes that joined after the queue stopped
	oldest := model.Time(math.MaxInt64)
	for _, p := range m.g.PassagesAt(n) {
		at, _ := m.joined(p)
		if was, known := first[p.Flow]; !known || at < was {
			first[p.Flow] = at
		}
		if at > pauses.LastStart {
			since[p.Flow] += float64(p.Did.Bytes)
		}
		oldest = min(oldest, at)
	}
	waiting := map[int]float64{}
	for _, w := range m.g.WaitingAt(n) {
		waiting[w.Flow] += float64(w.Bytes)
	}
	list := m.list(waiting)
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

// routingFault finds the entry behind a loop: one that sends packets of the
// loop another way than intended, or, where static routes are intended so, away
// from their destination. Of several the one with most waiting.
func (m *matching) routingFault(loop []int) *RoutingFault {
	type candidate struct {
		fault  RoutingFault
		grade  int
		weight float64
	}
	var best *candidate
	weights := map[RoutingFault]float64{}
	look := func(n, flow int, bytes float64) {
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
	for _, n := range loop {
		for _, w := range m.g.WaitingAt(n) {
			look(n, w.Flow, float64(w.Bytes))
		}
		for _, p := range m.g.PassagesAt(n) {
			look(n, p.Flow, 1)
		}
	}
	if best == nil {
		return nil
	}
	return &best.fault
}

package fromgraph

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/roce"
)

// victim returns the late packet. Its time begins when it joins its first
// switch: what it waits in its host is no part of its lateness.
func (b *builder) victim(source model.NodeID) *attribution.Victim {
	d := &b.detection
	v := &attribution.Victim{Flow: d.Victim, InFlight: d.InFlight, QueuedAt: -1, AckQueuedAt: -1, Size: b.out.MTU}
	seen, class := b.queuesOf(d.Victim)
	forward, first, wire := b.path(d.Victim, source, class, seen)
	v.Path = forward
	base := d.BaseRTT
	destination, ok := b.fabric.ByAddr(d.Victim.Dst)
	ack := roce.AckKey(d.Victim)
	if ok {
		seen, class := b.queuesOf(ack)
		reverse, out, back := b.path(ack, destination, class, seen)
		if base == 0 {
			base = first + wire + out + back
		}
		for _, q := range reverse {
			if q < len(b.g.Nodes) { // reported
				v.Reverse = append(v.Reverse, q)
			}
		}
	}
	took := d.Latency
	if took <= 0 {
		took = b.window() + first
	}
	v.Sent = b.axis.poll.Add(first - took)
	v.Took, v.Base = max(took-first, 0), max(base-first, 0)
	if d.InFlight {
		v.QueuedAt, v.AckQueuedAt = b.lastQueue(d.Victim, v.Path, v.Sent), b.lastQueue(ack, v.Reverse, v.Sent)
	}
	if ok && len(b.reports.Returning) > 0 {
		b.addReceiverQueue(destination, ack, class, v)
	}
	return v
}

// lastQueue returns the last queue of a path that holds packets of a flow: the oldest
// packet is ahead of the others. -1: none is known to, or a later one may hold it, which
// was congested at a snapshot from before the packet, or from before that of the queue
// which holds the flow: the packet may have gone on, and others have come.
func (b *builder) lastQueue(key model.FlowKey, path []int, sent model.Time) int {
	flow := b.g.Flow(key)
	oldest := model.Time(math.MaxInt64) // snapshot of the later queues that were congested then
	for hop := len(path) - 1; hop >= 0; hop-- {
		q := path[hop]
		if q >= len(b.g.Nodes) {
			continue
		}
		n := &b.g.Nodes[q]
		if b.isFresh(q, sent) && slices.ContainsFunc(b.g.QueuedAt(q), func(w provenance.QueuedFlow) bool { return w.Flow == flow }) {
			if oldest < b.axis.time(n.Node, n.Snapshot) {
				return -1
			}
			return hop
		}
		if list := n.CongestionIntervals; len(list) > 0 && list[len(list)-1].Open {
			oldest = min(oldest, b.axis.time(n.Node, n.Snapshot))
		}
	}
	return -1
}

// window returns how long the flow has been slow, where no packet was measured; not
// longer than the reports go back: to the first reported epoch, and to the start of
// what still held then. Switches also remember what was over before.
func (b *builder) window() time.Duration {
	from := b.g.From
	if from == 0 {
		from = b.g.To
	}
	reach := max(b.g.To.Sub(from), 0)
	for i := range b.g.Nodes {
		n := &b.g.Nodes[i]
		for _, list := range [][]provenance.Interval{n.PauseIntervals, n.CongestionIntervals} {
			for _, x := range list {
				if x.End >= from {
					reach = max(reach, n.Snapshot.Sub(x.Start))
				}
			}
		}
	}
	if b.detection.Window > 0 {
		return min(b.detection.Window, reach)
	}
	return reach
}

// addSenderQueue adds the sender's own queue to the path, if the sender's packets are
// held at its switch.
func (b *builder) addSenderQueue(source model.NodeID, v *attribution.Victim) {
	if len(v.Path) == 0 {
		return
	}
	class := b.out.Queues[v.Path[0]].Queue.Class
	if q, ok := b.hostQueue(source, b.detection.Victim, class, v.Sent, false); ok {
		v.Path = slices.Insert(v.Path, 0, q)
	}
}

// addReceiverQueue adds the receiver's own queue to the path of the acknowledgement, if
// no other queue holds any: where the receiver's packets are held in paused queues, its
// switch may have paused the receiver.
func (b *builder) addReceiverQueue(destination model.NodeID, ack model.FlowKey, class model.Priority, v *attribution.Victim) {
	if !v.InFlight || v.AckQueuedAt >= 0 {
		return
	}
	if q, ok := b.hostQueue(destination, ack, class, v.Sent, true); ok {
		v.Reverse, v.AckQueuedAt = slices.Insert(v.Reverse, 0, q), 0
	}
}

// hostQueue adds the queue of a host, with a pause for what holds the host's packets at
// its switch, in paused queues alone or in all. Nothing says since when it is paused:
// since a packet was sent.
func (b *builder) hostQueue(host model.NodeID, key model.FlowKey, class model.Priority, sent model.Time, inPaused bool) (index int, ok bool) {
	out, ok := b.routes.NextHop(host, key)
	if !ok {
		return 0, false
	}
	r := b.record(provenance.Queue{Port: model.Port{Node: host, Port: out}, Priority: class})
	r.Pauses = []attribution.Pause{{From: sent, Open: true}}
	report := b.report(r.Peer.Node)
	if report == nil {
		return 0, false
	}
	for _, h := range report.PortPairBacklogs {
		to := b.g.Node(provenance.Queue{Port: model.Port{Node: r.Peer.Node, Port: h.Out}, Priority: h.Priority})
		if h.In != r.Peer.Port || h.Priority != class || h.Bytes == 0 || to < 0 || inPaused && !b.g.Nodes[to].PausedAtSnapshot() {
			continue
		}
		r.Feeds = append(r.Feeds, attribution.Feed{To: to, From: sent, Until: always, Bytes: model.Bytes(min(h.Bytes, math.MaxInt64)), Held: true})
	}
	if len(r.Feeds) == 0 {
		return 0, false
	}
	device := attribution.Device{Node: host, Reported: true, Complete: true, Snapshot: b.axis.poll}
	if at, known := slices.BinarySearchFunc(b.out.Devices, host, func(d attribution.Device, n model.NodeID) int { return cmp.Compare(d.Node, n) }); !known {
		b.out.Devices = slices.Insert(b.out.Devices, at, device)
	}
	b.out.Queues = append(b.out.Queues, r)
	return len(b.out.Queues) - 1, true
}

// bySwitch orders reports.
func bySwitch(r *provenance.Report, sw model.NodeID) int { return cmp.Compare(r.Switch, sw) }

// isFresh reports whether a queue's snapshot is younger than the packet: it may
// have been taken for another detection.
func (b *builder) isFresh(q int, sent model.Time) bool {
	n := &b.g.Nodes[q]
	return b.axis.time(n.Node, n.Snapshot) >= sent
}

// queuesOf returns, by switch, the queue in which a flow's packets were seen last, and
// its class.
func (b *builder) queuesOf(key model.FlowKey) (seen map[model.NodeID]int, class model.Priority) {
	seen, class = map[model.NodeID]int{}, b.detection.Class
	flow := b.g.Flow(key)
	if flow < 0 {
		if class == 0 {
			class = b.busiestClass()
		}
		return seen, class
	}
	last := map[model.NodeID]model.Time{}
	note := func(n int, at model.Time) {
		sw := b.g.Nodes[n].Node
		if _, known := seen[sw]; !known || at >= last[sw] {
			seen[sw], last[sw], class = n, at, b.g.Nodes[n].Priority
		}
	}
	for i := range b.g.FlowEpochs {
		if f := &b.g.FlowEpochs[i]; f.Flow == flow {
			note(f.Node, b.epochStart(b.g.Nodes[f.Node].Node, f.Record.Epoch).Add(f.Record.Last))
		}
	}
	for i := range b.g.QueuedFlows {
		if w := &b.g.QueuedFlows[i]; w.Flow == flow {
			note(w.Node, b.g.Nodes[w.Node].Snapshot)
		}
	}
	return seen, class
}

// busiestClass returns the class whose queues were paused or congested most often: that
// of a flow which no switch recorded, as far as anything says.
func (b *builder) busiestClass() (class model.Priority) {
	var counts [8]int
	for i := range b.g.Nodes {
		n := &b.g.Nodes[i]
		counts[n.Priority&7] += len(n.PauseIntervals) + len(n.CongestionIntervals)
	}
	for c := range counts {
		if counts[c] > counts[class] {
			class = model.Priority(c)
		}
	}
	return class
}

// path returns the queues of the switches that a flow's packets pass: from each
// switch by the port where they were seen, else where its intended route leads.
// first is the time on the host's link, wire that on the others. Packets that
// return to a switch are not followed further.
func (b *builder) path(key model.FlowKey, from model.NodeID, class model.Priority, seen map[model.NodeID]int) (queues []int, first, wire time.Duration) {
	passed := map[model.NodeID]bool{}
	for at := from; b.fabric.HasNode(at) && !passed[at]; {
		passed[at] = true
		out := model.Port{Node: at}
		n, isSeen := seen[at]
		if isSeen {
			out = b.g.Nodes[n].Port
		} else {
			out.Port, _ = b.routes.NextHop(at, key)
		}
		isSwitch, port := b.fabric.Node(at).Role.IsSwitch(), b.fabric.Port(out)
		if port == nil || !isSwitch && at != from {
			break
		}
		link := port.Delay + onWire(b.out.MTU, port.Rate)
		at = port.Peer.Node
		if !isSwitch {
			first += link
			continue
		}
		wire += link
		if !isSeen {
			n = b.queueIndex(provenance.Queue{Port: out, Priority: class})
		}
		queues = append(queues, n)
	}
	return queues, first, wire
}

// queueIndex returns the index of a queue, which it adds if no report has it.
func (b *builder) queueIndex(q provenance.Queue) int {
	if n := b.g.Node(q); n >= 0 {
		return n
	}
	b.out.Queues = append(b.out.Queues, b.record(q))
	return len(b.out.Queues) - 1
}

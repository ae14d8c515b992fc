package fromgraph

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
)

// victim returns the late packet. Its time begins when it joins its first
// switch: what it waits in its host is no part of its lateness.
func (b *builder) victim(source model.NodeID) *attribution.Victim {
	d := &b.detection
	v := &attribution.Victim{Flow: d.Victim, InFlight: d.InFlight, QueuedAt: -1, Size: b.out.MTU}
	seen, class := b.victimQueues()
	forward, first, wire := b.path(d.Victim, source, class, seen)
	v.Path = forward
	base := d.BaseRTT
	destination, ok := b.fabric.ByAddr(d.Victim.Dst)
	if ok {
		reverse, out, back := b.path(d.Victim.Reverse(), destination, class, nil)
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
		flow := b.g.Flow(d.Victim)
		for hop, q := range v.Path {
			for i := range b.g.QueuedFlows {
				if w := &b.g.QueuedFlows[i]; w.Flow == flow && w.Node == q && b.isFresh(q, v.Sent) {
					v.QueuedAt = hop // the last: the oldest packet is ahead of the others
				}
			}
		}
	}
	return v
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

// addHostQueue adds the host's own queue to the path. Its switch pauses it, for what
// holds the host's packets there; nothing says since when, so for the whole window.
func (b *builder) addHostQueue(source model.NodeID, v *attribution.Victim) {
	if len(v.Path) == 0 || len(b.g.FromVictimHost) == 0 {
		return
	}
	first := b.out.Queues[v.Path[0]].Queue
	out, ok := b.routes.NextHop(source, b.detection.Victim)
	if !ok {
		return
	}
	r := b.record(provenance.Queue{Port: model.Port{Node: source, Port: out}, Priority: first.Class})
	r.Pauses = []attribution.Pause{{From: v.Sent, Open: true}}
	for _, h := range b.g.FromVictimHost {
		if to := &b.g.Nodes[h.To]; h.Weight > 0 && to.Node == r.Peer.Node {
			r.Feeds = append(r.Feeds, attribution.Feed{To: h.To, From: v.Sent, Until: always, Bytes: model.Bytes(h.Weight), Held: true})
		}
	}
	device := attribution.Device{Node: source, Reported: true, Complete: true, Snapshot: b.axis.poll}
	at, _ := slices.BinarySearchFunc(b.out.Devices, source, func(d attribution.Device, n model.NodeID) int { return cmp.Compare(d.Node, n) })
	b.out.Devices = slices.Insert(b.out.Devices, at, device)
	b.out.Queues = append(b.out.Queues, r)
	v.Path = slices.Insert(v.Path, 0, len(b.out.Queues)-1)
}

// isFresh reports whether a queue's snapshot is younger than the packet: it may
// have been taken for another detection.
func (b *builder) isFresh(q int, sent model.Time) bool {
	n := &b.g.Nodes[q]
	return b.axis.time(n.Node, n.Snapshot) >= sent
}

// victimQueues returns, by switch, the queue in which the victim's packets were
// seen last, and the victim's class.
func (b *builder) victimQueues() (seen map[model.NodeID]int, class model.Priority) {
	seen, class = map[model.NodeID]int{}, b.detection.Class
	flow := b.g.Flow(b.detection.Victim)
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

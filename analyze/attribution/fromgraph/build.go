package fromgraph

import (
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// Detection is what a host reported of its slow flow.
type Detection struct {
	Victim model.FlowKey
	Class  model.Priority // of the flow, where no switch reports it
	// Latency is the round-trip time of the late packet, or its age if it is
	// InFlight.
	Latency  time.Duration
	InFlight bool
	// BaseRTT is the round-trip time without waiting; 0: as the links say.
	BaseRTT time.Duration

	// Without a Latency, the flow has been slow for Window, or, if that is 0, as
	// long as the reports go back. HostPaused: its host's port is paused, so it may
	// wait there for what the host's other flows wait for.
	Window     time.Duration
	HostPaused bool
}

// Build returns the evidence and the late packet of a detection. The graph is
// that of the evidence, the routes are the intended ones of its time.
func Build(d Detection, e *provenance.Evidence, g *provenance.Graph, routes *topo.Routes) (*attribution.Evidence, *attribution.Victim) {
	b := &builder{detection: d, reports: e, g: g, routes: routes, fabric: routes.Fabric(), out: &attribution.Evidence{MTU: mtuOf(g)}}
	source, ok := b.fabric.ByAddr(d.Victim.Src)
	if !ok {
		source = noNode
	}
	far := b.pollDistances(source)
	b.axis = newAxis(e, far)
	for _, r := range e.Reports {
		if !b.fabric.HasNode(r.Switch) {
			continue
		}
		b.out.Devices = append(b.out.Devices, attribution.Device{
			Node: r.Switch, Reported: true, Complete: r.Missing == 0, Snapshot: b.axis.time(r.Switch, r.Snapshot),
			ClockError: far[r.Switch].wire,
		})
	}
	b.addQueues()
	b.addHeld()
	b.loaded = make([]bool, len(b.g.Nodes))
	b.out.Load = b.load
	v := b.victim(source)
	if d.Latency <= 0 && d.HostPaused && source != noNode {
		b.addSenderQueue(source, v)
	}
	return b.out, v
}

// noNode is the id of no node in any fabric.
const noNode model.NodeID = math.MaxUint32

type builder struct {
	detection Detection
	reports   *provenance.Evidence
	g         *provenance.Graph
	routes    *topo.Routes
	fabric    *topo.Fabric
	axis      axis
	out       *attribution.Evidence
	loaded    []bool // by node of the graph: load has completed it
}

// mtuOf returns the longest packet that switches report.
func mtuOf(g *provenance.Graph) (mtu model.Bytes) {
	for i := range g.SwitchReports {
		mtu = max(mtu, g.SwitchReports[i].Settings.MTU)
	}
	if mtu > 0 {
		return mtu
	}
	for i := range g.FlowEpochs {
		if r := g.FlowEpochs[i].Record; r.Packets > 0 {
			mtu = max(mtu, model.Bytes(r.Bytes/uint64(r.Packets)))
		}
	}
	return max(mtu, 1)
}

// record returns the record of a queue without its history.
func (b *builder) record(q provenance.Queue) attribution.QueueRecord {
	r := attribution.QueueRecord{Queue: attribution.Queue{Port: q.Port, Class: q.Priority}}
	if p := b.fabric.Port(q.Port); p != nil {
		r.Peer, r.Rate, r.Delay = p.Peer, p.Rate, p.Delay
		r.PeerIsHost = b.fabric.HasNode(p.Peer.Node) && !b.fabric.Node(p.Peer.Node).Role.IsSwitch()
	}
	return r
}

// addQueues adds the queues of the graph, with the same indexes.
func (b *builder) addQueues() {
	b.out.Queues = make([]attribution.QueueRecord, len(b.g.Nodes), len(b.g.Nodes)+8)
	for i := range b.g.Nodes {
		n := &b.g.Nodes[i]
		r := b.record(n.Queue)
		report, _ := b.g.SwitchReport(n.Node)
		r.Threshold = linkBytes(r.Rate, report.Settings.CongestionThreshold)
		at := func(t model.Time) model.Time { return b.axis.time(n.Node, t) }
		for _, p := range n.PauseIntervals {
			if p.Coverage > 0 {
				r.Pauses = append(r.Pauses, attribution.Pause{From: at(p.Start), To: at(p.End), Open: p.Open, Bytes: p.Bytes, Coverage: p.Coverage})
			}
		}
		for _, c := range n.CongestionIntervals {
			if c.Coverage > 0 {
				r.Congestions = append(r.Congestions, attribution.Congestion{From: at(c.Start), To: at(c.End), Open: c.Open, Peak: c.Bytes, Coverage: c.Coverage})
			}
		}
		if n.Snapshot != 0 {
			r.Depths = append(r.Depths, attribution.Depth{At: at(n.Snapshot), Bytes: model.Bytes(min(n.State.Queued, math.MaxInt64))})
			if memory := report.Settings.IntervalMemory; memory > 0 {
				r.Since = at(n.Snapshot.Add(-memory))
			}
		}
		b.out.Queues[i] = r
	}
}

// linkBytes returns what a link sends in a time.
func linkBytes(rate model.Rate, d time.Duration) model.Bytes {
	return model.Bytes(float64(rate) / 8 * d.Seconds())
}

// always ends spans that last beyond the snapshot.
const always = model.Time(math.MaxInt64 / 2)

// addHeld adds what queues held of others' packets at the snapshots. Since a
// queue was paused nothing new came from it: what is left of its packets was
// there all that time, and when the pause was sent. Else it was there for as long
// as it took to arrive.
func (b *builder) addHeld() {
	for _, h := range b.g.Held {
		q, to := &b.out.Queues[h.From], &b.g.Nodes[h.To]
		if h.Weight <= 0 || len(q.Pauses) == 0 {
			continue
		}
		from := b.axis.time(to.Node, to.Snapshot).Add(-onWire(model.Bytes(h.Weight), q.Rate))
		if last := &q.Pauses[len(q.Pauses)-1]; last.Open {
			from = min(from, last.From.Add(-q.Delay))
		}
		q.Feeds = append(q.Feeds, attribution.Feed{To: h.To, From: from, Until: always, Bytes: model.Bytes(h.Weight), Held: true})
	}
}

// load completes a queue: with what the reports of its switch say about its backlog and
// flows, and that of the next switch about where its packets went.
func (b *builder) load(i int) {
	if i >= len(b.loaded) || b.loaded[i] {
		return
	}
	b.loaded[i] = true
	q := &b.out.Queues[i]
	if r := b.report(q.Queue.Port.Node); r != nil {
		b.addCurve(q, r)
	}
	if r := b.report(q.Peer.Node); r != nil && len(q.Pauses) > 0 && !q.PeerIsHost {
		b.addHistoryFeeds(q, r)
		b.addMeters(q, r)
	}
	if len(q.Congestions) > 0 || slices.ContainsFunc(q.Pauses, func(p attribution.Pause) bool { return p.Bytes > 0 }) {
		b.addFlows(q, i)
	}
}

// report returns the report of a switch, or nil.
func (b *builder) report(sw model.NodeID) *provenance.Report {
	if i, found := slices.BinarySearchFunc(b.reports.Reports, sw, bySwitch); found {
		return b.reports.Reports[i]
	}
	return nil
}

// addMeters adds to a paused queue where its traffic went in the epochs of the next
// switch. A meter of all classes counts for each.
func (b *builder) addMeters(q *attribution.QueueRecord, r *provenance.Report) {
	for i := range r.Meters {
		m := &r.Meters[i]
		if m.In != q.Peer.Port || m.Priority != q.Queue.Class && m.Priority <= 7 || m.Bytes == 0 {
			continue
		}
		to := b.g.Node(provenance.Queue{Port: model.Port{Node: r.Switch, Port: m.Out}, Priority: q.Queue.Class})
		start := r.Start(m.Epoch)
		if end := min(start.Add(r.EpochLength), r.Snapshot); to >= 0 && end > start {
			q.Feeds = append(q.Feeds, attribution.Feed{
				To: to, From: b.axis.time(r.Switch, start), Until: b.axis.time(r.Switch, end), Bytes: model.Bytes(min(m.Bytes, math.MaxInt64)),
			})
		}
	}
}

// addFlows adds the flows of a queue that was congested, at the snapshot or before.
func (b *builder) addFlows(q *attribution.QueueRecord, i int) {
	epochs, queued := b.g.FlowEpochsAt(i), b.g.QueuedAt(i)
	q.Flows = make([]attribution.FlowShare, 0, len(epochs)+len(queued))
	n := &b.g.Nodes[i]
	for j := range epochs {
		if f := epochs[j].Record; f.Packets > 0 {
			q.Flows = append(q.Flows, b.flowShare(n.Node, q.Rate, b.g.Flows[epochs[j].Flow], f))
		}
	}
	at := b.axis.time(n.Node, n.Snapshot)
	for j := range queued {
		w := &queued[j]
		q.Flows = append(q.Flows, attribution.FlowShare{
			Flow: b.g.Flows[w.Flow], From: at.Add(-onWire(w.Bytes, q.Rate)), Until: always, Bytes: w.Bytes,
		})
	}
}

// flowShare returns a flow's mean share of a queue in an epoch. By Little's law
// it is what its packets waited for, over the time: each waited for as many
// packets as it met, of about its own size.
func (b *builder) flowShare(sw model.NodeID, rate model.Rate, key model.FlowKey, f *epoch.Flow) attribution.FlowShare {
	start := b.epochStart(sw, f.Epoch)
	size := float64(f.Bytes) / float64(f.Packets)
	wait := float64(f.Depth+f.PausedDepth) * size * 8e9 / float64(max(rate, 1)) // summed over its packets
	from := start.Add(f.First)
	until := start.Add(f.Last + time.Duration(wait/float64(f.Packets)) + onWire(model.Bytes(size), rate))
	mean := size * wait / max(float64(until.Sub(from)), 1)
	return attribution.FlowShare{Flow: key, From: b.axis.time(sw, from), Until: b.axis.time(sw, until), Bytes: model.Bytes(min(max(mean, 1), 1e15))}
}

// epochStart returns when an epoch of a switch began, on its clock.
func (b *builder) epochStart(sw model.NodeID, n uint32) model.Time {
	if r := b.report(sw); r != nil {
		return r.Start(n)
	}
	return 0
}

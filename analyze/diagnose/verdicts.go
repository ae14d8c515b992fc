package diagnose

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// storm is the verdict of a queue that a host pauses.
func (m *matching) storm(e end) Verdict {
	v := m.begin(anomaly.PFCStorm, anomaly.HostInjection, e)
	m.hostSays(&v, e.node)
	return v
}

// hostSays tells what a host's pauses look like.
func (m *matching) hostSays(v *Verdict, n int) {
	node := &m.g.Nodes[n]
	host := nodeName(m.fabric, node.Peer.Node)
	v.note("%s sent %d pause frames to %s: no switch is behind that port", host, node.State.PauseFrames, m.name(n))
	p := &node.Pauses
	gap := p.LastStart.Sub(p.LastEnd)
	switch {
	case p.Pauses == 0:
		v.Detail = anomaly.UnknownDetail
	case !node.Stands():
		v.Detail = anomaly.DrainsSlowly
		v.note("it has let packets through again")
	case p.LastEnd != 0 && gap < epoch.PauseBurstGap:
		v.Detail = anomaly.DrainsSlowly
		v.note("it let packets through between pauses, lately for %v: it takes in what it can", gap)
		v.Remedy = fmt.Sprintf("find out why %s takes packets in slowly (PCIe, memory, a busy processor); until then move its load elsewhere", host)
	default:
		v.Detail = anomaly.NICStorm
		v.note("it has paused without a break for %v", node.Snapshot.Sub(p.LastStart))
		v.Remedy = fmt.Sprintf("take %s out of service: disable its port or let the PFC watchdog ignore its pauses, and reset or replace its network card", host)
	}
}

// backpressure is the verdict of a queue that flows overfill.
func (m *matching) backpressure(e end) Verdict {
	v := m.begin(anomaly.PFCBackpressure, anomaly.ContendingFlows, e)
	m.blame(&v, e.node, m.culprits(e.node))
	return v
}

// contention adds the verdict of a queue of the victim's own way.
func (m *matching) contention(n int) {
	v := m.begin(anomaly.FlowContention, anomaly.ContendingFlows, end{node: n, blame: 1, via: []int{n}})
	v.Path = nil
	v.Confidence = float64(m.g.Nodes[n].State.Queued) / (m.bytesIn(n, 100*time.Microsecond) + float64(m.g.Nodes[n].State.Queued))
	if !m.now {
		v.Confidence = 0.5 * m.share(n) * m.kept(n)
	}
	m.blame(&v, n, m.competitors(n))
	m.add(v)
}

// blame names the flows that overfill a queue, and why they do.
func (m *matching) blame(v *Verdict, n int, flows []Culprit) {
	node := &m.g.Nodes[n]
	v.Culprits = flows
	if m.now {
		v.note("%s was not paused and held %v", m.name(n), model.Bytes(node.State.Queued))
	} else {
		v.note("%s had %.0f packets waiting in the mean while it was not paused", m.name(n), node.Depth)
	}
	if len(v.Culprits) == 0 {
		v.note("which flows they were of is not known there")
	}
	v.Burst = m.burst(n, v.Culprits)
	m.detail(v, n)
}

// deadlock makes the verdicts of a loop: what began it decides which. There may
// be a reason inside and one outside of it.
func (m *matching) deadlock(loop cycle) {
	inside, depth := m.overfull(m.lastStopped(loop.nodes))
	host, flows := end{node: -1}, end{node: -1}
	closed := m.closing(loop.nodes)
	for _, e := range loop.ends {
		switch m.kind(e.node) {
		case openEnd:
			m.gap(e.node)
		case hostEnd:
			if host.node < 0 {
				host = e
			}
		case flowEnd:
			if !m.later(e) && !m.deepSince(e.node, closed) && (flows.node < 0 || m.queued(e.node) > m.queued(flows.node)) {
				flows = e
			}
		}
	}
	inLoop := inside >= 0 && depth >= m.bytesIn(inside, m.cfg.Deep)
	past := host.node < 0 && flows.node < 0
	if past {
		// What the circle waited for outside may be over by now. A queue of the
		// circle that was overfull by itself does not rule it out: which of the
		// two began it, nobody can tell. And hosts do not pause for nothing.
		switch e := m.began(loop.nodes); {
		case e.node < 0:
		case m.pausedByHost(e.node):
			host = e
		default:
			flows = e
		}
	}
	most, outside := depth, 0.0
	if flows.node >= 0 {
		outside = m.queued(flows.node)
		if past {
			outside = max(outside, m.g.Nodes[flows.node].Depth*packet)
		}
		most = max(most, outside)
	}
	if host.node >= 0 {
		v := m.inCircle(anomaly.DeadlockOutOfLoop, anomaly.HostInjection, loop, host, 1)
		m.hostSays(&v, host.node)
		m.endCircle(v, loop)
	}
	if flows.node >= 0 {
		v := m.inCircle(anomaly.DeadlockOutOfLoop, anomaly.ContendingFlows, loop, flows, outside/most)
		by := m.culprits(flows.node)
		if past {
			by = m.beginners(flows.node, closed)
		}
		m.blame(&v, flows.node, by)
		m.endCircle(v, loop)
	}
	if inLoop && host.node < 0 {
		v := m.inCircle(anomaly.DeadlockInLoop, anomaly.ContendingFlows, loop, end{node: inside}, depth/most)
		v.note("%s held %v already when it was first paused: it was overfull by itself", m.name(inside), model.Bytes(depth))
		v.Culprits = m.starters(inside)
		m.detail(&v, inside)
		m.endCircle(v, loop)
	}
	if host.node < 0 && flows.node < 0 && !inLoop {
		v := m.inCircle(anomaly.DeadlockOutOfLoop, anomaly.NoRootCause, loop, end{node: loop.nodes[0]}, 1)
		v.Initial = model.Port{}
		v.note("none of its queues was overfull when it was first paused: it began outside, and what began it has left no trace")
		m.endCircle(v, loop)
	}
}

func (m *matching) queued(n int) float64 { return float64(m.g.Nodes[n].State.Queued) }

// inCircle begins a verdict of a loop that something began.
func (m *matching) inCircle(a anomaly.Type, c anomaly.RootCause, loop cycle, by end, weight float64) Verdict {
	v := m.begin(a, c, end{node: by.node, blame: loop.blame * weight, via: loop.entry})
	for _, n := range loop.nodes {
		v.Loop = append(v.Loop, m.g.Nodes[n].Port)
	}
	v.Closed = m.g.To.Add(-m.closing(loop.nodes))
	v.note("%d queues, each paused, held packets of each other in a circle", len(loop.nodes))
	m.extend(&v, by)
	return v
}

// endCircle adds what can be done about a loop.
func (m *matching) endCircle(v Verdict, loop cycle) {
	v.Fault = m.routingFault(loop.nodes)
	if f := v.Fault; f != nil {
		v.note("%s sends packets for %s to %s, which closes the circle", nodeName(m.fabric, f.Node), nodeName(m.fabric, f.Dst), nodeName(m.fabric, f.NextHop))
		v.Remedy = fmt.Sprintf("put the route of %s for %s right; then break the circle by resetting one of its ports", nodeName(m.fabric, f.Node), nodeName(m.fabric, f.Dst))
	} else {
		v.Remedy = "break the circle: reset or drop the queue of one of its ports; then take the cyclic dependency out of the routes (weft topo check)"
	}
	m.add(v)
}

// extend lengthens the path of a loop's verdict to what is outside.
func (m *matching) extend(v *Verdict, outside end) {
	for _, n := range outside.via {
		if p := m.g.Nodes[n].Port; !slices.Contains(v.Path, p) {
			v.Path = append(v.Path, p)
		}
	}
}

// overfull returns the queue of a loop that held most when it was paused: the
// one that made the others wait, before they made it wait; -1 of none.
func (m *matching) overfull(loop []int) (node int, bytes float64) {
	node = -1
	for _, n := range loop {
		if b := float64(m.g.Nodes[n].Pauses.BytesAtBurstStart); node < 0 || b > bytes {
			node, bytes = n, b
		}
	}
	return node, bytes
}

// begin starts a verdict of where waiting ended. Its weight stands in
// Confidence until account.
func (m *matching) begin(a anomaly.Type, c anomaly.RootCause, e end) Verdict {
	v := Verdict{Event: m.complaint.Event, Victim: m.complaint.Victim, Anomaly: a, Cause: c, Initial: m.g.Nodes[e.node].Port, Confidence: e.blame}
	if source, ok := m.fabric.ByAddr(v.Victim.Src); ok && m.atHost {
		first := m.fabric.Port(model.Port{Node: source, Port: 1})
		for _, p := range m.fabric.Node(source).Ports {
			if p.Peer.Node == m.g.Nodes[e.via[0]].Node {
				first = m.fabric.Port(model.Port{Node: source, Port: p.ID})
			}
		}
		v.Path = append(v.Path, model.Port{Node: source, Port: first.ID})
		v.note("%s paused %s itself, for packets of its that it held at %s", nodeName(m.fabric, first.Peer.Node), nodeName(m.fabric, source), m.name(e.via[0]))
	} else if a != anomaly.FlowContention {
		v.note("%s was paused and held packets of the flow", m.name(e.via[0]))
	}
	for _, n := range e.via {
		v.Path = append(v.Path, m.g.Nodes[n].Port)
	}
	if a != anomaly.FlowContention {
		m.spread(&v, e.via)
	}
	return v
}

// note adds a piece of evidence.
func (v *Verdict) note(format string, args ...any) {
	v.Evidence = append(v.Evidence, fmt.Sprintf(format, args...))
}

// spread names the flows that carried pauses from port to port, and those that
// were held up.
func (m *matching) spread(v *Verdict, via []int) {
	const most = 64
	var before []int
	for i, n := range via {
		var here []int
		if m.g.Nodes[n].Stands() {
			for _, w := range m.g.WaitingAt(n) {
				here = append(here, w.Flow)
			}
		}
		for _, e := range m.g.FlowPort {
			if e.To == n && !m.now {
				here = append(here, e.From)
			}
		}
		for _, f := range here {
			key := m.g.Flows[f]
			if i > 0 && slices.Contains(before, f) && len(v.Spreaders) < most && !slices.Contains(v.Spreaders, key) {
				v.Spreaders = append(v.Spreaders, key)
			}
			if len(v.Victims) < most && !slices.Contains(v.Victims, key) {
				v.Victims = append(v.Victims, key)
			}
		}
		before = here
	}
	slices.SortFunc(v.Spreaders, model.FlowKey.Compare)
	slices.SortFunc(v.Victims, model.FlowKey.Compare)
}

// nothing is the verdict of a complaint without a cause.
func (m *matching) nothing() {
	v := Verdict{Event: m.complaint.Event, Victim: m.complaint.Victim, Confidence: 1}
	switch {
	case len(m.g.Tellers) == 0:
		v.note("no switch answered")
	case len(m.victim) == 0:
		v.note("no switch saw the flow in the epochs told")
	default:
		v.note("nothing on the flow's way was paused or overfull")
	}
	v.Remedy = "none; if it happens again, look at the hosts at both ends"
	m.add(v)
}

// account turns weights into confidence and adds what all verdicts of a
// complaint share.
func (m *matching) account() {
	whole := 0.0
	for i := range m.verdicts {
		whole = max(whole, m.verdicts[i].Confidence)
	}
	if whole <= 0 {
		whole = 1 // forged times can leave no weight to anything
	}
	for i := range m.verdicts {
		v := &m.verdicts[i]
		v.Confidence = m.sure(v, v.Confidence/whole)
		v.Open = len(m.gaps) > 0 || !m.evidence.Complete()
		v.At, v.Switches = m.g.To, len(m.g.Tellers)
		for _, r := range m.evidence.Reports {
			v.Telemetry += r.Bytes
		}
	}
}

// sure is how sure a verdict is, of a weight relative to the heaviest. The
// factors are not probabilities: each says that something is missing, and they
// multiply so that more missing is less sure.
func (m *matching) sure(v *Verdict, weight float64) float64 {
	c := 0.5 + 0.5*weight
	if len(m.gaps) > 0 {
		for _, g := range m.gaps {
			v.note("%s", g)
		}
		if v.Anomaly == anomaly.None {
			return 0.1 // not enough evidence
		}
		c *= 0.6
	}
	if !m.evidence.Complete() {
		c *= 0.8
		v.note("some reports did not arrive, or not whole")
	}
	if !m.now && v.Anomaly != anomaly.None {
		c *= 0.6
	}
	switch {
	case v.Anomaly == anomaly.None && len(m.victim) == 0:
		c *= 0.2
	case v.Cause == anomaly.NoRootCause && v.Anomaly != anomaly.None:
		c *= 0.5
	case v.Cause == anomaly.ContendingFlows && len(v.Culprits) == 0:
		c *= 0.7
	}
	if len(v.Loop) > 0 && !v.Standing {
		c *= unproven
	}
	return c
}

// unproven is what a loop is worth that was looked at once.
const unproven = 0.8

package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// setDetail sets why flows congest a queue, and the remedy.
func (m *analysis) setDetail(v *Verdict, n int) {
	other, share := m.otherClassShare(n)
	bursts := m.countBursts(n, v.Culprits)
	ratio, ports := m.imbalanceRatio(n, v.Culprits)
	sources := map[model.Addr]bool{}
	for _, c := range v.Culprits {
		sources[c.Flow.Src] = true
	}
	switch {
	case share > 0.3:
		v.Detail = anomaly.PriorityTraffic
		v.addEvidence("other traffic classes used %s of that link", model.FormatShare(share))
		if len(other) > 0 {
			v.Culprits = other
		}
	case bursts >= 3:
		v.Detail = anomaly.PeriodicBurst
		v.addEvidence("its flows sent %d bursts with silent epochs between them", bursts)
	case ratio >= m.cfg.ImbalanceRatio && len(v.DeadlockCycle) == 0:
		v.Detail = anomaly.ECMPImbalance
		v.addEvidence("it carried %.1f times the mean of %d equal-cost paths", ratio, ports)
	case len(v.Culprits) == 0:
		v.Detail = anomaly.UnknownDetail
		v.Remedy = fmt.Sprintf("find out which flows use %s: its switch has no flow records of that time", m.portText(n))
		return
	case len(v.Culprits) > 1 && m.areNewFlows(n, v.Culprits):
		v.Detail = anomaly.MicroBurst
		v.addEvidence("%d flows from %d hosts started at about the same time", len(v.Culprits), len(sources))
	default:
		v.Detail = anomaly.UnknownDetail
	}
	v.Remedy = anomaly.Expand(v.Detail.Remedy(), "{port}", m.portText(n), "{switch}",
		nodeName(m.fabric, m.g.Nodes[n].Node))
}

// areNewFlows reports whether most culprits were absent in the oldest fully
// reported epoch, or sent less in it than a long flow would have.
func (m *analysis) areNewFlows(n int, list []Culprit) bool {
	oldest, newest := ^uint32(0), uint32(0)
	for _, p := range m.g.FlowEpochsAt(n) {
		oldest, newest = min(oldest, p.Record.Epoch), max(newest, p.Record.Epoch)
	}
	if t, _ := m.g.SwitchReport(m.g.Nodes[n].Node); t.Epochs > 1 && oldest == newest && newest > 0 {
		return true // no flow used the queue before
	}
	young := 0
	for _, c := range list {
		packets := map[uint32]uint32{}
		for _, p := range m.epochRecords(n, c) {
			packets[p.Epoch] += p.Packets
		}
		if packets[oldest]*4 < packets[newest] || newest == oldest {
			young++
		}
	}
	return 2*young > len(list)
}

// epochRecords returns the records of a culprit at a queue, one per epoch.
func (m *analysis) epochRecords(n int, c Culprit) (list []*epoch.Flow) {
	f := m.g.Flow(c.Flow)
	passages := m.g.FlowEpochsAt(n)
	for i := range passages {
		if passages[i].Flow == f {
			list = append(list, passages[i].Record)
		}
	}
	return list
}

// burstDuration returns how long the link takes for what flows sent in the
// reported epochs.
func (m *analysis) burstDuration(n int, list []Culprit) time.Duration {
	bytes := 0.0
	for _, c := range list {
		for _, p := range m.epochRecords(n, c) {
			bytes += float64(p.Bytes)
		}
	}
	return m.drainTime(n, bytes)
}

// countBursts counts bursts over the reported epochs: runs of epochs in which
// the culprits sent, with at least one epoch between them in which they did
// not.
func (m *analysis) countBursts(n int, list []Culprit) int {
	on := map[uint32]bool{}
	for _, c := range list {
		for _, p := range m.epochRecords(n, c) {
			if p.Packets > 0 {
				on[p.Epoch] = true
			}
		}
	}
	rounds := 0
	for e := range on {
		if !on[e-1] {
			rounds++
		}
	}
	return rounds
}

// otherClassShare returns the share of a link that classes other than the
// queue's took in the reported epochs, and their flows. If the queue's own
// class took most of it, its own flows are the cause.
func (m *analysis) otherClassShare(n int) (list []Culprit, share float64) {
	q := m.g.Nodes[n].Queue
	own, others := 0.0, 0.0
	flows := map[int]float64{}
	for i := range m.g.Nodes {
		o := &m.g.Nodes[i]
		if o.Port != q.Port {
			continue
		}
		for _, p := range m.g.FlowEpochsAt(i) {
			if i == n {
				own += float64(p.Record.Bytes)
				continue
			}
			others += float64(p.Record.Bytes)
			flows[p.Flow] += float64(p.Record.Bytes)
		}
	}
	if others == 0 || own > others {
		return nil, 0
	}
	for f, b := range flows {
		if b >= m.cfg.MinCulpritShare*others {
			list = append(list, Culprit{m.g.Flows[f], b / others})
		}
	}
	slices.SortFunc(list, func(a, b Culprit) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), a.Flow.Compare(b.Flow))
	})
	return list, others / (own + others)
}

// imbalanceRatio returns how many times the mean of its equal-cost ports a port
// carried, and the number of those ports: ports of the same switch that the
// culprits could have taken as well. A burst that happens to take one path is
// no imbalance: the port must have been busy for a while.
func (m *analysis) imbalanceRatio(n int, list []Culprit) (ratio float64, ports int) {
	q := m.g.Nodes[n].Queue
	if m.g.Nodes[n].ToHost {
		return 0, 0
	}
	peers := map[model.PortID]bool{}
	for _, c := range list {
		next := m.routes.NextHops(q.Node, c.Flow.Dst)
		if slices.Contains(next, q.Port.Port) {
			for _, p := range next {
				peers[p] = true
			}
		}
	}
	if len(peers) < 2 {
		return 0, len(peers)
	}
	own, all := 0.0, 0.0
	for i := range m.g.Nodes {
		o := &m.g.Nodes[i]
		if o.Node != q.Node || o.Priority != q.Priority || !peers[o.Port.Port] {
			continue
		}
		all += float64(o.Packets)
		if o.Queue == q {
			own = float64(o.Packets)
		} else if o.PausedAtSnapshot() || m.isCongested(i) {
			return 0, len(peers) // the other ports are no better off
		}
	}
	const busy = 0.3 // share of what its link carries in the reported time
	if own*m.meanPacketSize(n) < busy*m.linkBytes(n, m.g.To.Sub(m.g.From)) || all == 0 {
		return 0, len(peers)
	}
	return own * float64(len(peers)) / all, len(peers)
}

// isCongested reports whether a queue holds what its switch calls congestion.
func (m *analysis) isCongested(n int) bool {
	node := &m.g.Nodes[n]
	report, _ := m.g.SwitchReport(node.Node)
	least := max(m.linkBytes(n, report.Settings.CongestionThreshold), float64(m.intervals.MTU))
	return float64(node.State.Queued) >= least
}

// linkBytes returns how many bytes a queue's link carries in a time.
func (m *analysis) linkBytes(n int, d time.Duration) float64 {
	p := m.fabric.Port(m.g.Nodes[n].Port)
	return float64(m.fabric.Links()[p.Link].Rate) / 8 * d.Seconds()
}

// drainTime returns how long a queue's link takes to send some bytes.
func (m *analysis) drainTime(n int, bytes float64) time.Duration {
	return time.Duration(bytes / m.linkBytes(n, time.Nanosecond))
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

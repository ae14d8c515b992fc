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

// setDetail says how flows came to overfill a queue, and what to do about it.
func (m *analysis) setDetail(v *Verdict, n int) {
	port := m.portText(n)
	if other, share := m.otherClassShare(n); share > 0.3 {
		v.Detail = anomaly.PriorityTraffic
		v.addEvidence("other classes took %.0f %% of that link", 100*share)
		if len(other) > 0 {
			v.Culprits = other
		}
		v.Remedy = fmt.Sprintf("give the class of the flow a larger share of %s, or move the others' traffic", port)
		return
	}
	if rounds := m.countBursts(n, v.Culprits); rounds >= 3 {
		v.Detail = anomaly.PeriodicBurst
		v.addEvidence("its flows came in %d bursts with silence between them", rounds)
		v.Remedy = "limit the senders of the bursts; ask who they are, an attack of low rate looks like this"
		return
	}
	if ratio, ports := m.imbalanceRatio(n, v.Culprits); ratio >= m.cfg.ImbalanceRatio && len(v.DeadlockCycle) == 0 {
		v.Detail = anomaly.ECMPImbalance
		v.addEvidence("of %d equal paths it carried %.1f times the mean", ports, ratio)
		v.Remedy = fmt.Sprintf("spread the flows at %s: other hash seeds, more entropy in source ports, or adaptive routing", nodeName(m.fabric, m.g.Nodes[n].Node))
		return
	}
	sources := map[model.Addr]bool{}
	for _, c := range v.Culprits {
		sources[c.Flow.Src] = true
	}
	switch {
	case len(v.Culprits) == 0:
		v.Detail = anomaly.UnknownDetail
		v.Remedy = fmt.Sprintf("look which flows go through %s: its switch knows none of that time", port)
	case len(v.Culprits) > 1 && m.areNewFlows(n, v.Culprits):
		v.Detail = anomaly.MicroBurst
		v.addEvidence("%d flows of %d hosts began at about one time", len(v.Culprits), len(sources))
		v.Remedy = "stagger the senders, or let fewer answer at once; a receiver-driven window or earlier marking at this port makes such bursts harmless"
	default:
		v.Detail = anomaly.UnknownDetail
		v.Remedy = "slow the heaviest of these flows down, or move them to other paths"
	}
}

// areNewFlows tells whether most culprits were not there in the oldest epoch told in
// backlogExceedsPauses, or have sent less than a long flow would have.
func (m *analysis) areNewFlows(n int, list []Culprit) bool {
	oldest, newest := ^uint32(0), uint32(0)
	for _, p := range m.g.FlowEpochsAt(n) {
		oldest, newest = min(oldest, p.Record.Epoch), max(newest, p.Record.Epoch)
	}
	if t, _ := m.g.SwitchReport(m.g.Nodes[n].Node); t.Epochs > 1 && oldest == newest && newest > 0 {
		return true // the queue saw nobody before
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

// index returns what a culprit did in a queue, by epoch.
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

// burstDuration is how long the link takes for what flows sent in the epochs told.
func (m *analysis) burstDuration(n int, list []Culprit) time.Duration {
	bytes := 0.0
	for _, c := range list {
		for _, p := range m.epochRecords(n, c) {
			bytes += float64(p.Bytes)
		}
	}
	return m.drainTime(n, bytes)
}

// countBursts counts bursts over the epochs told: runs of epochs in which the
// culprits sent, with at least one between them in which they did not.
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

// otherClassShare returns the share of a link that classes other than the queue's
// took in the epochs told, and their flows. Where the queue's own class took
// most of it, its own flows are the reason.
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

// imbalanceRatio returns how many times the mean of its equals a port carried, and
// how many equals there are: ports of the same switch by which the culprits
// might have gone as well. A burst that happens to take one path is no
// imbalanceRatio: the port must have been busy for a while.
func (m *analysis) imbalanceRatio(n int, list []Culprit) (ratio float64, ports int) {
	q := m.g.Nodes[n].Queue
	if m.g.Nodes[n].ToHost {
		return 0, 0
	}
	equals := map[model.PortID]bool{}
	for _, c := range list {
		next := m.routes.NextHops(q.Node, c.Flow.Dst)
		if slices.Contains(next, q.Port.Port) {
			for _, p := range next {
				equals[p] = true
			}
		}
	}
	if len(equals) < 2 {
		return 0, len(equals)
	}
	mine, all := 0.0, 0.0
	for i := range m.g.Nodes {
		o := &m.g.Nodes[i]
		if o.Node != q.Node || o.Priority != q.Priority || !equals[o.Port.Port] {
			continue
		}
		all += float64(o.Packets)
		if o.Queue == q {
			mine = float64(o.Packets)
		} else if o.PausedAtSnapshot() || m.isCongested(i) {
			return 0, len(equals) // the others are no better off
		}
	}
	const busy = 0.3 // index what it can carry in the time told
	if mine*packetSize < busy*m.linkBytes(n, m.g.To.Sub(m.g.From)) || all == 0 {
		return 0, len(equals)
	}
	return mine * float64(len(equals)) / all, len(equals)
}

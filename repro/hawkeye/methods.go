package hawkeye

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/diagnose/paper"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// The methods that the paper compares itself with. All are diagnosed by Weft's
// inference: they differ in which switches report and in what the reports hold.
var (
	fullPolling = method{name: "full polling", collect: func(r *run, c *detection) *provenance.Evidence {
		return r.evidence(c.fullPoll)
	}}
	victimOnly = method{name: "victim-only", collect: func(r *run, c *detection) *provenance.Evidence {
		return r.onPath(c, r.evidence(c.event))
	}}
	// SpiderMon reads the queues of the victim's path, and knows no pauses.
	spiderMon = method{name: "SpiderMon", collect: func(r *run, c *detection) *provenance.Evidence {
		return rewrite(r.onPath(c, r.evidence(c.event)), unpaused)
	}}
	// NetSight knows where every packet was, and no pauses.
	netSight = method{name: "NetSight", collect: func(r *run, c *detection) *provenance.Evidence {
		return rewrite(r.evidence(c.fullPoll), unpaused)
	}}
	portsOnly = method{name: "port-only", collect: func(r *run, c *detection) *provenance.Evidence {
		return rewrite(r.evidence(c.event), func(p *provenance.Report) {
			p.Flows, p.FlowBacklogs = nil, nil
			p.Flags |= epoch.NoFlows
		})
	}}
	// Without meters between ports, polls cannot follow pauses off the path.
	flowsOnly = method{name: "flow-only", collect: func(r *run, c *detection) *provenance.Evidence {
		return rewrite(r.onPath(c, r.evidence(c.event)), withoutPorts)
	}}
)

// The paper's own diagnosis of what these methods collect.
var (
	publishedMethod     = published(hawkeyeMethod)
	publishedFull       = published(fullPolling)
	publishedVictimOnly = published(victimOnly)
	publishedPorts      = published(portsOnly)
	publishedFlows      = published(flowsOnly)
)

// published is the paper's own method on the evidence of another.
func published(m method) method {
	return method{
		name: m.name + ", as published", collect: m.collect,
		infer: func(r *run, c *detection, e *provenance.Evidence) []diagnose.Verdict {
			return paper.Diagnose(e, c.key, r.net.Fabric())
		},
	}
}

// rewrite changes copies of the reports.
func rewrite(e *provenance.Evidence, change func(*provenance.Report)) *provenance.Evidence {
	out := &provenance.Evidence{Event: e.Event, Pending: e.Pending, PolledAt: e.PolledAt, Returning: e.Returning}
	for _, r := range e.Reports {
		c := *r
		c.Flows, c.Ports, c.PortEpochs = slices.Clone(r.Flows), slices.Clone(r.Ports), slices.Clone(r.PortEpochs)
		change(&c)
		out.Reports = append(out.Reports, &c)
	}
	return out
}

// withoutPorts removes the records of ports and of traffic between them.
func withoutPorts(p *provenance.Report) {
	p.Meters, p.PortPairBacklogs, p.Pauses, p.Intervals, p.BacklogHistories = nil, nil, nil, nil, nil
	for i := range p.PortEpochs {
		p.PortEpochs[i].Paused, p.PortEpochs[i].PausedDepth, p.PortEpochs[i].PauseFrames = 0, 0, 0
	}
	for i := range p.Ports {
		p.Ports[i].Paused, p.Ports[i].Remaining, p.Ports[i].PauseFrames = false, 0, 0
	}
}

// unpaused removes pauses: a packet that waited for one seems to have waited
// for what was ahead of it.
func unpaused(p *provenance.Report) {
	extendEpisodes(p)
	p.Meters, p.PortPairBacklogs, p.Pauses, p.Intervals, p.BacklogHistories = nil, nil, nil, nil, nil
	for i := range p.PortEpochs {
		e := &p.PortEpochs[i]
		e.Depth, e.Paused, e.PausedDepth, e.PauseFrames = e.Depth+e.PausedDepth, 0, 0, 0
	}
	for i := range p.Ports {
		p.Ports[i].Paused, p.Ports[i].Remaining, p.Ports[i].PauseFrames = false, 0, 0
	}
	for i := range p.Flows {
		f := &p.Flows[i]
		f.Depth, f.Paused, f.PausedDepth = f.Depth+f.PausedDepth, 0, 0
	}
}

// onPath keeps the reports of the switches on the victim's path.
func (r *run) onPath(c *detection, e *provenance.Evidence) *provenance.Evidence {
	out := &provenance.Evidence{Event: e.Event, Pending: e.Pending, PolledAt: e.PolledAt, Returning: e.Returning}
	path := r.path(c.key)
	for _, rep := range e.Reports {
		if slices.Contains(path, rep.Switch) {
			out.Reports = append(out.Reports, rep)
		}
	}
	return out
}

// path returns the switches that a flow's packets pass, on wrong routes, too.
func (r *run) path(key model.FlowKey) (list []model.NodeID) {
	f := r.net.Fabric()
	src, _ := f.ByAddr(key.Src)
	at := r.net.Host(src).EgressPort(key).Peer().Node
	for len(list) < 32 && f.Node(at).Role.IsSwitch() {
		list = append(list, at)
		out, ok := r.net.Switch(at).NextHop(key)
		if !ok {
			break
		}
		at = out.Peer().Node
	}
	return list
}

// extendEpisodes extends congestion episodes over the pauses of their queue: a
// method that knows no pauses takes the queue for congested by itself.
func extendEpisodes(p *provenance.Report) {
	p.Episodes = slices.Clone(p.Episodes)
	for _, q := range p.Pauses {
		until := q.LastEnd
		if q.LastStart > q.LastEnd {
			until = p.Snapshot
		}
		for i := range p.Episodes {
			if w := &p.Episodes[i]; w.Port == q.Port && w.Priority == q.Priority {
				w.Last = max(w.Last, until)
			}
		}
	}
}

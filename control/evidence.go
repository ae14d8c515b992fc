package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/probe"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// evidenceRequest is a request for evidence of one source about one incident.
type evidenceRequest struct {
	incident uint64
	source   anomaly.Source
}

// timer is a function to run at an instant of the collector's clock.
type timer struct {
	at model.Time
	do func()
}

// scheduleAfter runs f when d has passed.
func (c *Controller) scheduleAfter(d time.Duration, f func()) {
	c.timers = append(c.timers, timer{c.now.Add(d), f})
}

// runTimers runs the timers that are due.
func (c *Controller) runTimers(now model.Time) {
	for i := 0; i < len(c.timers); {
		if c.timers[i].at > now {
			i++
			continue
		}
		f := c.timers[i].do
		c.timers = slices.Delete(c.timers, i, i+1)
		c.protect("timers", f)
	}
}

// requestEvidence requests the evidence that an incident lacks, once per source.
func (c *Controller) requestEvidence(in *incident.Incident) {
	if c.cfg.Passive || in.Closed || in.Severity() == anomaly.Notice {
		return
	}
	for _, s := range in.MissingSources() {
		q := evidenceRequest{in.ID, s}
		if _, asked := c.requested[q]; asked || len(in.Flows) == 0 {
			continue
		}
		var done *api.Action
		switch s {
		case anomaly.Traces:
			done = c.markFlows(in)
		case anomaly.Probes:
			done = c.probeDrop(in)
		case anomaly.Epochs:
			done = c.pollFlow(in)
		case anomaly.Labels:
			done = c.raiseLabelRate(in)
		}
		if done != nil {
			c.requested[q] = c.now
			done.Time = c.wallTime(c.now)
			c.actions[in.ID] = append(c.actions[in.ID], *done)
			c.correlator.MarkChanged(in.ID)
		}
	}
}

// forgetClosed forgets requests and actions of an incident some time after it was
// closed: late evidence may have it published once more.
func (c *Controller) forgetClosed(id uint64) {
	if slices.Contains(c.closed, id) {
		return
	}
	if c.closed = append(c.closed, id); len(c.closed) <= incident.MaxRemembered {
		return
	}
	for s := range anomaly.NumSources {
		delete(c.requested, evidenceRequest{c.closed[0], s})
	}
	delete(c.actions, c.closed[0])
	c.closed = slices.Delete(c.closed, 0, 1)
}

// describeAction describes an action for people.
func describeAction(a *api.Action) (text string) {
	switch a.Kind {
	case "mark":
		text = "marked " + a.Target + " at their hosts, so that switches mirror them"
	case "probe":
		text = "sent probes like " + a.Target
	case "poll":
		text = "polled the switches about " + a.Target
	case "label-rate":
		text = "raised the label rate of " + a.Target
	}
	return text
}

// describeOutcome describes the result of an action for people.
func describeOutcome(a *api.Action) string {
	switch a.Kind {
	case "mark":
		return "marks: " + a.Outcome
	case "probe":
		return "probes like " + a.Target + ": " + a.Outcome
	case "poll":
		return "poll about " + a.Target + ": " + a.Outcome
	}
	return "labels: " + a.Outcome
}

// setOutcome notes the result of the newest action of a kind.
func (c *Controller) setOutcome(id uint64, kind, text string) {
	list := c.actions[id]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Kind == kind && list[i].Outcome == "" {
			at := c.wallTime(c.now)
			list[i].Outcome, list[i].Answered = text, &at
			c.correlator.MarkChanged(id)
			return
		}
	}
}

// Times of evidence gathering, of the fabric's clock.
const (
	markDuration  = 20 * time.Millisecond // debug marks of an incident
	labelDuration = 20 * time.Millisecond // more labels
)

// markedFlows is how many flows of an incident are marked.
const markedFlows = 4

// markFlows has hosts mark some of the affected flows, so that every switch mirrors
// them.
func (c *Controller) markFlows(in *incident.Incident) *api.Action {
	var marked []model.FlowKey
	for _, k := range in.Flows[:min(markedFlows, len(in.Flows))] {
		id, ok := c.fabric.ByAddr(k.Src)
		if !ok {
			continue
		}
		hosts, text := []string{c.nodeName(id)}, filterOf(k)
		if c.traces.EnableDebug(hosts, text) != nil {
			continue // marked already, or no host can mark it
		}
		marked = append(marked, k)
		c.scheduleAfter(markDuration, func() { _ = c.traces.DisableDebug(hosts, text) })
	}
	n := len(marked)
	if n == 0 {
		return nil
	}
	id, start := in.ID, c.now
	c.scheduleAfter(markDuration+2*c.cfg.Traces.Trace.CloseAfter, func() {
		traced := 0
		for _, k := range marked {
			if at, ok := c.tracedFlows[k]; ok && at >= start {
				traced++
			}
		}
		c.setOutcome(id, "mark", fmt.Sprintf("packets of %d of %s were traced", traced, plural.Count(n, "flow")))
	})
	return &api.Action{Kind: "mark", Target: plural.Count(n, "affected flow")}
}

// probesPerPattern is how many probes are sent of each pattern of a flow.
const probesPerPattern = 8

// probeDrop sends probes like an affected flow.
func (c *Controller) probeDrop(in *incident.Incident) *api.Action {
	flow := c.probeVictim(in)
	if flow.IsZero() {
		return nil
	}
	q, err := c.prober.Drops(c.now, flow, nil, probesPerPattern)
	if err != nil {
		return nil // its path cannot be followed
	}
	takes, err := c.prober.Start(q)
	if err != nil {
		return nil
	}
	id := in.ID
	c.awaitTraces(q, takes, func(int) {
		a := q.Answer()
		c.prober.Close(q)
		c.setOutcome(id, "probe", a.Kind.String())
		c.addProbeEvidence(flow, &a)
	})
	return &api.Action{Kind: "probe", Target: flow.String()}
}

// probeVictim is the flow of an incident that probes shall imitate: one that most
// surely is affected at its place.
func (c *Controller) probeVictim(in *incident.Incident) model.FlowKey {
	for i := range in.Timeline {
		if e := &in.Timeline[i]; e.Cause == in.Cause {
			for _, k := range e.Flows {
				if _, ok := c.fabric.ByAddr(k.Src); ok {
					return k
				}
			}
		}
	}
	return model.FlowKey{}
}

// addProbeEvidence adds the result of probes as evidence.
func (c *Controller) addProbeEvidence(flow model.FlowKey, a *probe.DropAnswer) {
	e := incident.Evidence{
		At: c.now, From: c.now, Source: anomaly.Probes, Confirmed: true, Location: model.Port{Node: a.At.Switch},
		NextHop: a.At.Next, HasNextHop: a.At.Known, Flows: []model.FlowKey{flow},
		Text: fmt.Sprintf("%d of %d probes like %v lost: %s, %s", a.Lost, a.Reached, flow, a.Kind, a.Scope),
	}
	switch a.Kind {
	case probe.Persistent, probe.Blackhole:
		e.Cause = anomaly.Blackhole
	case probe.Random, probe.Selective:
		e.Cause = anomaly.Loss
	case probe.Looping:
		e.Cause, e.Extent = anomaly.Loop, a.Loop
		e.Text = fmt.Sprintf("probes like %v are looping", flow)
	default:
		return // the fault is over, or probes could not reach it
	}
	if e.Cause != anomaly.Loop && c.meter.pausedIn(e.Location, c.slotOf(c.now)-2, c.slotOf(c.now)) >= c.cfg.StallShare {
		return // probes wait in paused queues
	}
	c.addEvidence(e)
}

// pollFlow has the source host of an affected flow poll the fabric about it.
func (c *Controller) pollFlow(in *incident.Incident) *api.Action {
	for _, k := range in.Flows {
		if c.devices.PollFlow(k) {
			id := in.ID
			c.scheduleAfter(c.cfg.VerdictTimeout, func() { c.setOutcome(id, "poll", "no verdict") })
			return &api.Action{Kind: "poll", Target: k.String()}
		}
	}
	return nil
}

// labelShift is by how much ports of an incident raise their label rate, as a
// power of two.
const labelShift = 3

// raiseLabelRate raises the label rate at the location of an incident for
// labelDuration, and adds the queues that they show as evidence.
func (c *Controller) raiseLabelRate(in *incident.Incident) *api.Action {
	id, nodes := in.ID, slices.Clone(in.Nodes)
	n := c.setLabelShift(nodes, labelShift)
	if n == 0 {
		return nil
	}
	from := c.now
	c.scheduleAfter(labelDuration, func() {
		c.setLabelShift(nodes, 0)
		c.addQueueEvidence(id, nodes, from)
	})
	return &api.Action{Kind: "label-rate", Target: plural.Count(n, "port")}
}

// setLabelShift sets the label rate of the ports of switches, and returns their
// number.
func (c *Controller) setLabelShift(nodes []model.NodeID, shift uint8) (n int) {
	for _, id := range nodes {
		if !c.fabric.HasNode(id) || !c.fabric.Node(id).Role.IsSwitch() {
			continue
		}
		for i := range c.fabric.Node(id).Ports {
			if c.devices.SetShift(model.Port{Node: id, Port: c.fabric.Node(id).Ports[i].ID}, shift) == nil {
				n++
			}
		}
	}
	return n
}

// addQueueEvidence adds deep queues at the nodes of an incident as evidence.
func (c *Controller) addQueueEvidence(id uint64, nodes []model.NodeID, from model.Time) {
	for _, q := range c.ports.States().CongestedPorts(from, c.now, c.cfg.DeepQueue) {
		if !slices.Contains(nodes, q.Port.Node) {
			continue
		}
		c.setOutcome(id, "label-rate", fmt.Sprintf("queue of %s at %s", model.FormatBytes(q.Depth), c.portName(q.Port)))
		c.correlator.AddSupporting(incident.Evidence{
			At: c.now, From: from, Source: anomaly.Labels, Cause: anomaly.Contention, Confirmed: true, Location: q.Port,
			Text: fmt.Sprintf("queue of %s at %s, latency %s", model.FormatBytes(q.Depth), c.portName(q.Port), model.FormatDuration(q.Latency)),
		})
		return
	}
	c.setOutcome(id, "label-rate", "no deep queue")
}

// filterOf is the filter that matches one flow's packets.
func filterOf(k model.FlowKey) string {
	ip := "ip"
	if k.V6 {
		ip = "ipv6"
	}
	text := fmt.Sprintf("%s.src == %s && %s.dst == %s", ip, k.Src, ip, k.Dst)
	if p := k.Proto.String(); k.Proto == model.TCP || k.Proto == model.UDP {
		text += fmt.Sprintf(" && %s.srcport == %d && %s.dstport == %d", p, k.SrcPort, p, k.DstPort)
	}
	return text
}

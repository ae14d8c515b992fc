package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/probe"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// question is what was asked for: evidence of one source about one incident.
type question struct {
	incident uint64
	source   incident.Source
}

// later is something to be done at an instant of the collector's clock.
type later struct {
	at model.Time
	do func()
}

// after has f done when some time has passed.
func (c *Controller) after(d time.Duration, f func()) {
	c.later = append(c.later, later{c.now.Add(d), f})
}

// due does what is due.
func (c *Controller) due(now model.Time) {
	for i := 0; i < len(c.later); {
		if c.later[i].at > now {
			i++
			continue
		}
		f := c.later[i].do
		c.later = slices.Delete(c.later, i, i+1)
		f()
	}
}

// seek asks for the evidence that an incident lacks, each source once.
func (c *Controller) seek(in *incident.Incident) {
	if in.Closed || in.Severity() == incident.Notice {
		return
	}
	for _, s := range in.Missing() {
		q := question{in.ID, s}
		if _, asked := c.asked[q]; asked || len(in.Flows) == 0 {
			continue
		}
		var done *api.Action
		switch s {
		case incident.Traces:
			done = c.markFlows(in)
		case incident.Probes:
			done = c.probeDrop(in)
		case incident.Epochs:
			done = c.pollFlow(in)
		case incident.Labels:
			done = c.labelOften(in)
		}
		if done != nil {
			c.asked[q] = c.now
			done.Time = c.time(c.now)
			c.actions[in.ID] = append(c.actions[in.ID], *done)
			c.joiner.Touch(in.ID)
		}
	}
}

// forget ends the account of an incident some time after it was closed: late
// evidence may have it told once more.
func (c *Controller) forget(id uint64) {
	if slices.Contains(c.closed, id) {
		return
	}
	if c.closed = append(c.closed, id); len(c.closed) <= incident.Remembered {
		return
	}
	for s := range incident.NumSources {
		delete(c.asked, question{c.closed[0], s})
	}
	delete(c.actions, c.closed[0])
	c.closed = slices.Delete(c.closed, 0, 1)
}

// did says what an action was, for people.
func did(a *api.Action) (text string) {
	switch a.Kind {
	case "mark":
		text = "has hosts mark " + a.Target + ", so that switches mirror them"
	case "probe":
		text = "sends probes like " + a.Target
	case "poll":
		text = "polls the switches about " + a.Target
	case "label-rate":
		text = "has " + a.Target + " label more often"
	}
	if a.Outcome != "" {
		text += ": " + a.Outcome
	}
	return text
}

// outcome notes what came of the newest action of a kind.
func (c *Controller) outcome(id uint64, kind, text string) {
	list := c.actions[id]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Kind == kind && list[i].Outcome == "" {
			list[i].Outcome = text
			c.joiner.Touch(id)
			return
		}
	}
}

// Times of evidence gathering, of the fabric's clock.
const (
	markFor  = 20 * time.Millisecond // debug marks of an incident
	watchFor = 20 * time.Millisecond // more labels
)

// markedFlows is how many flows of an incident are marked.
const markedFlows = 4

// markFlows has hosts mark some of the flows that suffer, so that every switch
// mirrors them.
func (c *Controller) markFlows(in *incident.Incident) *api.Action {
	n := 0
	for _, k := range in.Flows[:min(markedFlows, len(in.Flows))] {
		id, ok := c.fabric.ByAddr(k.Src)
		if !ok {
			continue
		}
		hosts, text := []string{c.name(id)}, filterOf(k)
		if c.traces.EnableDbg(hosts, text) != nil {
			continue // marked already, or nobody can
		}
		n++
		c.after(markFor, func() { _ = c.traces.DisableDbg(hosts, text) })
	}
	if n == 0 {
		return nil
	}
	return &api.Action{Kind: "mark", Target: plural.Count(n, "flow") + " that suffer"}
}

// probesPer is how many probes are sent of each pattern of a flow.
const probesPer = 8

// probeDrop asks by probes what becomes of a flow that suffers.
func (c *Controller) probeDrop(in *incident.Incident) *api.Action {
	flow := c.victim(in)
	if flow.IsZero() {
		return nil
	}
	q, err := c.desk.Drops(c.now, flow, nil, probesPer)
	if err != nil {
		return nil // its way cannot be followed
	}
	takes, err := c.desk.Ask(q)
	if err != nil {
		return nil
	}
	id := in.ID
	c.after(takes+2*c.cfg.Traces.Trace.Close, func() {
		a := q.Answer()
		c.desk.Close(q)
		c.outcome(id, "probe", a.Kind.String())
		c.probed(flow, &a)
	})
	return &api.Action{Kind: "probe", Target: flow.String()}
}

// victim is the flow of an incident that probes shall imitate: one that most
// surely suffers at its place.
func (c *Controller) victim(in *incident.Incident) model.FlowKey {
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

// probed is evidence of what probes met.
func (c *Controller) probed(flow model.FlowKey, a *probe.DropAnswer) {
	e := incident.Evidence{
		At: c.now, From: c.now, Source: incident.Probes, Sure: true, Place: model.Port{Node: a.At.Switch},
		Next: a.At.Next, HasNext: a.At.Known, Flows: []model.FlowKey{flow},
		Text: fmt.Sprintf("%d of %d probes like %v are lost: %s, %s", a.Lost, a.Reached, flow, a.Kind, a.Scope),
	}
	switch a.Kind {
	case probe.Persistent, probe.Blackhole:
		e.Cause = incident.Blackhole
	case probe.Random, probe.Selective:
		e.Cause = incident.Loss
	case probe.Looping:
		e.Cause, e.Extent = incident.Loop, a.Loop
		e.Text = fmt.Sprintf("probes like %v go round", flow)
	default:
		return // what was wrong is over, or could not be reached
	}
	if e.Cause != incident.Loop && c.meter.pausedIn(e.Place, c.slotOf(c.now)-2, c.slotOf(c.now)) >= c.cfg.Stall {
		return // probes wait in the queues that they were to ask about
	}
	c.file(e)
}

// pollFlow has the source of a flow that suffers poll the fabric about it.
func (c *Controller) pollFlow(in *incident.Incident) *api.Action {
	for _, k := range in.Flows {
		if c.devices.Ask(k) {
			return &api.Action{Kind: "poll", Target: k.String()}
		}
	}
	return nil
}

// labelShift is how much more often ports of an incident label, as a power of
// two.
const labelShift = 3

// labelOften raises the rate of labels at the place of an incident, for a time,
// and takes what they say for evidence.
func (c *Controller) labelOften(in *incident.Incident) *api.Action {
	id, nodes := in.ID, slices.Clone(in.Nodes)
	n := c.setShift(nodes, labelShift)
	if n == 0 {
		return nil
	}
	from := c.now
	c.after(watchFor, func() {
		c.setShift(nodes, 0)
		c.queued(id, nodes, from)
	})
	return &api.Action{Kind: "label-rate", Target: plural.Count(n, "port")}
}

// setShift sets how often the ports of switches label, and returns how many do.
func (c *Controller) setShift(nodes []model.NodeID, shift uint8) (n int) {
	for _, id := range nodes {
		if !c.fabric.Node(id).Role.IsSwitch() {
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

// queued is evidence of deep queues at the nodes of an incident.
func (c *Controller) queued(id uint64, nodes []model.NodeID, from model.Time) {
	for _, q := range c.ports.Board().Congested(from, c.now, c.cfg.Deep) {
		if !slices.Contains(nodes, q.Port.Node) {
			continue
		}
		c.outcome(id, "label-rate", fmt.Sprintf("a queue of %v at %s", q.Depth, c.port(q.Port)))
		c.joiner.Support(incident.Evidence{
			At: c.now, From: from, Source: incident.Labels, Cause: incident.Contention, Sure: true, Place: q.Port,
			Text: fmt.Sprintf("%v wait at %s, packets take %v", q.Depth, c.port(q.Port), q.Latency),
		})
		return
	}
	c.outcome(id, "label-rate", "no deep queue")
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

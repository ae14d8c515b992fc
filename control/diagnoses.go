package control

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
	"unsafe"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/analyze/provenance/drawing"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/rootcause"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/wire/poll"
)

// RequestDiagnosis takes a host's diagnosis request for a slow flow, whose polls
// are already in flight.
func (c *Controller) RequestDiagnosis(now model.Time, who rootcause.DiagnosisRequest) {
	c.now = max(c.now, now)
	_ = c.diagnoser.AddRequest(now, who) // it counts requests that it discards
}

// ingestPoll takes a host's diagnosis request from a list: the poll that the host
// has sent into the fabric.
func (c *Controller) ingestPoll(now model.Time, data []byte) error {
	var p poll.Request
	if _, err := p.Parse(data); err != nil {
		return err
	}
	at := p.Origin
	if at == 0 {
		at = now // polls of the prototype have no time
	}
	d := diagnose.Detection{Event: p.Event, Victim: p.Flow, HostPaused: p.HostPaused, InFlight: p.InFlight}
	if p.OfFlow {
		d.Window = p.Measured
	} else {
		d.Latency = p.Measured
	}
	return c.diagnoser.AddRequest(now, rootcause.DiagnosisRequest{At: at, Detection: d})
}

// graphExcerpt is what a verdict's record shows of its graph. It is small compared to
// the graph.
type graphExcerpt struct {
	drawing *drawing.Drawing
	meters  []provenance.FlowMeter
	omitted int // flows beyond the meters
}

func (x *graphExcerpt) memory() model.Bytes {
	n := x.drawing.Memory() + model.Bytes(len(x.meters))*model.Bytes(unsafe.Sizeof(provenance.FlowMeter{}))
	for i := range x.meters {
		m := &x.meters[i]
		n += model.Bytes(cap(m.Outs))*model.Bytes(unsafe.Sizeof(model.Port{})) +
			model.Bytes(cap(m.Intervals))*model.Bytes(unsafe.Sizeof(provenance.MeteredInterval{}))
	}
	return n
}

// excerptCache holds excerpts of the graphs of diagnosis requests that wait for
// verdicts.
type excerptCache struct {
	list   map[poll.Event]*graphExcerpt
	order  []poll.Event // oldest first
	memory model.Bytes
}

// maxExcerpts bounds them: simultaneous requests, and verdicts that wait for a
// recheck.
const maxExcerpts = 256

// maxMeters bounds the flows of an excerpt. The largest senders fill a queue.
const maxMeters = 128

// verdictMemory bounds the excerpts, and the bodies of the last verdicts of each kind.
const verdictMemory = 16 * model.MiB

func (d *excerptCache) add(ev poll.Event, x *graphExcerpt) {
	if d.list == nil {
		d.list = map[poll.Event]*graphExcerpt{}
	}
	if old := d.list[ev]; old != nil {
		d.memory -= old.memory()
	} else {
		d.order = append(d.order, ev)
	}
	d.list[ev] = x
	d.memory += x.memory()
	for len(d.order) > maxExcerpts || d.memory > verdictMemory && len(d.order) > 1 {
		d.memory -= d.list[d.order[0]].memory()
		delete(d.list, d.order[0])
		d.order = slices.Delete(d.order, 0, 1)
	}
}

// recordVerdicts adds verdicts as records and as evidence.
func (c *Controller) recordVerdicts(list []diagnose.Verdict) {
	if len(list) > 0 {
		c.readNewestCounters(c.now) // which say how long ports were paused
	}
	for i := range list {
		v := &list[i]
		c.setPollOutcome(v)
		if v.Anomaly == anomaly.None {
			c.notifyVerdict(v, nil)
			continue
		}
		id := c.lastVerdict[verdictKind{v.Anomaly, v.Initial}].id
		if c.shouldRecord(v) {
			c.verdicts++
			id = fmt.Sprintf("d%d", c.verdicts)
			r := c.diagnosisRecord(id, v)
			c.batch.Diagnoses = append(c.batch.Diagnoses, r)
			c.lastVerdictBytes += len(r.Body) - len(c.lastVerdict[verdictKind{v.Anomaly, v.Initial}].record.Body)
			c.lastVerdict[verdictKind{v.Anomaly, v.Initial}] = recordedVerdict{v.At, id, r}
		}
		r := c.lastVerdict[verdictKind{v.Anomaly, v.Initial}].record
		c.notifyVerdict(v, &r)
		c.addEvidence(c.verdictEvidence(id, v))
	}
}

// setPollOutcome notes a verdict as the result of the polls about its flow.
func (c *Controller) setPollOutcome(v *diagnose.Verdict) {
	target := v.Victim.String()
	for id, list := range c.actions {
		for i := range list {
			if a := &list[i]; a.Kind == "poll" && a.Target == target {
				c.setOutcome(id, "poll", v.Anomaly.String())
			}
		}
	}
}

// verdictKind is what makes two verdicts the same to an operator.
type verdictKind struct {
	anomaly anomaly.Type
	initial model.Port
}

// recordedVerdict is the last recorded verdict of a kind.
type recordedVerdict struct {
	at     model.Time
	id     string
	record record.Diagnosis
}

// repeatAfter is after how long the same verdict is recorded again: every victim
// of an anomaly gets one, and all say the same.
const repeatAfter = 10 * time.Millisecond

// shouldRecord reports whether a verdict gets a separate record. Verdicts that would
// be recorded again are forgotten.
func (c *Controller) shouldRecord(v *diagnose.Verdict) bool {
	maps.DeleteFunc(c.lastVerdict, func(_ verdictKind, old recordedVerdict) bool {
		expired := v.At.Sub(old.at) >= repeatAfter
		if expired {
			c.lastVerdictBytes -= len(old.record.Body)
		}
		return expired
	})
	_, known := c.lastVerdict[verdictKind{v.Anomaly, v.Initial}]
	if len(c.lastVerdict) > maxExcerpts || model.Bytes(c.lastVerdictBytes) > verdictMemory {
		clear(c.lastVerdict)
		c.lastVerdictBytes = 0
		known = false
	}
	return !known || v.Persistent
}

// notifyVerdict passes a verdict to the backend.
func (c *Controller) notifyVerdict(v *diagnose.Verdict, r *record.Diagnosis) {
	if c.onVerdict != nil {
		c.onVerdict(v, r)
	}
}

// certainConfidence is the confidence from which on a verdict opens an incident.
const certainConfidence = 0.5

// verdictEvidence is what a verdict means for an incident.
func (c *Controller) verdictEvidence(id string, v *diagnose.Verdict) incident.Evidence {
	named := v.View(c.fabric)
	// Ports that pause each other in one snapshot may be about to go on.
	once := len(v.DeadlockCycle) > 0 && !v.Persistent
	text := named.Sentence()
	if named.Account != "" {
		text += " " + named.Account
	}
	e := incident.Evidence{
		At: c.now, From: v.At, Source: anomaly.Epochs, Confirmed: v.Confidence >= certainConfidence && !once,
		Location: v.Initial, Flows: append([]model.FlowKey{v.Victim}, v.Victims...), Path: v.Path, DeadlockCycle: v.DeadlockCycle,
		Text: text, Remedy: v.Remedy, Ref: id,
	}
	for _, k := range v.Culprits {
		e.Culprits = append(e.Culprits, k.Flow)
	}
	e.Scale = uint64(2 * len(v.Culprits))
	e.Receiver, e.HasReceiver = c.commonReceiver(e.Culprits)
	if p := c.fabric.Port(v.Initial); p != nil && e.HasReceiver {
		if e.AtReceiver = p.Peer.Node == e.Receiver; e.AtReceiver {
			e.Scale++ // where an incast ends says more than where it passes
		}
	}
	for _, p := range append(append([]model.Port{v.Initial}, v.Path...), v.DeadlockCycle...) {
		if q := c.fabric.Port(p); q != nil {
			e.Extent = append(e.Extent, p.Node, q.Peer.Node)
		}
	}
	e.Cause = v.Anomaly.Cause(v.Detail)
	e.Minor = v.Anomaly.MinorWhileBrief() && c.wasBrief(v)
	if q := c.fabric.Port(v.Initial); q != nil && v.Anomaly.AtHost() {
		e.Location = model.Port{Node: q.Peer.Node} // the host, not the port that it pauses
	}
	return e
}

// commonReceiver returns the host that all flows go to, if there is one.
func (c *Controller) commonReceiver(flows []model.FlowKey) (model.NodeID, bool) {
	for i := range flows {
		if flows[i].Dst != flows[0].Dst {
			return 0, false
		}
	}
	if len(flows) == 0 {
		return 0, false
	}
	return c.fabric.ByAddr(flows[0].Dst)
}

// wasBrief reports whether the pauses that spread from a queue were too short to
// affect flows, by the counters of the ports they spread over: queues of a busy
// fabric are congested now and then. Pauses without counters are not brief.
func (c *Controller) wasBrief(v *diagnose.Verdict) bool {
	at, counted := c.slotOf(v.At), false
	for _, p := range v.Path {
		if p == v.Initial || !c.meter.hasCounters(p) {
			continue
		}
		counted = true
		if c.meter.pausedIn(p, at-1, at+1) >= c.cfg.StallShare {
			return false
		}
	}
	return counted
}

// diagnosisRecord is a verdict as it is kept and shown.
func (c *Controller) diagnosisRecord(id string, v *diagnose.Verdict) record.Diagnosis {
	n := v.View(c.fabric)
	r := record.Diagnosis{
		Time: c.wallTime(v.At), ID: id, Anomaly: v.Anomaly.String(), RootCause: v.Cause.String(), Victim: v.Victim, Confidence: v.Confidence,
	}
	if n.Initial != nil {
		r.Initial = record.Port{Node: n.Initial.Node, Port: n.Initial.Port, Peer: n.Initial.Peer}
	}
	b := api.DiagnosisBody{
		CauseDetail: v.Detail.String(), Culprits: []api.Participant{}, Spreaders: c.flowRefs(v.Spreaders), Victims: c.flowRefs(v.Victims),
		PFCPath: c.portRefs([]api.PortRef{}, v.Path), DeadlockCycle: c.portRefs([]api.PortRef{}, v.DeadlockCycle), Persistent: v.Persistent,
		Evidence: n.Evidence, Remedy: v.Remedy, Switches: v.Switches, Telemetry: int64(v.Telemetry),
		PollingNs: int64(v.Times.Polling), CollectionNs: int64(v.Times.Collection), AnalysisNs: int64(v.Times.Analysis),
		Account: c.account(v),
		Graph:   api.Graph{Ports: []api.GraphPort{}, Flows: []api.GraphFlow{}, Edges: []api.GraphEdge{}},
	}
	if n.Fault != nil {
		b.RoutingFault = &api.RoutingFault{Node: n.Fault.Node, Dst: n.Fault.Dst, NextHop: n.Fault.NextHop}
	}
	for _, k := range v.Culprits {
		f := c.flowRef(k.Flow)
		b.Culprits = append(b.Culprits, api.Participant{Flow: &f, Weight: k.Weight})
	}
	if x := c.excerpts.list[v.Event]; x != nil {
		c.fillGraph(&b.Graph, x.drawing, v)
		if b.Account != nil {
			b.Account.Timeline.Senders, b.Account.Timeline.OmittedSenders = c.senders(x.meters, v.Timeline.From), x.omitted
		}
	}
	var err error
	if r.Body, err = json.Marshal(b); err != nil {
		panic(fmt.Sprintf("control: diagnosis %s cannot be encoded: %v", id, err)) // values of ours
	}
	return r
}

func (c *Controller) flowRefs(keys []model.FlowKey) []api.FlowRef {
	list := []api.FlowRef{}
	for _, k := range keys {
		list = append(list, c.flowRef(k))
	}
	return list
}

// isCulprit reports whether a flow is among the culprits.
func isCulprit(v *diagnose.Verdict, k model.FlowKey) bool {
	return slices.ContainsFunc(v.Culprits, func(c diagnose.Culprit) bool { return c.Flow == k })
}

// fillGraph puts what a verdict is about into the API's graph.
func (c *Controller) fillGraph(out *api.Graph, d *drawing.Drawing, v *diagnose.Verdict) {
	for i := range d.Ports {
		p := &d.Ports[i]
		id, _ := c.fabric.ByName(p.Node)
		at := model.Port{Node: id, Port: p.Port}
		out.Ports = append(out.Ports, api.GraphPort{
			ID: p.ID, Node: p.Node, Port: p.Port, Priority: p.Priority, Peer: p.Peer, ToHost: p.ToHost,
			Packets: p.Packets, PausedPackets: p.Paused, DepthPackets: p.Depth, PauseFrames: p.PauseFrames, Paused: p.PausedNow,
			InPath: slices.Contains(v.Path, at), InCycle: slices.Contains(v.DeadlockCycle, at), Initial: v.Initial == at, Level: p.Level,
		})
	}
	for i := range d.Flows {
		f := &d.Flows[i]
		role := "other"
		switch {
		case f.Victim:
			role = "victim"
		case isCulprit(v, f.Key):
			role = "culprit"
		}
		out.Flows = append(out.Flows, api.GraphFlow{ID: f.ID, FlowRef: c.flowRef(f.Key), Role: role, Level: f.Level})
	}
	for i := range d.Edges {
		e := &d.Edges[i]
		out.Edges = append(out.Edges, api.GraphEdge{From: e.From, To: e.To, Kind: string(e.Kind), Weight: e.Weight})
	}
}

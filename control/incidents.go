package control

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

// incidentID is an incident's name.
func incidentID(id uint64) string { return fmt.Sprintf("i%d", id) }

// incidentRecord is an incident as it is kept and shown.
func (c *Controller) incidentRecord(in *incident.Incident) record.Incident {
	r := record.Incident{
		ID: incidentID(in.ID), Begin: c.wallTime(in.Begin), Updated: c.wallTime(in.Last),
		Cause: in.Cause.String(), Severity: in.Severity().String(), Location: c.locationName(in.Location), Summary: in.Text,
	}
	if in.Closed {
		r.End = c.wallTime(in.Last)
	}
	var err error
	stored := api.StoredIncident{IncidentBody: c.incidentBody(in)}
	if in.MergedInto != 0 {
		stored.MergedInto = incidentID(in.MergedInto)
	}
	if r.Body, err = json.Marshal(stored); err != nil {
		panic(fmt.Sprintf("control: incident %d cannot be encoded: %v", in.ID, err)) // values of ours
	}
	return r
}

// incidentBody is all that is known of an incident, in the API's words.
func (c *Controller) incidentBody(in *incident.Incident) api.IncidentBody {
	b := api.IncidentBody{
		Sentence: c.sentence(in), Confidence: in.Confidence(), Remedy: in.Remedy,
		Timeline: []api.TimelineEntry{}, Evidence: []api.SourceEvidence{}, Missing: []api.MissingEvidence{},
		Culprits: []api.Participant{}, Victims: []api.Participant{}, Jobs: c.affectedJobs(in.Flows), PFCPath: []api.PortRef{}, Loop: []api.PortRef{},
		Links: []api.PortRef{}, Nodes: []string{}, Actions: []api.Action{}, Diagnoses: []string{}, Traces: []string{}, Probes: []string{}, Parts: []string{}, Related: []string{},
	}
	b.JobRanks = c.affectedRanks(in.Flows)
	for _, id := range in.Parts {
		b.Parts = append(b.Parts, incidentID(id))
	}
	for _, id := range in.Related {
		b.Related = append(b.Related, incidentID(id))
	}
	if in.Location.Port != 0 {
		p := c.portRef(in.Location)
		b.Origin = &p
	}
	for _, n := range in.Nodes {
		b.Nodes = append(b.Nodes, c.nodeName(n))
	}
	for _, k := range in.Culprits {
		f := c.flowRef(k)
		b.Culprits = append(b.Culprits, api.Participant{Flow: &f})
	}
	for _, k := range in.Flows {
		f := c.flowRef(k)
		b.Victims = append(b.Victims, api.Participant{Flow: &f})
	}
	c.fillTimeline(&b, in)
	for _, s := range in.MissingSources() {
		_, asked := c.requested[evidenceRequest{in.ID, s}]
		b.Missing = append(b.Missing, api.MissingEvidence{Source: s.String(), What: missingDetail[s], Why: "no report received", Requested: asked})
	}
	b.Actions = append(b.Actions, c.actions[in.ID]...)
	return b
}

// missingDetail is what a source without evidence would add.
var missingDetail = map[anomaly.Source]string{
	anomaly.Flowsets: "packet counters of the flows along their paths",
	anomaly.Traces:   "packets of the flows, mirrored at every switch",
	anomaly.Labels:   "queue depths at the location",
	anomaly.Epochs:   "PFC pause records of the switches",
	anomaly.Probes:   "active probes that show whether the loss persists",
	anomaly.Counters: "port counters",
	anomaly.Routes:   "routes of the switches, by BMP",
}

// fillTimeline fills in the timeline, the evidence of each source, and the links.
func (c *Controller) fillTimeline(b *api.IncidentBody, in *incident.Incident) {
	said := map[anomaly.Source]*api.SourceEvidence{}
	quoted := map[anomaly.Source]*incident.Evidence{}
	own := map[anomaly.Source]int{} // references of the cause at its place, which come first
	links := map[model.Port]bool{}
	refs := map[anomaly.Source]*[]string{anomaly.Epochs: &b.Diagnoses, anomaly.Traces: &b.Traces, anomaly.Probes: &b.Probes}
	for i := range in.Timeline {
		e := &in.Timeline[i]
		at := c.wallTime(e.At)
		entry := api.TimelineEntry{Time: at, Kind: "evidence", Source: e.Source.String(), Text: e.Text}
		if !e.Confirmed {
			entry.Text = "perhaps " + e.Text
		}
		if i == 0 {
			entry.Kind = "begin"
		}
		if e.Location.Port != 0 {
			p := c.portRef(e.Location)
			entry.Location = &p
			if !links[e.Location] {
				links[e.Location] = true
				b.Links = append(b.Links, p)
			}
		}
		b.Timeline = append(b.Timeline, entry)
		s := said[e.Source]
		if s == nil {
			s = &api.SourceEvidence{Source: e.Source.String(), Says: "supports", Text: e.Text, Count: in.Sources[e.Source], First: at}
			s.Doubt = in.Doubts[e.Source]
			said[e.Source], quoted[e.Source] = s, e
		}
		s.Last = at
		if quotes(in, e, quoted[e.Source]) {
			s.Text, quoted[e.Source] = e.Text, e
		}
		if list := refs[e.Source]; e.Ref != "" && list != nil {
			if e.Cause == in.Cause && e.Location == in.Location {
				*list = slices.Insert(*list, own[e.Source], e.Ref)
				own[e.Source]++
			} else {
				*list = append(*list, e.Ref)
			}
		}
		if e.Cause == in.Cause {
			b.PFCPath, b.Loop = c.portRefs(b.PFCPath, e.Path), c.portRefs(b.Loop, e.DeadlockCycle)
		}
	}
	for i := range c.actions[in.ID] {
		a := &c.actions[in.ID][i]
		b.Timeline = append(b.Timeline, api.TimelineEntry{Time: a.Time, Kind: "action", Source: "controller", Text: describeAction(a)})
		if a.Outcome != "" && a.Answered != nil {
			b.Timeline = append(b.Timeline, api.TimelineEntry{Time: *a.Answered, Kind: "action", Source: "controller", Text: describeOutcome(a)})
		}
	}
	slices.SortStableFunc(b.Timeline, func(x, y api.TimelineEntry) int { return x.Time.Compare(y.Time) })
	for s := range anomaly.NumSources {
		if e := said[s]; e != nil {
			b.Evidence = append(b.Evidence, *e)
		}
	}
	if in.Closed {
		text := "closed: no further evidence"
		switch {
		case in.MergedInto != 0:
			text = "merged into " + incidentID(in.MergedInto)
		case in.Verified:
			text = "closed: verified"
		}
		last := c.wallTime(in.Last)
		if n := len(b.Timeline); n > 0 && b.Timeline[n-1].Time.After(last) {
			last = b.Timeline[n-1].Time // of what follows from it
		}
		b.Timeline = append(b.Timeline, api.TimelineEntry{Time: last, Kind: "end", Source: "controller", Text: text})
	}
}

// quotes reports whether evidence says more about an incident than other evidence of
// the same source: it is of the cause, at its place, or of a larger scale.
func quotes(in *incident.Incident, e, than *incident.Evidence) bool {
	rank := func(x *incident.Evidence) (n int) {
		if x.Cause == in.Cause {
			n += 2
			if x.Location == in.Location {
				n++
			}
		}
		return n
	}
	return rank(e) > rank(than) || rank(e) == rank(than) && e.Scale > than.Scale
}

// sentence returns what happened: the headline, and the evidence of the cause.
func (c *Controller) sentence(in *incident.Incident) string {
	text := in.Headline(c.fabric, c.affectedJobs(in.Flows))
	if in.Text != "" {
		text += " " + capitalize(strings.TrimSuffix(in.Text, ".")) + "."
	}
	return text
}

// capitalize begins a sentence, unless it begins with a name.
func capitalize(s string) string {
	word, _, _ := strings.Cut(s, " ")
	if strings.ContainsAny(word, ":0123456789") {
		return s
	}
	return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):]
}

// LocationName names a port, "tor0:Ethernet8", or a node where no port is known.
func LocationName(f *topo.Fabric, p model.Port) string {
	switch {
	case !f.HasNode(p.Node):
		return fmt.Sprintf("node %d", p.Node)
	case p.Port == 0:
		return f.Node(p.Node).Name
	}
	return f.PortRef(p)
}

func (c *Controller) locationName(p model.Port) string { return LocationName(c.fabric, p) }

// portName names a port and its peer, "tor0 Ethernet8 → leaf1"; a node where no
// port is known.
func (c *Controller) portName(p model.Port) string {
	if c.fabric.HasNode(p.Node) && p.Port != 0 {
		if c.fabric.Port(p) != nil {
			return c.fabric.PortName(p)
		}
	}
	return c.locationName(p)
}

func (c *Controller) portRef(p model.Port) api.PortRef {
	r := api.PortRef{Node: c.nodeName(p.Node), Port: p.Port}
	if c.fabric.HasNode(p.Node) && p.Port != 0 {
		if q := c.fabric.Port(p); q != nil {
			r.Interface, r.Peer = q.Name, c.nodeName(q.Peer.Node)
		}
	}
	return r
}

// portRefs appends the ports that are not in the list.
func (c *Controller) portRefs(list []api.PortRef, ports []model.Port) []api.PortRef {
next:
	for _, p := range ports {
		r := c.portRef(p)
		for _, have := range list {
			if have == r {
				continue next
			}
		}
		list = append(list, r)
	}
	return list
}

func (c *Controller) flowRef(k model.FlowKey) api.FlowRef {
	return api.FlowRef{Flow: k, Src: c.hostName(k.Src), Dst: c.hostName(k.Dst)}
}

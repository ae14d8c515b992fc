package why

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// Flow answers why a flow is slow.
func (q *Asker) Flow(ctx context.Context, key model.FlowKey) (a Answer, err error) {
	d, err := q.Source.Flow(ctx, key, q.Range)
	if err != nil {
		return a, err
	}
	a = Answer{Subject: key.String(), Hosts: between(&d.FlowRef), Causes: []Cause{}, Facts: []string{}}
	list, complete, err := q.details(ctx)
	if err != nil {
		return a, err
	}
	if !complete {
		a.Unknown = append(a.Unknown, fmt.Sprintf("there are more than %d incidents; a shorter range shows all", maxIncidents))
	}
	for i := range list {
		if kind, how := flowInvolved(&list[i], &d); how != "" {
			c := q.incidentCause(&list[i], kind, how)
			c.Evidence = append(c.Evidence, q.observations(&list[i], key)...)
			a.Causes = append(a.Causes, c)
		}
	}
	slices.SortStableFunc(a.Causes, func(x, y Cause) int { return strings.Compare(string(x.Kind), string(y.Kind)) })
	if err := q.addDiagnosis(ctx, &a, &d); err != nil {
		return a, err
	}
	q.addLosses(&a, &d)
	a.addHops(&d)
	q.addCounts(&a, &d)
	return a, nil
}

func between(f *api.FlowRef) string {
	if f.Src == "" || f.Dst == "" {
		return ""
	}
	return f.Src + " → " + f.Dst
}

// flowInvolved says what an incident has to do with a flow; "": nothing.
func flowInvolved(in *api.IncidentDetail, d *api.FlowDetail) (Kind, string) {
	is := func(p api.Participant) bool { return p.Flow != nil && p.Flow.Flow == d.FlowRef.Flow }
	switch {
	case slices.ContainsFunc(in.Victims, is):
		return Involved, "it is affected by " + named(in)
	case slices.ContainsFunc(in.Culprits, is):
		return Involved, "it contributes to " + named(in)
	}
	for i := range d.Hops {
		h := &d.Hops[i]
		at := func(p api.PortRef) bool { return p.Node == h.Switch && h.Out != nil && p.Port == *h.Out }
		if in.Origin != nil && at(*in.Origin) || slices.ContainsFunc(in.Links, at) || slices.ContainsFunc(in.PFCPath, at) {
			return OnPath, "a port of its path has " + named(in)
		}
	}
	return "", ""
}

// maxObservations bounds what is repeated of an incident's timeline.
const maxObservations = 5

// observations are the entries of an incident's timeline about a flow.
func (q *Asker) observations(in *api.IncidentDetail, key model.FlowKey) (list []string) {
	for _, e := range in.Timeline {
		if e.Flow != nil && e.Flow.Flow == key && len(list) < maxObservations {
			list = append(list, q.Clock(e.Time)+": "+e.Text)
		}
	}
	return list
}

func named(in *api.IncidentDetail) string {
	return fmt.Sprintf("incident %s, %s at %s", in.ID, in.Cause, in.Location)
}

// addDiagnosis adds the newest diagnosis of the flow, with its account of time.
func (q *Asker) addDiagnosis(ctx context.Context, a *Answer, d *api.FlowDetail) error {
	if len(d.Diagnoses) == 0 {
		return nil
	}
	v, err := q.Source.Diagnosis(ctx, d.Diagnoses[0].ID)
	if err != nil {
		return err
	}
	c := Cause{Kind: Verdict, ID: v.ID, Evidence: v.Evidence, Remedy: v.Remedy}
	c.Text = fmt.Sprintf("it was delayed by %s, with root cause %s", v.Anomaly, v.RootCause)
	if v.Initial != nil {
		c.Text += ", at " + v.Initial.String()
	}
	if v.Account != nil {
		c.Text += ": " + v.Account.Text
	}
	c.Evidence = append([]string{fmt.Sprintf("diagnosed %s, confidence %s", q.Clock(v.Time), model.FormatShare(v.Confidence))}, c.Evidence...)
	a.Causes = append(a.Causes, c)
	return nil
}

// addLosses adds the losses of the flow, by place.
func (q *Asker) addLosses(a *Answer, d *api.FlowDetail) {
	type place struct{ from, to string }
	type sum struct {
		packets     uint64
		first, last time.Time
	}
	var order []place
	sums := map[place]*sum{}
	for _, l := range d.Losses { // newest first
		at := place{l.From, l.To}
		s := sums[at]
		if s == nil {
			s = &sum{last: l.Time}
			sums[at] = s
			order = append(order, at)
		}
		s.packets += l.Packets
		s.first = l.Time
	}
	for _, at := range order {
		s := sums[at]
		where := "after " + at.from
		if at.to != "" {
			where = "between " + at.from + " and " + at.to
		}
		c := Cause{Kind: Lost, Text: fmt.Sprintf("%d of its packets were lost %s", s.packets, where)}
		c.Evidence = []string{fmt.Sprintf("counted by the switches from %s to %s", q.Clock(s.first), q.Clock(s.last))}
		a.Causes = append(a.Causes, c)
	}
}

// pausedShare is the share of time from which on pauses of a port are a cause. A sender that
// waits for a hundredth of the time loses as much of its rate at most.
const pausedShare = 0.01

// addHops adds the ports of the path: those that were paused are causes.
func (a *Answer) addHops(d *api.FlowDetail) {
	var path []string
	for i := range d.Hops {
		h := &d.Hops[i]
		text := h.Switch
		if h.LatencyNs != nil && *h.LatencyNs > 0 {
			text += " (up to " + model.FormatDuration(time.Duration(*h.LatencyNs))
			if h.QueueBytes != nil {
				text += ", queue up to " + model.FormatBytes(model.Bytes(*h.QueueBytes))
			}
			text += ")"
		}
		path = append(path, text)
		if h.PausedShare != nil && *h.PausedShare >= pausedShare {
			c := Cause{Kind: Paused, Text: fmt.Sprintf("PFC paused the port by which it leaves %s for %s of the time", h.Switch, model.FormatShare(*h.PausedShare))}
			c.Evidence = []string{"port states while the flow was active"}
			a.Causes = append(a.Causes, c)
		}
	}
	if len(path) > 0 {
		a.Facts = append(a.Facts, "path: "+strings.Join(path, " > "))
	}
}

func (q *Asker) addCounts(a *Answer, d *api.FlowDetail) {
	if d.Slots == 0 {
		a.Unknown = append(a.Unknown, "no switch counted it in this time: it did not send, or no switch on its path reports flowsets")
		return
	}
	a.Facts = append(a.Facts, fmt.Sprintf("%s, %s at %s from %s to %s, %d lost", plural.Count(d.Packets, "packet"), model.FormatBytes(model.Bytes(d.Bytes)),
		model.FormatRate(model.Rate(d.RateBps)), q.Clock(d.First), q.Clock(d.Last), d.LostPackets))
	if !d.Complete {
		a.Unknown = append(a.Unknown, "there are more records than were read; a shorter range shows all")
	}
	if !d.Exact {
		a.Unknown = append(a.Unknown, "some of its counts are estimates, so that small losses may be missing")
	}
	if len(d.Diagnoses) == 0 {
		a.Unknown = append(a.Unknown, "what it waited for: weft diagnose '"+a.Subject+"' asks the switches")
	}
}

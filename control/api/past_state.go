package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

const (
	// sampleWindow is how far back a past state searches for a port's sample.
	sampleWindow = time.Second
	// lossWindow is the interval over which a state counts losses, as in live states.
	lossWindow = 100 * time.Millisecond
)

// stateAt returns a past state: the newest sample of each port at that time, the
// losses of the slots before it, and the health of nodes by the incidents that were
// open. It depends on the store alone, so the same time has the same state later.
func (s *Server) stateAt(ctx context.Context, at time.Time) (st State, err error) {
	// To is exclusive, and a slot that begins at this time is part of the state.
	q, err := s.query(Range{From: at.Add(-sampleWindow), To: at.Add(1)}, Paging{})
	if err != nil {
		return st, err
	}
	f := s.deps.Live.Fabric()
	st.Time = at
	index := map[PortRef]int{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if !n.Role.IsSwitch() {
			continue
		}
		for _, p := range n.Ports {
			index[PortRef{Node: n.Name, Port: p.ID}] = len(st.Ports)
			st.Ports = append(st.Ports, PortState{Node: n.Name, Port: p.ID, AgeMs: -1})
		}
	}
	reporting := map[string]bool{}
	left := len(st.Ports)
	if _, _, err = walkRecords(ctx, s, s.deps.Records.Ports, q, func(r *record.PortSample) bool {
		i, ok := index[PortRef{Node: r.Node, Port: r.Port}]
		if !ok || st.Ports[i].AgeMs >= 0 {
			return true
		}
		reporting[r.Node] = true
		fillPort(&st.Ports[i], f, r, at)
		left--
		return left > 0
	}); err != nil {
		return st, err
	}
	q.From = at.Add(1 - lossWindow)
	if _, _, err = walkRecords(ctx, s, s.deps.Records.Losses, q, func(l *record.Loss) bool {
		if i, ok := index[PortRef{Node: l.From, Port: outPort(f, l.From, l.To)}]; ok {
			st.Ports[i].LostPackets += l.Packets
		}
		return true
	}); err != nil {
		return st, err
	}
	open, err := s.incidentsAt(ctx, at)
	for _, in := range open {
		st.Incidents = append(st.Incidents, NewIncident(in.Incident))
	}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		state := nodeHealth(n.Name, open)
		if state.Health == "ok" && n.Role.IsSwitch() && !reporting[n.Name] {
			state.Health, state.Reason = "unknown", "no sample in the second before"
		}
		st.Nodes = append(st.Nodes, state)
	}
	return st, err
}

func fillPort(p *PortState, f *topo.Fabric, r *record.PortSample, at time.Time) {
	p.LoadBps, p.QueueBytes, p.LatencyNs, p.PausedShare = int64(r.Load), int64(r.Queue), int64(r.Latency), r.Paused
	p.AgeMs = float64(at.Sub(r.Time)) / float64(time.Millisecond)
	id, _ := f.ByName(r.Node)
	if rate := f.Port(model.Port{Node: id, Port: r.Port}).Rate; rate > 0 {
		p.LoadShare = min(1, float64(r.Load)/float64(rate))
	}
}

// openIncident is an incident that was open at a time.
type openIncident struct {
	*record.Incident
	nodes []string
}

// incidentsAt returns the incidents of severity warning and above that were open at a
// time, the most severe first, then the oldest.
func (s *Server) incidentsAt(ctx context.Context, at time.Time) (open []openIncident, err error) {
	_, _, err = walkRecords(ctx, s, s.deps.Records.Incidents, record.Query{From: at, To: at.Add(1)},
		func(r *record.Incident) bool {
			var body IncidentBody
			if r.Severity == "notice" || r.Begin.After(at) || !r.End.IsZero() && r.End.Before(at) {
				return true
			}
			if err := json.Unmarshal(r.Body, &body); len(r.Body) > 0 && err != nil {
				return true // the incident itself says so when it is read
			}
			if mergedInto(r.Body) == "" {
				own := *r // the page is reused
				open = append(open, openIncident{&own, body.Nodes})
			}
			return true
		})
	slices.SortFunc(open, func(a, b openIncident) int {
		critical := func(x openIncident) int {
			if x.Severity == "critical" {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(critical(a), critical(b)), a.Begin.Compare(b.Begin), strings.Compare(a.ID, b.ID))
	})
	return open, err
}

// nodeHealth is a node's health by the incidents that were open: the location of a
// critical one has failed, other nodes of an incident are degraded.
func nodeHealth(name string, open []openIncident) NodeState {
	st := NodeState{Name: name, Health: "ok"}
	for _, in := range open {
		node, _, _ := strings.Cut(in.Location, ":")
		located := node == name
		if !located && !slices.Contains(in.nodes, name) {
			continue
		}
		reason := fmt.Sprintf("%s: %s", in.ID, in.Cause)
		if located && in.Severity == "critical" {
			return NodeState{Name: name, Health: "failed", Reason: reason}
		}
		if st.Reason == "" {
			st.Health, st.Reason = "degraded", reason
		}
	}
	return st
}

package api

import (
	"reflect"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model/record"
)

// TestPastState: a past state has the newest earlier sample of each port, the losses
// of the 100 ms before, and ports of switches only.
func TestPastState(t *testing.T) {
	s, _ := newServer(t)
	st, err := s.stateAt(t.Context(), epoch0.Add(-9950*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	reported := 0
	for _, p := range st.Ports {
		if p.AgeMs >= 0 {
			reported++
			// Record 9 is 10 s old, of port 2; its losses are on the link of
			// port 4.
			if p.Node != "tor0" || p.Port != 2 || p.QueueBytes != 900 || p.AgeMs != 50 {
				t.Errorf("port %+v", p)
			}
		}
		if (p.Node == "tor0" && p.Port == 4) != (p.LostPackets == 1) {
			t.Errorf("losses of port %+v", p)
		}
	}
	ports := 0
	for _, id := range s.deps.Live.Fabric().Switches() {
		ports += len(s.deps.Live.Fabric().Node(id).Ports)
	}
	if reported != 1 || len(st.Ports) != ports {
		t.Errorf("%d of %d ports reported, want 1 of %d", reported, len(st.Ports), ports)
	}
	at := epoch0.Add(-10 * time.Second) // the time of a slot
	if st, err = s.stateAt(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	for _, p := range st.Ports {
		if p.Node == "tor0" && p.Port == 4 && p.LostPackets != 1 {
			t.Errorf("a slot that begins at the time of the state has %d lost packets, want 1", p.LostPackets)
		}
	}
}

// TestPastHealth: the health of nodes at a time is that of the incidents that were open
// then, whatever is open now.
func TestPastHealth(t *testing.T) {
	s, k := newServer(t)
	at := func(ms int) time.Time { return epoch0.Add(time.Duration(ms) * time.Millisecond) }
	add := func(id, severity, cause, location string, from, to int, body any) {
		r := record.Incident{ID: id, Begin: at(from), Updated: at(to), Cause: cause, Severity: severity, Location: location, Body: encode(body)}
		if to > from {
			r.End = at(to)
		}
		k.batch.Incidents = append([]record.Incident{r}, k.batch.Incidents...)
	}
	k.batch.Incidents = nil
	add("i1", "critical", "loss", "tor6:Ethernet8", -5000, -4000, IncidentBody{Nodes: []string{"tor6", "leaf6", "h12"}})
	add("i2", "warning", "incast", "tor2:Ethernet0", -4500, -4400, IncidentBody{Nodes: []string{"tor2", "leaf6"}})
	add("i3", "notice", "contention", "spine0", -5000, -4000, IncidentBody{Nodes: []string{"spine0"}})
	add("i4", "critical", "loop", "leaf5", -4450, -4420, StoredIncident{IncidentBody: IncidentBody{Nodes: []string{"leaf5"}}, MergedInto: "i1"})
	add("i5", "critical", "blackhole", "leaf2", -1000, -1000, IncidentBody{Nodes: []string{"leaf2"}}) // open
	for i := range k.batch.Incidents {
		r := &k.batch.Incidents[i]
		d, err := newIncidentDetail(r)
		if want := map[string]string{"i4": "i1"}[r.ID]; err != nil || NewIncident(r).MergedInto != want || d.MergedInto != want {
			t.Errorf("%s was merged into %q, in detail %q, %v; want %q", r.ID, NewIncident(r).MergedInto, d.MergedInto, err, want)
		}
	}
	type healths map[string]string
	for when, want := range map[int]healths{
		-5001: {},
		-5000: {"tor6": "failed i1: loss", "leaf6": "degraded i1: loss", "h12": "degraded i1: loss"},
		-4430: {"tor6": "failed i1: loss", "leaf6": "degraded i1: loss", "h12": "degraded i1: loss", "tor2": "degraded i2: incast"},
		-4000: {"tor6": "failed i1: loss", "leaf6": "degraded i1: loss", "h12": "degraded i1: loss"},
		-3999: {},
		-10:   {"leaf2": "failed i5: blackhole"},
	} {
		st, err := s.stateAt(t.Context(), at(when))
		if err != nil {
			t.Fatal(err)
		}
		got := healths{}
		for _, n := range st.Nodes {
			if n.Health != "ok" && n.Health != "unknown" {
				got[n.Name] = n.Health + " " + n.Reason
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("health at %d ms: %v, want %v", when, got, want)
		}
		if roots := len(st.Incidents); when == -4430 && (roots != 2 || st.Incidents[0].ID != "i1") {
			t.Errorf("incidents at %d ms: %+v, want i1 and i2", when, st.Incidents)
		}
		later, err := s.stateAt(t.Context(), at(when))
		if err != nil || !reflect.DeepEqual(st, later) {
			t.Errorf("the state at %d ms differs when it is read again, %v", when, err)
		}
	}
}

// TestHopsOfThen: a flow's hops have the queues of the time at which it was active, not
// of now.
func TestHopsOfThen(t *testing.T) {
	s, k := newServer(t)
	read := func() FlowHop {
		t.Helper()
		d, err := s.getFlow(t.Context(), &flowInput{Range: Range{Last: "1h"}, Key: k.flow(3).String()})
		if err != nil || len(d.Hops) == 0 || d.Hops[0].Out == nil || d.Hops[0].QueueBytes == nil {
			t.Fatalf("flow %+v, %v", d, err)
		}
		return d.Hops[0]
	}
	then := read()
	k.batch.Ports = append([]record.PortSample{{
		Time: epoch0.Add(-time.Millisecond), Node: then.Switch, Port: *then.Out, Queue: 1 << 30, Latency: time.Second, Paused: 1, Samples: 1,
	}}, k.batch.Ports...)
	if later := read(); !reflect.DeepEqual(then, later) {
		t.Errorf("hop %+v after a later sample, want %+v", later, then)
	}
}

package why

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// known is a source that knows what a test gives it.
type known struct {
	flow      api.FlowDetail
	flows     map[string][]api.Flow // by filter
	incidents []api.IncidentDetail
	diagnosis api.DiagnosisDetail
}

func (k *known) Flow(context.Context, model.FlowKey, api.Range) (api.FlowDetail, error) {
	return k.flow, nil
}

func (k *known) Flows(_ context.Context, q api.FlowsQuery) (p api.FlowPage, err error) {
	p.Items = k.flows[q.Filter]
	return p, nil
}

func (k *known) Incidents(context.Context, api.IncidentsQuery) (p api.Page[api.Incident], err error) {
	for i := range k.incidents {
		p.Items = append(p.Items, k.incidents[i].Incident)
	}
	return p, nil
}

func (k *known) Incident(_ context.Context, id string) (d api.IncidentDetail, err error) {
	for i := range k.incidents {
		if k.incidents[i].ID == id {
			d = k.incidents[i]
		}
	}
	return d, nil
}

func (k *known) Diagnosis(context.Context, string) (api.DiagnosisDetail, error) {
	return k.diagnosis, nil
}

func key(t *testing.T, text string) model.FlowKey {
	t.Helper()
	k, err := model.ParseFlowKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func incident(id, cause, location string, body api.IncidentBody) api.IncidentDetail {
	return api.IncidentDetail{Incident: api.Incident{ID: id, Severity: "critical", Cause: cause, Location: location, Summary: cause + " there"}, IncidentBody: body}
}

func ask(k *known) *Asker {
	return &Asker{Source: k, Clock: func(t time.Time) string { return t.UTC().Format("15:04:05") }}
}

// TestFlowCauses: of all that is known, an answer has what concerns the flow, and no more.
func TestFlowCauses(t *testing.T) {
	f := key(t, "udp 10.0.0.2:1 > 10.0.1.2:4791")
	other := key(t, "udp 10.0.0.9:1 > 10.0.1.2:4791")
	out, elsewhere := model.PortID(3), model.PortID(4)
	paused, idle := 0.25, 0.001
	ref := func(k model.FlowKey) api.Participant { return api.Participant{Flow: &api.FlowRef{Flow: k}} }
	k := &known{
		flow: api.FlowDetail{
			Flow:      api.Flow{FlowRef: api.FlowRef{Flow: f, Src: "h0", Dst: "h4"}, Slots: 2, Packets: 100, LostPackets: 9, Exact: true},
			Hops:      []api.FlowHop{{Switch: "tor0", Out: &out, PausedShare: &paused}, {Switch: "leaf0", Out: &elsewhere, PausedShare: &idle}},
			Losses:    []api.FlowLoss{{From: "tor0", To: "leaf0", Packets: 4}, {From: "tor0", To: "leaf0", Packets: 5}},
			Diagnoses: []api.Diagnosis{{ID: "d7"}},
			Complete:  true,
		},
		diagnosis: api.DiagnosisDetail{
			Diagnosis:     api.Diagnosis{ID: "d7", Anomaly: "contention", RootCause: "incast"},
			DiagnosisBody: api.DiagnosisBody{Account: &api.Account{Text: "80 us late, 70 us of them behind 7 flows"}},
		},
		incidents: []api.IncidentDetail{
			incident("i1", "storm", "tor9", api.IncidentBody{Victims: []api.Participant{ref(other)}}),
			incident("i2", "congestion", "tor0:Ethernet8", api.IncidentBody{Origin: &api.PortRef{Node: "tor0", Port: out}}),
			incident("i3", "incast", "tor1", api.IncidentBody{
				Victims:  []api.Participant{ref(other), ref(f)},
				Timeline: []api.TimelineEntry{{Text: "its own entry", Flow: &api.FlowRef{Flow: f}}, {Text: "of another", Flow: &api.FlowRef{Flow: other}}},
			}),
			incident("i4", "loss", "leaf0:1", api.IncidentBody{Links: []api.PortRef{{Node: "leaf0", Port: out}}}),
			{Incident: api.Incident{ID: "i5", Cause: "incast", Location: "tor1", MergedInto: "i3"}, IncidentBody: api.IncidentBody{Victims: []api.Participant{ref(f)}}},
		},
	}
	a, err := ask(k).Flow(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct{ id, text string }{
		{"i3", "it is affected by incident i3, incast at tor1"},
		{"i2", "a port of its path has incident i2, congestion at tor0:Ethernet8"},
		{"d7", "delayed by contention, with root cause incast: 80 us late, 70 us of them behind 7 flows"},
		{"", "9 of its packets were lost between tor0 and leaf0"},
		{"", "PFC paused the port by which it leaves tor0 for 25"},
	}
	for i, w := range want {
		if i >= len(a.Causes) || a.Causes[i].ID != w.id || !strings.Contains(a.Causes[i].Text, w.text) {
			t.Fatalf("causes %+v; want number %d to be %s %q", a.Causes, i+1, w.id, w.text)
		}
	}
	if len(a.Causes) != len(want) || len(a.Unknown) != 0 {
		t.Errorf("%d causes and %q not known; want %d and nothing", len(a.Causes), a.Unknown, len(want))
	}
	evidence := strings.Join(a.Causes[0].Evidence, "\n")
	if !strings.Contains(evidence, "its own entry") || strings.Contains(evidence, "of another") {
		t.Errorf("evidence %q; want the entries of the flow only", evidence)
	}
}

// TestSilenceIsNoCause: of a flow of which nothing is known, the answer says so.
func TestSilenceIsNoCause(t *testing.T) {
	a, err := ask(&known{}).Flow(t.Context(), key(t, "udp 10.0.0.2:1 > 10.0.1.2:4791"))
	if err != nil || len(a.Causes) != 0 || len(a.Unknown) != 1 || !strings.Contains(a.Unknown[0], "no switch counted it") {
		t.Errorf("answer %+v, %v; want no cause, and that no switch counted it", a, err)
	}
}

// TestHostCauses: incidents of a host's flows in either direction, and what they lost.
func TestHostCauses(t *testing.T) {
	f := key(t, "udp 10.0.0.2:1 > 10.0.1.2:4791")
	flows := []api.Flow{{FlowRef: api.FlowRef{Flow: f}, Packets: 80, LostPackets: 8}, {Packets: 20}}
	k := &known{
		flows: map[string][]api.Flow{"ip.src == h0": flows},
		incidents: []api.IncidentDetail{
			incident("i1", "loss", "tor0:1", api.IncidentBody{Victims: []api.Participant{{Flow: &api.FlowRef{Src: "h0", Dst: "h4"}}}}),
			incident("i2", "storm", "h9", api.IncidentBody{Nodes: []string{"h9"}}),
			incident("i3", "storm", "h0", api.IncidentBody{Culprits: []api.Participant{{Host: "h0"}}}),
		},
	}
	a, err := ask(k).Host(t.Context(), "h0")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"its flows are affected by incident i1", "it takes part in incident i3", "8 of 100 packets that it sent were lost"}
	for i, text := range want {
		if i >= len(a.Causes) || !strings.Contains(a.Causes[i].Text, text) {
			t.Fatalf("causes %+v; want number %d to say %q", a.Causes, i+1, text)
		}
	}
	if len(a.Causes) != len(want) || len(a.Causes[2].Evidence) != 1 || len(a.Unknown) != 1 {
		t.Errorf("answer %+v; want %d causes, one flow that lost packets, and nothing known of what it received", a, len(want))
	}
}

package live

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// TestOwnTrafficRaisesNothing has the controller probe links, flows and custom
// packets and mark flows, again and again, on a fabric without faults: every probe
// arrives, no incident is raised, and no probe is in a record of users' flows.
func TestOwnTrafficRaisesNothing(t *testing.T) {
	var d *Director
	var flows, lost []model.FlowKey
	l, err := NewDemo(small(5), control.Output{
		Incident: func(in *incident.Incident) { d.ObserveIncident(in) },
		Records: func(b *record.Batch) {
			for i := range b.Flows {
				flows = append(flows, b.Flows[i].Flow)
			}
			for i := range b.Losses {
				lost = append(lost, b.Losses[i].Flow)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d = NewDirector(l)
	b := control.NewBackend(l.Controller, func(_ context.Context, f func()) error { f(); return nil }, api.NewEventHub(16, 16))
	pass(t, l, 80*time.Millisecond)
	users := slices.Clone(flows)
	for round := range race.Less(12, 2) {
		user := users[len(users)*round/12]
		var ids []string
		for _, r := range []api.ProbeRequest{
			{Kind: "link", Link: &api.PortRef{Node: "leaf0", Port: 3}, Count: 20},
			{Kind: "link", Link: &api.PortRef{Node: "tor1", Port: 3}, Count: 20},
			{Kind: "pattern", Flow: user, Count: 8},
			{Kind: "flow", Flow: user, Count: 8},
			{Kind: "format", Format: "ip.src == h0 && ip.dst == h9 && udp.srcport == 77 && udp.dstport == 9", Count: 8},
		} {
			p, err := b.StartProbe(t.Context(), r)
			if err != nil {
				t.Fatalf("round %d, %+v: %v", round, r, err)
			}
			ids = append(ids, p.ID)
		}
		if _, err := b.SetMark(t.Context(), api.MarkRequest{Flow: user, DurationMs: 20}); err != nil {
			t.Fatal(err)
		}
		pass(t, l, 60*time.Millisecond)
		for _, id := range ids {
			p, err := b.Probe(id)
			if err != nil || p.State != "done" || p.Arrived != p.Sent || p.Lost+p.Unheard > 0 {
				t.Errorf("round %d, %s of %v: %s, %d of %d arrived, %s, %v; want all", round, p.Request.Kind, p.Request.Flow, p.State, p.Arrived, p.Sent, p.Verdict, err)
			}
		}
	}
	for id, in := range d.incidents {
		t.Logf("incident %d: %v %v: %s", id, in.severity, in.cause, in.text)
	}
	for _, in := range d.Score().FalseAlarms {
		t.Errorf("incident %d: %v at %s: %s", in.ID, in.Cause, l.fabric.PortRef(in.Place), in.Text)
	}
	// Users' flows go to RoCEv2's port by UDP and to 443 by TCP, and to other hosts.
	for _, k := range slices.Concat(flows, lost) {
		if k.Src == k.Dst || k.DstPort == 9 || k.Proto == model.TCP && k.DstPort == 4791 {
			t.Fatalf("probes like %v are in the records of flows", k)
		}
	}
	f := l.Controller.Stats()
	if f.Flowsets.Probes == 0 || f.ForeignProbes != 0 {
		t.Errorf("%d probe packets were counted, %d traces are foreign; want some, and none", f.Flowsets.Probes, f.ForeignProbes)
	}
}

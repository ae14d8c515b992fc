package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

// TestIncidentPlace: the place of an incident is a switch's port, also of one that is
// at a host, and the destination is that of most victims.
func TestIncidentPlace(t *testing.T) {
	_, k := newServer(t)
	f := k.fabric
	tor := f.Node(f.Switches()[0])
	host := f.Node(tor.Ports[0].Peer.Node)
	if host.Role.IsSwitch() {
		t.Fatalf("%s %s leads to %s; want a host", tor.Name, tor.Ports[0].Name, host.Name)
	}
	victim := func(i int) Participant { return Participant{Flow: &FlowRef{Flow: k.flow(i)}} }
	at := incidentPlace(f, &IncidentDetail{
		Incident:     Incident{Location: host.Name},
		IncidentBody: IncidentBody{Victims: []Participant{victim(1), victim(2), victim(2)}},
	})
	if at.Switch != tor.Name || at.Port != tor.Ports[0].Name || at.Host != host.Name || at.HostPort != host.Ports[0].Name ||
		at.Address != k.flow(2).Dst.String() || at.IPv6 {
		t.Errorf("an incident at %s is at %+v; want %s %s and the address of %v", host.Name, at, tor.Name, tor.Ports[0].Name, k.flow(2))
	}
	up := &tor.Ports[len(tor.Ports)-1]
	origin := newPortRef(f, model.Port{Node: tor.ID, Port: up.ID})
	at = incidentPlace(f, &IncidentDetail{IncidentBody: IncidentBody{Origin: &origin, Loop: []PortRef{origin, {Node: "leaf0"}, origin}}})
	if at.Peer != f.Node(up.Peer.Node).Name || at.PeerPort != f.Port(up.Peer).Name || at.Host != "" || strings.Join(at.Cycle, " ") != tor.Name+" leaf0" {
		t.Errorf("an incident at %v is at %+v", origin, at)
	}
	if at := incidentPlace(f, &IncidentDetail{Incident: Incident{Location: "gone"}}); at.Switch != "" || at.Port != "" {
		t.Errorf("an incident at a node of another topology is at %+v; want nowhere", at)
	}
}

// TestIncidentHasRunbook: the API returns steps with the names of the incident.
func TestIncidentHasRunbook(t *testing.T) {
	s, _ := newServer(t)
	var d IncidentDetail
	if w := do(s.Handler(), "GET", Prefix+"/incidents/inc-0", ""); json.Unmarshal(w.Body.Bytes(), &d) != nil {
		t.Fatalf("incident = %d %s", w.Code, w.Body)
	}
	if len(d.Runbook) == 0 || d.Runbook[0].Node != d.Location || len(d.Runbook[0].Commands) != 3 {
		t.Fatalf("runbook %+v; want steps on %s for three systems", d.Runbook, d.Location)
	}
	if got := strings.Join(d.Runbook[0].Commands[0].Lines, "\n"); !strings.Contains(got, "Ethernet0") {
		t.Errorf("first commands %q; want the port of the incident", got)
	}
}

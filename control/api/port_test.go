package api

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// TestPortByNumberAndName: a port has the same series under its number and under
// its interface name, and both are in the response.
func TestPortByNumberAndName(t *testing.T) {
	s, k := newServer(t)
	sw := k.fabric.Node(k.fabric.Switches()[0])
	for i := range sw.Ports {
		port := &sw.Ports[i]
		var series [2]PortSeries
		for j, text := range []string{strconv.Itoa(int(port.ID)), port.Name} {
			w := do(s.Handler(), "GET", Prefix+"/ports/"+sw.Name+"/"+text+"?last=60s", "")
			if err := json.Unmarshal(w.Body.Bytes(), &series[j]); err != nil || w.Code != 200 {
				t.Fatalf("port %s = %d %s, %v", text, w.Code, w.Body, err)
			}
		}
		a, b := series[0], series[1]
		if a.PortRef != b.PortRef || a.Port != port.ID || a.Interface != port.Name || len(a.Samples) == 0 ||
			len(a.Samples) != len(b.Samples) {
			t.Errorf("by number %+v with %d samples, by name %+v with %d; want port %d, %s",
				a.PortRef, len(a.Samples), b.PortRef, len(b.Samples), port.ID, port.Name)
		}
	}
	w := do(s.Handler(), "GET", Prefix+"/ports/"+sw.Name+"/Ethernet77", "")
	if want := `port \"Ethernet77\" of tor0, want a number from 1 to 4 or an interface name such as Ethernet0`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("an unknown interface: %s; want %s", w.Body, want)
	}
}

// TestRequestedPorts: backends receive both the number and the interface of a port,
// however the client names it.
func TestRequestedPorts(t *testing.T) {
	s, k := newServer(t)
	for _, port := range []string{`"port":3`, `"interface":"Ethernet8"`, `"port":3,"interface":"Ethernet8"`} {
		w := do(s.Handler(), "POST", Prefix+"/probes", `{"kind":"link","link":{"node":"tor0",`+port+`}}`)
		if w.Code != 201 {
			t.Fatalf("probe of %s = %d %s", port, w.Code, w.Body)
		}
		if got, want := *k.probes[0].Request.Link, (PortRef{"tor0", 3, "Ethernet8", "leaf0"}); got != want {
			t.Errorf("probe of %s is of %+v; want %+v", port, got, want)
		}
		w = do(s.Handler(), "POST", Prefix+"/faults", `{"kind":"blackhole","node":"tor0",`+port+`}`)
		if r := k.faults[0].Request; w.Code != 201 || r.Port != 3 || r.Interface != "Ethernet8" {
			t.Errorf("fault at %s = %d %s, of %+v", port, w.Code, w.Body, r)
		}
	}
}

// TestTraceFilterByInterface: hop.in takes a port number or an interface name.
func TestTraceFilterByInterface(t *testing.T) {
	s, _ := newServer(t)
	for filter, want := range map[string]int{
		"hop.in==1": 5, "hop.in==Ethernet0": 5, "hop.in==2": 0,
		"hop.in==Ethernet4": 0, "hop.out==Ethernet12": 5,
	} {
		w := do(s.Handler(), "GET", Prefix+"/traces?limit=5&filter="+filter, "")
		var p Page[TraceSummary]
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 200 || len(p.Items) != want {
			t.Errorf("%s = %d with %d traces, %v; want %d", filter, w.Code, len(p.Items), err, want)
		}
	}
}

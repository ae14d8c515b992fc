package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"
)

func TestPortsNow(t *testing.T) {
	s, k := newServer(t)
	name := k.fabric.Node(k.fabric.Switches()[0]).Name
	w := do(s.Handler(), "GET", Prefix+"/ports/now?node="+name, "")
	var got PortsNow
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Ports) != 2 || len(got.Missing) != 2 {
		t.Fatalf("ports now = %s, %v; want two ports and two that are missing", w.Body, err)
	}
	p := &got.Ports[0]
	if p.Node != name || p.Port != 1 || p.AgeMs != 1 || p.QueueBytes != 5000 || p.LoadShare != 0.25 || p.PausedShare != 1 ||
		!slices.Equal(p.PausedClasses, []int{3, 5}) || p.SentBytes != 77 {
		t.Errorf("port now = %+v; want what the memory has", p)
	}
	if got.Missing[0].Port != 2 {
		t.Errorf("missing %+v; want port 2 first", got.Missing)
	}
}

func TestKeyedRoutesNeedMemory(t *testing.T) {
	s, _ := newServer(t, func(_ *Config, d *Deps) { d.Memory = nil })
	for _, path := range []string{"/ports/now", "/ports/now/tor0/1", "/hosts/h0/counters", "/flows/tcp%2010.0.0.2:1%20%3E%2010.0.1.2:2/postcards"} {
		if w := do(s.Handler(), "GET", Prefix+path, ""); w.Code != http.StatusNotImplemented {
			t.Errorf("%s without memory = %d; want 501", path, w.Code)
		}
	}
}

func TestHostCounters(t *testing.T) {
	s, k := newServer(t)
	host := k.fabric.Node(k.fabric.Hosts()[0])
	read := func(path string) (got HostCounters) {
		t.Helper()
		w := do(s.Handler(), "GET", Prefix+"/hosts/"+path, "")
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Host != host.Name {
			t.Fatalf("GET %s = %s, %v; want counters of %s", path, w.Body, err, host.Name)
		}
		return got
	}
	got := read(host.Name + "/counters")
	if want := (HostCount{2003, 20, 4000, 40, 3}); got.Total != want || len(got.Classes) != 2 || got.Classes[1].Class != 3 {
		t.Errorf("counters = %+v; want two classes and the total %+v", got, want)
	}
	if got.Bound != (CounterBound{5, 0.25, 0.125}) || len(got.Addresses) == 0 || len(got.Switches) != len(host.Ports) {
		t.Errorf("counters = %+v; want the bound, addresses and switches", got)
	}
	if got := read(host.IPv4.String() + "/counters?class=3"); len(got.Classes) != 1 || got.Total.SentBytes != 1003 {
		t.Errorf("counters of class 3 = %+v; want one class with 1003 bytes", got)
	}
	if got := read(host.Name + "/counters?class=5"); len(got.Classes) != 1 || got.Classes[0].HostCount != (HostCount{}) {
		t.Errorf("counters of class 5 = %+v; want that class with zeros", got)
	}
}

func TestFlowPostcards(t *testing.T) {
	s, k := newServer(t)
	w := do(s.Handler(), "GET", Prefix+"/flows/"+url.PathEscape(k.flow(1).String())+"/postcards", "")
	var got FlowPostcards
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Samples) != 1 || got.Mixed != 1 || got.Flow != k.flow(1) {
		t.Fatalf("postcards = %s, %v; want one sample, and one mixed", w.Body, err)
	}
	one := &got.Samples[0]
	name := k.fabric.Node(0).Name
	if want := []PostcardRow{{Hop: 0, Missing: true}, {Hop: 1, Missing: true}, {2, false, name, 500, 3000}}; !slices.Equal(one.Hops, want) ||
		one.Complete || one.AgeMs != 1 || one.LatencyNs != 500 {
		t.Errorf("sample = %+v; want hops %+v, 1 ms old", one, want)
	}
}

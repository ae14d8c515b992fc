package api

import (
	"encoding/json"
	"net/http"
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
	for _, path := range []string{"/ports/now", "/ports/now/tor0/1"} {
		if w := do(s.Handler(), "GET", Prefix+path, ""); w.Code != http.StatusNotImplemented {
			t.Errorf("%s without memory = %d; want 501", path, w.Code)
		}
	}
}

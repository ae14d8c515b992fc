package proof

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// remedyNamed returns a remedy of a proof, or nil.
func remedyNamed(r *Result, name string) *Trial {
	if i := slices.IndexFunc(r.Remedies, func(t Trial) bool { return t.Name == name }); i >= 0 {
		return &r.Remedies[i]
	}
	return nil
}

// TestRemediesOfAHost: the port of the host that pauses is shut down, and a watchdog helps
// as much as it is faster than the storm.
func TestRemediesOfAHost(t *testing.T) {
	var gains []float64
	for _, after := range []time.Duration{5 * time.Microsecond, 50 * time.Millisecond} {
		c := storm(t)
		c.Watchdog = after
		r, err := Prove(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		off, watchdog := remedyNamed(r, "disabled"), remedyNamed(r, "watchdog")
		if off == nil || watchdog == nil || len(r.Remedies) != 2 {
			t.Fatalf("remedies %+v; want the host disabled, and a watchdog", r.Remedies)
		}
		if off.Gain < 0.9 || strings.Contains(off.Scenario, "h15") && strings.Contains(off.Scenario, "to: h15,") {
			t.Errorf("without the host the packet gains %.2f; want nearly all, and no flow to it:\n%s", off.Gain, off.Scenario)
		}
		if !strings.Contains(watchdog.What, after.String()) {
			t.Errorf("watchdog: %s; want its %v", watchdog.What, after)
		}
		gains = append(gains, watchdog.Gain)
	}
	if gains[0] < 0.5 || gains[1] != 0 {
		t.Errorf("watchdogs of 5µs and 50ms gain %.2f; want most of it, and nothing", gains)
	}
}

// TestRemediesOfFlows: flows are limited, and hashed anew.
func TestRemediesOfFlows(t *testing.T) {
	c := storm(t)
	c.Named = Culprits{}
	for i := range c.Diagnosis.Account.Timeline.Senders {
		if s := &c.Diagnosis.Account.Timeline.Senders[i]; s.Dst == "h15" && s.Flow != c.Diagnosis.Victim.Flow {
			c.Named.Flows = append(c.Named.Flows, s.Flow)
		}
	}
	r, err := Prove(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	limited, rehashed := remedyNamed(r, "limited"), remedyNamed(r, "rehashed")
	if limited == nil || rehashed == nil || len(r.Remedies) != 2 {
		t.Fatalf("remedies %+v; want limited flows, and another hash", r.Remedies)
	}
	if limited.Gain <= 0 || limited.Gain != r.fall(limited) {
		t.Errorf("with limited flows the packet gains %.2f; want something, as its lateness says", limited.Gain)
	}
	seed := func(text string) string {
		_, after, _ := strings.Cut(text, "topology:")
		_, after, _ = strings.Cut(after, "seed: ")
		line, _, _ := strings.Cut(after, "\n")
		return line
	}
	if seed(rehashed.Scenario) == seed(r.Rebuilt.Scenario) {
		t.Errorf("the ECMP seed is %s with another hash, too", seed(rehashed.Scenario))
	}
}

// TestIntendedRoutes: flows that deviated from the intended routes are put back.
func TestIntendedRoutes(t *testing.T) {
	c := storm(t)
	s := &c.Diagnosis.Account.Timeline.Senders[0]
	// No hash leads over the uplinks of two leaves of a pod.
	s.Outs = s.Outs[:0]
	f := c.Fabric.Topology.Fabric
	for _, name := range []string{"leaf0", "leaf1"} {
		id, _ := f.ByName(name)
		spine := f.Node(id).Ports[len(f.Node(id).Ports)-1]
		s.Outs = append(s.Outs, api.PortRef{Node: name, Port: spine.ID})
	}
	r, err := Prove(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	mended := remedyNamed(r, "mended")
	if mended == nil {
		t.Fatalf("remedies %+v; want the intended routes among them", r.Remedies)
	}
	if !strings.Contains(r.Rebuilt.Scenario, "kind: reroute") || strings.Contains(mended.Scenario, "kind: reroute") {
		t.Errorf("mended:\n%s\nwant no routes of its own, which the rebuilt run has", mended.Scenario)
	}
}

// TestHeadroom: where lossless packets are dropped for want of headroom, more is tried.
func TestHeadroom(t *testing.T) {
	c := storm(t)
	c.Fabric.Sim.Headroom = 1
	c.Fabric.Sim.Buffer = 200_000
	if r, err := Prove(t.Context(), c); err != nil || remedyNamed(r, "headroom") != nil {
		t.Errorf("a buffer without room for more: %+v, %v; want no headroom tried", r, err)
	}
	c.Fabric.Sim.Buffer = 300_000
	r, err := Prove(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	more := remedyNamed(r, "headroom")
	if more == nil {
		t.Fatalf("remedies %+v; want more headroom among them", r.Remedies)
	}
	if !strings.Contains(r.Rebuilt.Scenario, "headroom: 1\n") || strings.Contains(more.Scenario, "headroom: ") {
		t.Error("more headroom is not the only difference")
	}
}

// TestWatch: pauses that touch are one, and those of others than the named hosts stay.
func TestWatch(t *testing.T) {
	us := time.Microsecond
	pauses := []hostPause{
		{host: 1, priority: 3, from: 100 * us, to: 150 * us},
		{host: 1, priority: 3, from: 0, to: 100 * us},
		{host: 1, priority: 3, from: 300 * us, to: 310 * us},
		{host: 2, priority: 3, from: 0, to: 900 * us},
	}
	r := remedy{watchdog: 120 * us}
	got := r.watch(pauses, func(id model.NodeID) bool { return id == 1 })
	want := []hostPause{
		{host: 1, priority: 3, from: 0, to: 120 * us},
		{host: 1, priority: 3, from: 300 * us, to: 310 * us},
		{host: 2, priority: 3, from: 0, to: 900 * us},
	}
	if !slices.Equal(got, want) {
		t.Errorf("watch(%v) = %v; want %v", pauses, got, want)
	}
}

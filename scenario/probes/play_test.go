package probes

import (
	"context"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/probe"
	"github.com/weft-telemetry/weft/scenario"
)

const lossy = `duration: 4ms
topology:
  generate: {kind: leaf-spine, leaves: 2, spines: 1, hosts: 2}
traffic:
  - {kind: persistent, pairs: [h0>h2, h3>h1], rate: 1Gb/s, stop: 3ms, transport: udp}
faults:
  - {kind: silent-drop, port: leaf0>spine0, share: 30%, at: 1ms}
telemetry:
  - {kind: mirror, every: 50, lists: 2}
expect:
  drops: none # not judged here
`

// TestPlay asks about both flows, one of which loses packets, and about a link.
func TestPlay(t *testing.T) {
	s, err := scenario.Parse("lossy.yaml", []byte(lossy))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Play(context.Background(), s, Options{Interval: 10 * time.Microsecond, Count: 20, Flows: []string{"h0>h2", "h3>h1"}, Links: []string{"leaf1>spine0"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Flows) != 2 || len(p.Links) != 1 || p.Asked != 2*time.Millisecond {
		t.Fatalf("%d flows and %d links asked about at %v; want 2 and 1 at 2ms", len(p.Flows), len(p.Links), p.Asked)
	}
	for i, want := range []struct {
		kind probe.Kind
		at   string
		hops int // of the longest way seen
	}{{probe.Random, "leaf0", 3}, {probe.Passed, "", 3}} {
		f := p.Flows[i]
		at := ""
		if f.Kind != probe.Passed {
			at = p.Fabric().Node(f.At.Switch).Name
		}
		if f.Kind != want.kind || at != want.at || f.Way == nil || len(f.Way.Hops) != want.hops {
			t.Errorf("flow %v: %v at %q; want %v at %q, and a way of %d hops", f.Flow, f.Kind, at, want.kind, want.at, want.hops)
		}
	}
	if l := p.Links[0]; !l.Measured || l.Seen != 20 || l.Least < 2*time.Microsecond || l.Least > 2100*time.Nanosecond {
		t.Errorf("%+v; want 20 round trips of 2µs", l)
	}
}

func TestWhatCannotBeAsked(t *testing.T) {
	s, err := scenario.Parse("lossy.yaml", []byte(lossy))
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"nothing":      {Interval: 1, Count: 1},
		"no probes":    {Interval: 1, Suspects: 1},
		"no interval":  {Count: 1, Suspects: 1},
		"too many":     {Interval: 1, Count: 1, Suspects: 99},
		"no such flow": {Interval: 1, Count: 1, Flows: []string{"h0>h3"}},
		"no such link": {Interval: 1, Count: 1, Links: []string{"leaf0>leaf1"}},
		"half a link":  {Interval: 1, Count: 1, Links: []string{"leaf0"}},
		"no switch":    {Interval: 1, Count: 1, Suspects: 1, Inject: "h0"},
		"wrong format": {Interval: 1, Count: 1, Format: "ip.src == nobody"},
		"too early":    {Interval: 1, Count: 1, Suspects: 1, At: -1},
	} {
		if _, err := Play(context.Background(), s, o, nil); err == nil {
			t.Errorf("%s: no complaint about %+v", name, o)
		}
	}
}

package scenario

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// racks is two racks with a mux, a machine that may migrate and the outside
// world, in 18 lines: errors are from line 19 on.
const racks = `name: racks
duration: 4ms
topology:
  nodes:
    - {name: h0, role: host, nets: [10.9.9.9], ipv4: 10.0.0.1}
    - {name: h1, role: host, ipv4: 10.0.0.2}
    - {name: h2, role: host, ipv4: 10.0.1.1, ipv6: "fd00::2"}
    - {name: mux0, role: mux, nets: [192.0.2.0/24, "2001:db8:10::/64"]}
    - {name: world, role: host, nets: [0.0.0.0/0]}
    - {name: tor0, role: tor}
    - {name: tor1, role: border}
  links:
    - {ends: [h0, tor0]}
    - {ends: [h1, tor0]}
    - {ends: [h2, tor1]}
    - {ends: [mux0, tor1]}
    - {ends: [world, tor1]}
    - {ends: [tor0, tor1]}
`

// TestServicesMovesAndAddresses reads what the sections for them may hold.
func TestServicesMovesAndAddresses(t *testing.T) {
	s := mustParse(t, racks+`
services:
  - {vip: 192.0.2.10, backends: [h1, h2, 10.9.9.9], delay: 7us}
  - {vip: "2001:db8:10::1", backends: h2}
moves:
  - {address: 10.9.9.9, to: h2, at: 1ms, delay: 10us, spread: 5us, late: [{switches: [tor0..tor1], after: 90us}]}
bgp: {keepalive: 50us}
traffic:
  - kind: flows
    list:
      - {from: h0, to: 192.0.2.10, bytes: 1KB}
      - {from: 203.0.113.7, to: h0, bytes: 1KB}
      - {from: 10.9.9.9, to: 198.51.100.1, bytes: 1KB, transport: tcp}
faults:
  - {kind: slow-mux, mux: mux0, delay: 3us}
  - {kind: wrong-mux, mux: mux0, share: 50%, to: h1, seed: 5}
  - {kind: wrong-mux, mux: mux0, share: 50%}
`)
	id := func(name string) model.NodeID { id, _ := s.Topology.Fabric.ByName(name); return id }
	ref := func(text string) model.Addr { r := ref{text: text}; a, _ := r.address(); return a }
	var services []sim.Service
	for _, one := range s.Services {
		services = append(services, one.Service)
	}
	if diff := cmp.Diff([]sim.Service{
		{VIP: ref("192.0.2.10"), Backends: []model.Addr{ref("10.0.0.2"), ref("10.0.1.1"), ref("10.9.9.9")}, Delay: 7 * time.Microsecond},
		{VIP: ref("2001:db8:10::1"), Backends: []model.Addr{ref("fd00::2")}},
	}, services); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
	late := map[model.NodeID]time.Duration{id("tor0"): 90 * time.Microsecond, id("tor1"): 90 * time.Microsecond}
	if m := s.Migrations[0]; len(s.Migrations) != 1 || m.At != 1e6 || m.Addr != ref("10.9.9.9") || m.To != id("h2") || m.Delay != 10*time.Microsecond || m.Spread != 5*time.Microsecond || !maps.Equal(m.Late, late) {
		t.Errorf("moves %+v; want one of 10.9.9.9 to h2 at 1 ms", s.Migrations)
	}
	if s.Keepalive != 50*time.Microsecond {
		t.Errorf("keepalives every %v; want 50µs", s.Keepalive)
	}
	flows := s.Traffic[0].Generator.(traffic.List)
	for i, want := range []traffic.Flow{
		{Src: id("h0"), To: ref("192.0.2.10")},
		{Src: id("world"), From: ref("203.0.113.7"), Dst: id("h0")},
		{Src: id("h0"), From: ref("10.9.9.9"), To: ref("198.51.100.1")},
	} {
		if f := flows[i]; f.Src != want.Src || f.From != want.From || f.Dst != want.Dst || f.To != want.To {
			t.Errorf("flow %d is %+v; want %+v", i, f, want)
		}
	}
	for i, want := range []sim.Fault{
		sim.SlowMux{Host: id("mux0"), Delay: 3 * time.Microsecond},
		sim.MisdirectingMux{Host: id("mux0"), Share: 0.5, To: ref("10.0.0.2"), Seed: 5},
		sim.MisdirectingMux{Host: id("mux0"), Share: 0.5},
	} {
		if got := s.Faults[i].Fault; got != want {
			t.Errorf("fault %d is %+v; want %+v", i, got, want)
		}
	}
	s.Faults = s.Faults[:1]
	if r := runScenario(t, s); len(r.Run.Flows) != 3 || r.Summary.Flows.Finished != 3 {
		t.Errorf("%d flows, %d finished; want 3", len(r.Run.Flows), r.Summary.Flows.Finished)
	}
}

func TestServiceAndMoveErrors(t *testing.T) {
	flow := func(keys string) string {
		return "traffic:\n  - kind: flows\n    list:\n      - {" + keys + ", bytes: 1KB}\n"
	}
	for _, tc := range []struct{ text, want string }{
		{"services:\n  - {vip: 192.0.2.10}\n", "racks:20: service 1, want a vip and backends"},
		{"services:\n  - {vip: mux0, backends: h1}\n", `racks:20: vip "mux0", want an address such as 192.0.2.10`},
		{"services:\n  - vip: 192.0.2.10\n    backends: [h9]\n", `racks:21: there is no node "h9", want one of the topology, or an address`},
		{"services:\n  - {vip: 192.0.2.10, backends: tor0}\n", "racks:20: tor0 is a switch, want a host"},
		{"services:\n  - {vip: 10.0.0.2, backends: h0}\n", "racks:20: services: service 10.0.0.2: the address is that of h1, want one of the prefixes of a mux"},
		{"services:\n  - {vip: 192.0.2.10, backends: h0}\n  - {vip: 192.0.2.10, backends: h0}\n", "racks:21: services: service 192.0.2.10: listed twice, want it once with all its backends"},
		{"moves:\n  - {to: h1}\n", "racks:20: move 1, want an address and where it moves to"},
		{"moves:\n  - {address: h0, to: h1}\n", `racks:20: address "h0", want one such as 10.9.9.9`},
		{"moves:\n  - {address: 10.9.9.9, to: tor0}\n", "racks:20: tor0 is a switch, want a host"},
		{"moves:\n  - {address: 10.0.0.1, to: h1}\n", "racks:20: move: migration of 10.0.0.1: not a prefix of exactly one host, want one such as 10.0.0.1/32"},
		{"moves:\n  - {address: 10.9.9.9, to: h1, late: [{after: 1ms}]}\n", "racks:20: late 1, want switches and a delay"},
		{"moves:\n  - {address: 10.9.9.9, to: h1, late: [{switches: h1, after: 1ms}]}\n", "racks:20: h1 is a host, want a switch"},
		{"bgp: {keepalive: 0}\n", "racks:19: keepalive 0s, want above 0"},
		{"bgp: {keep: 1ms}\n", `racks:19: unknown key "keep" in bgp, want one of keepalive`},
		{flow("from: h0, to: nowhere"), `racks:22: there is no node "nowhere", want one of the topology, or an address`},
		{flow("from: h0, to: \"fd99::1\""), "racks:22: no node owns fd99::1, want an address of the topology's nodes or nets"},
		{flow("from: h0, to: tor0"), "racks:22: tor0 is a switch, want a host"},
		{flow("from: 192.0.2.10, to: h0"), "racks:22: 192.0.2.10 belongs to mux0, want an address of one host"},
		{flow("from: h0, to: 192.0.2.11"), "racks:20: traffic flows: flow 0: to 192.0.2.11, which mux0 answers for; want one of the services"},
		{"faults:\n  - {kind: slow-mux, delay: 1us}\n", "racks:20: slow-mux has no mux, want one"},
		{"faults:\n  - {kind: slow-mux, mux: mux0}\n", "racks:20: slow-mux with delay 0s, want above 0"},
		{"faults:\n  - {kind: slow-mux, mux: h0, delay: 1us}\n", "racks:20: h0 is a host, want a mux"},
		{"faults:\n  - {kind: wrong-mux, mux: mux0}\n", "racks:20: wrong-mux with share 0, want above 0 and at most 1"},
		{"faults:\n  - {kind: wrong-mux, mux: mux0, share: 1, to: h8}\n", `racks:20: there is no node "h8"`},
	} {
		s, err := parse("racks", []byte(racks+tc.text), nothing)
		if err == nil {
			_, err = Run(t.Context(), s, Options{}, nil)
		}
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s= %v\nwant %s", tc.text, err, tc.want)
		}
	}
}

// TestMovesAreCauses: truth says what made packets loop, from when to when, and
// which switches were late; route changes in between do not undo it.
func TestMovesAreCauses(t *testing.T) {
	s := mustParse(t, racks+`
moves:
  - {address: 10.9.9.9, to: h2, at: 1ms, late: [{switches: tor1, after: 500us}]}
traffic:
  - kind: flows
    list:
      - {from: h1, to: h2, bytes: 1KB}
      - {from: h1, to: 10.9.9.9, stop: 3500us, rate: 100Mb/s}
faults:
  - {kind: link-down, port: h0, at: 2ms, reconverge: 10us}
expect: {drops-ttl: some}
`)
	r := runScenario(t, s)
	tor1, _ := s.Topology.Fabric.ByName("tor1")
	c := r.Truth.Causes()[0]
	if c.Kind != "move" || c.Begin != engine.Millisecond || c.End != 1500*engine.Microsecond || !slices.Equal(c.Nodes, []model.NodeID{tor1}) || !slices.Equal(c.Flows, []int{1}) {
		t.Errorf("cause %+v; want the move from 1 to 1.5 ms at tor1, of flow 1", c)
	}
	for _, d := range r.Truth.Drops() {
		if wrong := r.Truth.ActiveCauses(d.At); d.Reason == sim.DropTTL && (len(wrong) != 1 || wrong[0].Kind != "move") {
			t.Fatalf("packet lost at %v, when %+v was wrong; want the move", d.At, wrong)
		}
	}
	if r.Verdict != Pass || !strings.Contains(r.Injected[0], "10.9.9.9 moves to h2") {
		t.Errorf("verdict %s, injected %q; want PASS, the move", r.Verdict, r.Injected)
	}
	// The flow continues at its new host after routes have changed again.
	if f := r.Run.Flows[1]; f.Retransmitted == 0 {
		t.Errorf("flow %+v; want packets sent again", f)
	}
}

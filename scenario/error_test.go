package scenario

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/topo/file"
)

// ring is the start of a good file of five lines; errors are from line 6 on.
const ring = `name: r
duration: 1ms
topology:
  generate: {kind: ring, switches: 3, hosts: 2}
# five
`

func nothing(path string) ([]byte, error) { return nil, fmt.Errorf("open %s: no such file", path) }

// TestFileErrors: every malformed file is answered with file, line, what is
// wrong and what is wanted.
func TestFileErrors(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"empty", "", "empty:1: file is empty, want a scenario"},
		{"list", "- a\n", "list:1: the file is a list, want keys and values"},
		{"syntax", "a: {\n", "syntax:1: "},
		{"greater", "duration: 1ms\nexpect:\n  pauses: > 0\n", `greater:3: invalid header option: " 0", want YAML or JSON; a value that begins with ">" needs quotes`},
		{"docs", "a: 1\n---\nb: 2\n", "docs:3: second document, want one in a file"},
		{"deep", "a: " + strings.Repeat("[", 100), "deep:1: more than 32 nested brackets"},
		{"wide", strings.Repeat("- ", 200) + "a", "wide:1: item at column 201"},
		{"unknown", ring + "trafic: []\n", `unknown:6: unknown key "trafic" in the file, want one of name, about, seed`},
		{"alias", ring + "about: &a x\n", "alias:6: about is an anchor or alias, which is not supported here, want a single value"},
		{"noduration", "topology:\n  generate: {kind: ring}\n", "noduration:1: duration 0s, want above 0"},
		{"duration", "topology:\n  generate: {kind: ring}\nduration: -1ms\n", `duration:3: duration "-1ms", want a duration such as 10us`},
		{"ages", "topology:\n  generate: {kind: ring}\nduration: 100000h\n", `ages:3: duration "100000h", want a duration such as 10us, at most 277h46m40s`},
		{"seed", ring + "seed: -1\n", `seed:6: seed "-1", want a whole number from 0 to 18446744073709551615`},
		{"notopology", "duration: 1ms\n", "notopology:1: file has no topology, want one"},
		{"topology", "duration: 1ms\ntopology:\n  generate:\n    kind: ring\n    switches: 2\n", "topology:5: "},
		{"topokey", "duration: 1ms\ntopology:\n  nodes:\n    - {name: a, role: host}\n  lnks: []\nseed: 3\n", `topokey:5: unknown key "lnks"`},
		{"topolink", "duration: 1ms\ntopology: {nodes: [{name: a, role: host}],\n  links: [{ends: [a, b]}]}\n", `topolink:3: link names unknown node "b"`},
		{"topofile", "duration: 1ms\ntopology: {file: x.yaml}\n", "topofile:2: topology file: open x.yaml: no such file, want a topology"},
		{"topoempty", "duration: 1ms\ntopology:\nseed: 1\n", "topoempty:2: topology is empty, want keys and values"},

		{"mtu", ring + "fabric:\n  mtu: 20\n", "mtu:7: MTU 20, want 64 to 9600"},
		{"mtu2", ring + "fabric:\n  mtu: 99999999999\n", "mtu2:7: MTU 2147483647, want 64 to 9600"},
		{"buffer", ring + "fabric: {buffer: much}\n", `buffer:6: buffer "much", want a size such as 500KB or 4KiB`},
		{"negative", ring + "fabric: {reserve: -4KiB}\n", `negative:6: reserve "-4KiB", want a size`},
		{"alpha", ring + "fabric: {alpha: 1/3}\n", `alpha:6: alpha "1/3", want 1, 1/2, 1/4`},
		{"headroom", ring + "fabric: {headroom: 0}\n", `headroom:6: headroom "0", want auto or a size such as 40KB`},
		{"lossless", ring + "fabric: {lossless: [3, 8]}\n", "lossless:6: lossless priority 8, want 0 to 7"},
		{"lossless2", ring + "fabric: {lossless: [300]}\n", `lossless2:6: lossless, item 1 "300", want a whole number from 0 to 255`},
		{"pause", ring + "fabric: {pause-time: 0}\n", `pause:6: pause-time "0", want forever or a duration such as 300us`},
		{"xon", ring + "fabric:\n  xoff: 10KB\n  xon: 20KB\n", "xon:8: xon 20KB, want below xoff, which is 10KB"},
		{"xoff", ring + "fabric: {xon: 20KB}\n", "xoff:6: xon 20KB without xoff, want both"},
		{"pfc", ring + "fabric: {pfc: maybe}\n", `pfc:6: pfc "maybe", want on or off`},
		{"ecn", ring + "fabric: {ecn: on}\n", `ecn:6: ecn "on", want off or a list of marking curves`},
		{"ecn2", ring + "fabric:\n  ecn:\n    - {kmin: 5KB}\n", "ecn2:8: marking curve 1, want kmin, kmax and pmax"},
		{"ecn3", ring + "fabric:\n  ecn:\n    - {kmin: 5KB, kmax: 4KB, pmax: 1}\n", "ecn3:8: kmin 5KB, want at most kmax"},
		{"pmax", ring + "fabric:\n  ecn:\n    - {kmin: 5KB, kmax: 4KB, pmax: 2}\n", `pmax:8: pmax "2", want a share such as 0.3 or 30%`},
		{"ecnat", ring + "fabric: {ecn-at: noon}\n", `ecnat:6: ecn-at "noon", want departure or arrival`},
		{
			"cc", ring + "fabric: {congestion-control: no-such}\n",
			`cc:6: congestion-control "no-such", want ` + congestion.Names(),
		},
		{
			"cc2", ring + "fabric: {congestion-control: {algorithm: dcqcn, preset: best}}\n",
			`cc2:6: dcqcn preset "best", want paper or hpcc`,
		},
		{
			"cc3", ring + "fabric: {congestion-control: {algorithm: dcqcn, gain: 7}}\n",
			"cc3:6: gain 7, want above 0 and at most 1",
		},
		{
			"cc4", ring + "fabric: {congestion-control: {algorithm: dcqcn, gains: 7}}\n",
			`cc4:6: unknown key "gains" in dcqcn, want one of algorithm, preset, gain`,
		},
		{
			"cc5", ring + "fabric: {congestion-control: {gain: 0.1}}\n",
			"cc5:6: congestion-control has no algorithm, want " + congestion.Names(),
		},
		{
			"cc6", ring + "fabric: {congestion-control: {algorithm: timely, t-low: 2ms}}\n",
			"cc6:6: min RTT 20µs, T_low 2ms, T_high 500µs, want min RTT above 0 and T_low at most T_high",
		},
		{
			"cc7", ring + "fabric: {congestion-control: hpcc, window: off}\n",
			"cc7:6: window off with hpcc, want path or fabric: it measures queues in windows",
		},
		{
			"cc8", ring + "fabric: {congestion-control: dctcp, cnp-interval: 50us}\n",
			"cc8:6: cnp-interval 50µs with dctcp, want 0: it counts every mark",
		},
		{
			"cc9", ring + "fabric: {congestion-control: {algorithm: none, gain: 1}}\n",
			`cc9:6: unknown key "gain" in none, want one of algorithm, preset`,
		},
		{"window", ring + "fabric: {window: big}\n", `window:6: window "big", want off, path or fabric`},
		{"tcprto", ring + "fabric: {tcp-rto: 1h}\n", "tcprto:6: minimum TCP timeout 1h0m0s, want 0 to"},
		{"ttl", ring + "fabric: {ttl: 0}\n", "ttl:6: TTL 0, want at least 1"},

		{"traffic", ring + "traffic: 7\n", "traffic:6: traffic, item 1 is a single value, want keys and values"},
		{"nokind", ring + "traffic:\n  - {name: a}\n", "nokind:7: traffic, item 1 has no kind, want one of all-reduce, all-to-all"},
		{"kind", ring + "traffic:\n  - kind: gossip\n", `kind:7: kind "gossip", want one of all-reduce`},
		{"field", ring + "traffic:\n  - kind: incast\n    fan: 3\n", `field:8: unknown key "fan" in incast, want one of kind, name, priority`},
		{"host", ring + "traffic:\n  - {kind: incast, receivers: [h9]}\n", `host:7: there is no node "h9", want one of the topology`},
		{"switch", ring + "traffic:\n  - {kind: incast, receivers: [s1]}\n", "switch:7: s1 is a switch, want a host"},
		{"range", ring + "traffic:\n  - {kind: incast, senders: [h0..h9]}\n", `range:7: there is no node "h0..h9"`},
		{"priority", ring + "traffic:\n  - {kind: incast, priority: 8}\n", `priority:7: priority "8", want 0 to 7`},
		{"transport", ring + "traffic:\n  - {kind: incast, transport: quic}\n", `transport:7: transport "quic", want rdma, tcp or udp`},
		{"load", ring + "traffic:\n  - {kind: poisson, load: 130%}\n", `load:7: load "130%", want a share`},
		{"sizes", ring + "traffic:\n  - {kind: poisson, sizes: mail}\n", `sizes:7: flow sizes "mail", want one of websearch`},
		{"sizes2", ring + "traffic:\n  - {kind: poisson, sizes: mail.txt}\n", "sizes2:7: sizes: open mail.txt: no such file, want a file or one of websearch"},
		{"pair", ring + "traffic:\n  - {kind: persistent, pairs: [h0]}\n", `pair:7: pair "h0", want two hosts such as h0>h1`},
		{"shrew", ring + "traffic:\n  - {kind: shrew, senders: [h0]}\n", "shrew:7: shrew has no receiver, want a host"},
		{"flows", ring + "traffic:\n  - kind: flows\n", "flows:7: flows has no list, want at least one flow"},
		{"flow", ring + "traffic:\n  - kind: flows\n    list:\n      - {from: h0, bytes: 1KB}\n", "flow:9: flow 1, want from and to"},
		{"after", ring + "traffic:\n  - kind: flows\n    list:\n      - {from: h0, to: h1, bytes: 1, after: [1]}\n", "after:9: after flow 1, want another of this list, 1 to 1"},
		{"flowkey", ring + "traffic:\n  - kind: flows\n    list:\n      - {from: h0, kind: x}\n", `flowkey:9: unknown key "kind" in list, item 1, want one of priority`},
		{"flowfile", ring + "traffic:\n  - {kind: flow-file, file: f.txt}\n", "flowfile:7: flow file: open f.txt: no such file, want one"},

		{"fault", ring + "faults:\n  - {kind: rain}\n", `fault:7: kind "rain", want one of bad-table`},
		{"noport", ring + "faults:\n  - {kind: link-down, at: 1us}\n", "noport:7: link-down has no port, want one"},
		{"port", ring + "faults:\n  - kind: link-down\n    port: s0:Ethernet99\n", `port:8: s0 has no port "Ethernet99", want one such as s0:Ethernet0`},
		{"port2", ring + "faults:\n  - {kind: link-down, port: s0>h4}\n", "port2:7: s0 has no link to h4, want a neighbour"},
		{"port3", ring + "faults:\n  - {kind: link-down, port: s0}\n", "port3:7: s0 has 4 ports, want one of them, such as s0:Ethernet0"},
		{"flap", ring + "faults:\n  - {kind: link-flap, port: h0, down: 1us}\n", "flap:7: link-flap with down 1µs and up 0s, want both above 0"},
		{"silent", ring + "faults:\n  - {kind: silent-drop, share: 1}\n", "silent:7: silent-drop, want either a port or a switch"},
		{"share", ring + "faults:\n  - {kind: silent-drop, port: h0, share: 0}\n", "share:7: silent-drop with share 0, want above 0 and at most 1"},
		{"match", ring + "faults:\n  - {kind: silent-drop, port: h0, match: {dst: h1}}\n", "match:7: match with a port, want a switch"},
		{"match2", ring + "faults:\n  - {kind: silent-drop, switch: s0, match: {dst: h77}}\n", `match2:7: destination "h77", want a node, an address or a prefix`},
		{"proto", ring + "faults:\n  - {kind: silent-drop, switch: s0, match: {proto: smoke}}\n", `proto:7: protocol "smoke", want tcp, udp`},
		{"hole", ring + "faults:\n  - {kind: blackhole, switch: s0}\n", "hole:7: blackhole, want either to (a destination) or match (a pattern)"},
		{"hole2", ring + "faults:\n  - {kind: blackhole, switch: h0, to: h1}\n", "hole2:7: h0 is a host, want a switch"},
		{"loop", ring + "faults:\n  - {kind: loop, to: h0, switches: [s0]}\n", "loop:7: loop of 1 switches, want at least 2"},
		{"reroute", ring + "faults:\n  - {kind: reroute}\n", "reroute:7: reroute has no routes, want at least one"},
		{"reroute2", ring + "faults:\n  - {kind: reroute, routes: [{at: s0}]}\n", "reroute2:7: route 1, want at (a switch) and either to or flow"},
		{"reroute3", ring + "faults:\n  - {kind: reroute, routes: [{at: s0, flow: nonsense}]}\n", `reroute3:7: flow "nonsense", want a form such as`},
		{"reroute4", ring + "faults:\n  - {kind: reroute, routes: [{at: s0, to: h4, via: [h4]}]}\n", "reroute4:7: s0 has no link to h4, want a neighbour"},
		{"table", ring + "faults:\n  - {kind: bad-table, switch: s0, share: 1%, via: s1>s0}\n", "table:7: s1>s0 is not a port of s0, want one that is"},
		{"storm", ring + "faults:\n  - {kind: storm, host: h0, on: 1us}\n", "storm:7: storm with on 1µs and off 0s, want both above 0"},

		{"slow", ring + "faults:\n  - {kind: slow-receiver, host: h0}\n", "slow:7: slow-receiver with rate 0b/s, want above 0"},

		{"clock", ring + "clocks:\n  - {offset: 1us}\n", "clock:7: clock 1 has no nodes, want at least one"},
		{"clock2", ring + "clocks:\n  - {nodes: [s0, s0]}\n", "clock2:7: clock of s0 is set twice, want it once"},
		{"drift", ring + "clocks:\n  - {nodes: s0, drift: 5}\n", `drift:7: drift "5", want parts per million such as 5ppm`},
		{"capture", ring + "output: {pcap: [s0:Ethernet0, s9:e]}\n", `capture:6: there is no node "s9"`},
		{"management", ring + "management: {loss: 3}\n", `management:6: loss "3", want a share`},

		{"expect", ring + "expect:\n  joy: 3\n", `expect:7: expectation of "joy", want one of completion, deadlock, drops`},
		{"expect2", ring + "expect:\n  drops: few\n", `expect2:7: drops "few", want a number such as 0, above 0`},
		{"expect3", ring + "expect:\n  deadlock: 3\n", `expect3:7: deadlock "3", want none, formed, dissolved or persistent`},
		{"expect4", ring + "expect:\n  goodput: above fast\n", `expect4:7: goodput "above fast", want a rate such as 25Gb/s`},
		{"expect5", ring + "expect:\n  completion: 1 to 2\n", `expect5:7: completion "1 to 2", want a duration such as 10us`},
		{"expect6", ring + "expect:\n  finished: 130%\n", `expect6:7: finished "130%", want 0% to 100%`},
		{"expect7", ring + "expect:\n  queue-peak: [1]\n", "expect7:7: queue-peak is a list, want a single value"},
		{"group", ring + "expect:\n  groups:\n    a: {finished: all}\n", `group:8: expectation of group "a", want the name of one of the traffic items`},
		{"group2", ring + "expect:\n  groups:\n    a: {drops: 0}\n", `group2:8: expectation of "drops", want one of completion, finished`},
	} {
		_, err := parse(tc.name, []byte(tc.text), nothing)
		var e *file.Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("parse(%s) = %v\nwant a *file.Error %q…", tc.name, err, tc.want)
			continue
		}
		if e.File != tc.name || e.Line < 1 || !strings.Contains(e.Msg, "want") {
			t.Errorf("parse(%s) = %+v; want its file, a line, and what is wanted", tc.name, e)
		}
	}
}

package scenario

import (
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

func mustParse(t testing.TB, text string) *Scenario {
	t.Helper()
	s, err := parse("test.yaml", []byte(text), nothing)
	if err != nil {
		t.Fatalf("parse = %v; want no error in\n%s", err, text)
	}
	return s
}

func TestDefaults(t *testing.T) {
	s := mustParse(t, "duration: 2ms\ntopology: {generate: {kind: ring}}\n")
	want := sim.DefaultConfig()
	want.Seed = 0 // not read
	if x := cmp.Diff(want, s.Sim); x != "" {
		t.Errorf("settings of an empty section differ from sim.DefaultConfig (-want +got):\n%s", x)
	}
	if s.Name != "test" || s.Seed != 1 || s.Duration != 2*time.Millisecond {
		t.Errorf("name %q, seed %d, duration %v; want test, 1, 2ms", s.Name, s.Seed, s.Duration)
	}
	if x := cmp.Diff(DefaultOutput(), s.Output); x != "" {
		t.Errorf("output differs from the default (-want +got):\n%s", x)
	}
}

func TestFabricSettings(t *testing.T) {
	s := mustParse(t, ring+`fabric:
  mtu: 4096
  overhead: 48
  ack-size: 60
  ttl: 9
  buffer: 32MiB
  accounting: hpcc
  reserve: 1KiB
  headroom: 90KB
  alpha: 0.25
  resume-offset: 2KiB
  xoff: 100KB
  xon: 90KB
  lossy-queue: 1MB
  pfc: off
  lossless: [3, 4]
  pause-time: forever
  ecn: [{rate: 25G, kmin: 10KB, kmax: 40KB, pmax: 20%}]
  ecn-at: arrival
  congestion-control: {hai: 7Mb/s, preset: hpcc, algorithm: dcqcn, clamp-target: on}
  cnp-interval: 0
  pacing: off
  window: fabric
  window-scales: on
  ack-every: 4KB
  ack-unpaused: on
  nack-gap: 1us
  rto: 0
  tcp-rto: 200ms
  ideal: hpcc
  load-balancing: adaptive
  retransmission: selective
  reorder-window: 512
  reorder-time: 7us
  trimming: on
`)
	control := congestion.HPCCSimDCQCN()
	control.HAI, control.ClampTarget = 7*model.Mbps, true
	want := sim.Config{
		MTU: 4096, Overhead: 48, AckSize: 60, TTL: 9,
		Buffer: 32 * model.MiB, HPCC: true, Reserve: model.KiB, Headroom: 90 * model.KB, AlphaShift: 2, ResumeOffset: 2 * model.KiB,
		Xoff: 100 * model.KB, Xon: 90 * model.KB, LossyQueue: model.MB, NoPFC: true, Lossless: 1<<3 | 1<<4,
		ECN: []sim.ECNParams{{Rate: 25 * model.Gbps, Kmin: 10 * model.KB, Kmax: 40 * model.KB, Pmax: 0.2}}, ECNAtEnq: true,
		Congestion: control, Window: true, GlobalWindow: true, VarWindow: true,
		AckPerBytes: 4000, AckControl: true, NackGap: time.Microsecond, HPCCIdeal: true, TCPMinRTO: 200 * time.Millisecond,
		LoadBalancing: sim.Adaptive, Selective: true, ReorderWindow: 512, ReorderTime: 7 * time.Microsecond, Trimming: true,
	}
	if x := cmp.Diff(want, s.Sim); x != "" {
		t.Errorf("settings (-want +got):\n%s", x)
	}
	// NS3 is for HPCC's configuration files.
	if n := reflect.TypeFor[sim.Config]().NumField(); n != 38 {
		t.Errorf("sim.Config has %d fields; want 38: give the new one a key in fabricSpec and a value above", n)
	}
	if s := mustParse(t, ring+"fabric: {ecn: off, congestion-control: none, window: path}\n"); s.Sim.ECN != nil || s.Sim.Congestion != nil || !s.Sim.Window || s.Sim.GlobalWindow {
		t.Errorf("short forms: %+v; want no ECN, no congestion control, windows of paths", s.Sim)
	}
}

func TestTraffic(t *testing.T) {
	class := traffic.Class{Priority: 5, Transport: traffic.UDP, DstPort: 99, V6: true, Rate: 2 * model.Gbps}
	const words = "priority: 5, transport: udp, port: 99, ipv6: on, rate: 2Gb/s"
	us := func(n int) model.Time { return model.Time(n) * 1000 }
	sizes, err := traffic.Sizes("hadoop")
	if err != nil {
		t.Fatal(err)
	}
	job := traffic.DefaultJob()
	for text, want := range map[string]traffic.Generator{
		"kind: poisson, sizes: hadoop, load: 0.5, hosts: [h0, h1], start: 1us, duration: 3us, " + words: traffic.Poisson{
			Class: class, Hosts: []model.NodeID{0, 1}, Sizes: sizes, Load: 0.5, Start: us(1), Duration: 3 * time.Microsecond,
		},
		"kind: poisson":     func() traffic.Poisson { g := traffic.DefaultPoisson(); g.Duration = 0; return g }(),
		"kind: permutation": traffic.DefaultPermutation(),
		"kind: permutation, stop: 5us, hosts: h1..h3": traffic.Permutation{Class: traffic.DefaultClass(), Hosts: []model.NodeID{1, 2, 3}, Stop: us(5)},
		"kind: incast": traffic.DefaultIncast(),
		"kind: incast, receivers: h5, senders: [h0..h2, h4], bytes: 1KB, start: 2us, jitter: 1us, rounds: 3, period: 9us, congestion-control: off": traffic.Incast{
			Class: traffic.Class{Priority: 3, NoCC: true}, Receivers: []model.NodeID{5}, Senders: []model.NodeID{0, 1, 2, 4},
			Bytes: model.KB, Start: us(2), Jitter: time.Microsecond, Rounds: 3, Period: 9 * time.Microsecond,
		},
		"kind: query, fanout: 2, think: 1us": func() traffic.Query {
			g := traffic.DefaultQuery()
			g.Fanout, g.Think, g.Duration = 2, time.Microsecond, 0
			return g
		}(),
		"kind: persistent, pairs: [h0>h1, h2 > h3], stop: 3us": traffic.Persistent{
			Class: traffic.DefaultPersistent().Class, Pairs: []traffic.Pair{{Src: 0, Dst: 1}, {Src: 2, Dst: 3}}, Stop: us(3),
		},
		"kind: shrew, senders: [h0, h1], receiver: h2": func() traffic.Shrew {
			g := traffic.DefaultShrew()
			g.Senders, g.Receiver = []model.NodeID{0, 1}, 2
			return g
		}(),
		"kind: all-reduce":            traffic.RingAllReduce{Job: job},
		"kind: all-to-all, window: 2": traffic.AllToAll{Job: job, Window: 2},
		"kind: flows, list: [{from: h0, to: h1, bytes: 5KB}, {from: h1, to: h2, stop: 9us, start: 1us, source-port: 7, after: 1, delay: 1us, priority: 0}]": traffic.List{
			{Src: 0, Dst: 1, Bytes: 5 * model.KB, Priority: 3},
			{Src: 1, Dst: 2, Start: us(1), Stop: us(9), SrcPort: 7, After: []int{0}, Delay: time.Microsecond},
		},
	} {
		s := mustParse(t, ring+"traffic:\n  - {"+text+"}\n")
		// Two CDFs of one name are the same figures.
		if x := cmp.Diff(want, s.Traffic[0].Generator, cmp.Comparer(func(a, b *traffic.CDF) bool { return a.Mean() == b.Mean() })); x != "" {
			t.Errorf("%s (-want +got):\n%s", text, x)
		}
	}
	s := mustParse(t, ring+"traffic:\n  - {kind: incast}\n  - {kind: incast, name: b}\n")
	if s.Traffic[0].Name != "incast" || s.Traffic[1].Name != "b" || s.Traffic[1].Position != (Position{File: "test.yaml", Line: 8}) {
		t.Errorf("names and positions %+v; want incast, and b on line 8", s.Traffic)
	}
}

func TestFaults(t *testing.T) {
	all := func(ip string) netip.Prefix { return netip.MustParsePrefix(ip) }
	for text, want := range map[string]sim.Fault{
		"kind: link-down, port: s0>s1":                                         sim.LinkDown{Port: model.Port{Node: 6, Port: 3}},
		"kind: link-down, port: h0":                                            sim.LinkDown{Port: model.Port{Node: 0, Port: 1}},
		"kind: link-flap, port: s0:Ethernet8, down: 2us, up: 1us":              sim.LinkDown{Port: model.Port{Node: 6, Port: 3}, Down: 2 * time.Microsecond, Up: time.Microsecond},
		"kind: silent-drop, port: s0>s1, share: 1%":                            sim.Lossy{Port: model.Port{Node: 6, Port: 3}, Share: 0.01},
		"kind: corruption, port: s0>s1, share: 1%":                             sim.Lossy{Port: model.Port{Node: 6, Port: 3}, Share: 0.01, Damaged: true},
		"kind: silent-drop, switch: s1":                                        sim.LossySwitch{Switch: 7, Share: 1},
		"kind: bad-table, switch: s1, share: 0.5, seed: 4, via: s1>h2":         sim.CorruptTable{Switch: 7, Share: 0.5, Via: 1, Seed: 4},
		"kind: storm, host: h3":                                                sim.Storm{Host: 3, Priority: 3},
		"kind: storm, host: h3, priority: 4, on: 2us, off: 1us":                sim.Storm{Host: 3, Priority: 4, On: 2 * time.Microsecond, Off: time.Microsecond},
		"kind: slow-receiver, host: h3, rate: 5Gb/s, buffer: 64KiB":            sim.SlowReceiver{Host: 3, Rate: 5 * model.Gbps, Buffer: 64 * model.KiB, Priority: 3},
		"kind: slow-link, port: s0>s1, rate: 5Gb/s, delay: 2us":                sim.SlowLink{Port: model.Port{Node: 6, Port: 3}, Rate: 5 * model.Gbps, Delay: 2 * time.Microsecond},
		"kind: slow-nic, host: h3, rate: 5Gb/s":                                sim.SlowNIC{Host: 3, Rate: 5 * model.Gbps},
		"kind: hash-polarization":                                              sim.HashPolarization{},
		"kind: wrong-counter, port: s0>s1, factor: 0.99":                       sim.Miscount{Port: model.Port{Node: 6, Port: 3}, Counter: sim.TxPackets, Factor: 0.99},
		"kind: blackhole, switch: s1, to: 10.0.0.0/16":                         sim.Reroute{Entries: []sim.Entry{{Switch: 7, To: all("10.0.0.0/16")}}},
		"kind: loop, to: 10.0.1.2, switches: [s0, s1]":                         sim.Reroute{Entries: []sim.Entry{{Switch: 6, To: all("10.0.1.2/32"), Via: []model.NodeID{7}}, {Switch: 7, To: all("10.0.1.2/32"), Via: []model.NodeID{6}}}},
		"kind: reroute, routes: [{at: s1, to: h0, via: s2}]":                   sim.Reroute{Entries: []sim.Entry{{Switch: 7, To: all("10.0.0.2/32"), Via: []model.NodeID{8}}, {Switch: 7, To: all("fd00::a00:2/128"), Via: []model.NodeID{8}}}},
		"kind: reroute, routes: [{at: s1, flow: 'udp 1.1.1.1:1 > 2.2.2.2:2'}]": sim.Reroute{Entries: []sim.Entry{{Switch: 7, Flow: model.NewFlowKey(netip.MustParseAddrPort("1.1.1.1:1"), netip.MustParseAddrPort("2.2.2.2:2"), model.UDP)}}},
	} {
		s := mustParse(t, ring+"faults:\n  - {at: 5us, for: 7us, "+text+"}\n")
		in := sim.Injection{At: 5000, For: 7 * time.Microsecond, Fault: want}
		if x := cmp.Diff(in, s.Faults[0].Injection, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); x != "" {
			t.Errorf("%s (-want +got):\n%s", text, x)
		}
	}
}

func TestPatternsPickFlows(t *testing.T) {
	s := mustParse(t, ring+"faults:\n  - {kind: silent-drop, switch: s0, match: {src: h0, dst: 10.0.1.0/24, dst-port: 4791, proto: udp}}\n")
	match := s.Faults[0].Fault.(sim.LossySwitch).Match
	for text, want := range map[string]bool{
		"udp 10.0.0.2:9 > 10.0.1.2:4791": true,
		"udp 10.0.0.2:9 > 10.0.1.3:4791": true,
		"udp 10.0.0.3:9 > 10.0.1.2:4791": false,
		"udp 10.0.0.2:9 > 10.0.2.2:4791": false,
		"udp 10.0.0.2:9 > 10.0.1.2:80":   false,
		"tcp 10.0.0.2:9 > 10.0.1.2:4791": false,
	} {
		key, err := model.ParseFlowKey(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := match(key); got != want {
			t.Errorf("match(%s) = %v; want %v", text, got, want)
		}
	}
}

// Routing learns of a link's end as late as of its failure, and of two links
// that are down at once it knows both.
func TestReconverge(t *testing.T) {
	s := mustParse(t, ring+`faults:
  - {kind: link-down, port: s0>s1, at: 10us, for: 20us, reconverge: 5us}
  - {kind: link-down, port: s1>s2, at: 20us, reconverge: 5us}
  - {kind: link-down, port: s2>s0, at: 20us}
`)
	first, second := s.Topology.Fabric.Port(model.Port{Node: 6, Port: 3}).Link, 0
	for i, l := range s.Topology.Fabric.Links() {
		if l.A.Node == 7 && l.B.Node == 8 {
			second = i
		}
	}
	want := []RouteChange{
		{At: 15_000, Down: []int{first}},
		{At: 25_000, Down: []int{first, second}},
		{At: 35_000, Down: []int{second}},
	}
	if x := cmp.Diff(want, s.Changes, cmp.Comparer(func(a, b *topo.Routes) bool { return a == b })); x != "" {
		t.Errorf("changes (-want +got):\n%s", x)
	}
}

// The topology is read inline, in whatever style the file is written.
func TestTopologyKeepsItsPlace(t *testing.T) {
	block := "duration: 1ms\ntopology:\n  # a comment\n  seed: 5\n  nodes:\n    - {name: h0, role: host}\n    - {name: s0, role: switch}\n  links:\n    - {ends: [h0, s0]}\nname: x\n"
	for name, text := range map[string]string{
		"block":   block,
		"first":   "topology:\n  seed: 5\n  nodes:\n    - {name: h0, role: host}\n    - {name: s0, role: switch}\n  links:\n    - {ends: [h0, s0]}\nduration: 1ms\n",
		"flow":    "about: ä\ntopology: {seed: 5, nodes: [{name: h0, role: host},\n  {name: s0, role: switch}], links: [{ends: [h0, s0]}]} # ö\nduration: 1ms\n",
		"json":    `{"about": "ä ö", "topology": {"seed": 5, "nodes": [{"name": "h0", "role": "host"}, {"name": "s0", "role": "switch"}], "links": [{"ends": ["h0", "s0"]}]}, "duration": "1ms"}`,
		"windows": strings.ReplaceAll(block, "\n", "\r\n"),
	} {
		s, err := parse(name, []byte(text), nothing)
		if err != nil {
			t.Errorf("%s: parse = %v; want no error", name, err)
			continue
		}
		if f := s.Topology.Fabric; s.Topology.Seed != 5 || len(f.Nodes()) != 2 || len(f.Links()) != 1 {
			t.Errorf("%s: seed %d, %d nodes, %d links; want 5, 2 and 1", name, s.Topology.Seed, len(f.Nodes()), len(f.Links()))
		}
	}
}

func TestFilesBesideTheScenario(t *testing.T) {
	files := map[string]string{
		"dir/fabric.yaml": "generate: {kind: ring}\n",
		"dir/sizes.txt":   "0 0\n100 100\n",
		"dir/flow.txt":    "1\n0 1 3 100 5000 0.001\n",
	}
	s, err := parse("dir/s.yaml", []byte("duration: 1ms\ntopology: {file: fabric.yaml}\ntraffic:\n  - {kind: poisson, sizes: sizes.txt}\n  - {kind: flow-file, file: flow.txt}\n"),
		func(path string) ([]byte, error) {
			text, ok := files[path]
			if !ok {
				return nil, os.ErrNotExist
			}
			return []byte(text), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if p := s.Traffic[0].Generator.(traffic.Poisson); p.Sizes.Mean() != 50 {
		t.Errorf("mean size %v; want 50", p.Sizes.Mean())
	}
	if l := s.Traffic[1].Generator.(traffic.List); len(l) != 1 || l[0].Start != 1_000_000 {
		t.Errorf("flows %+v; want one at 1 ms", l)
	}
}

// The reference has a full example that holds what it expects, and every key.
func TestReference(t *testing.T) {
	page, err := os.ReadFile("../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	s, err := parse("example", []byte(example), nothing)
	if err != nil {
		t.Fatalf("the example of docs/scenarios.md: %v", err)
	}
	if len(s.Traffic) != 3 || len(s.Faults) != 2 || len(s.Clocks) != 3 || len(s.Expect) != 6 || len(s.Output.Capture) != 1 {
		t.Errorf("the example has %d items of traffic, %d faults, %d clocks, %d expectations, %d captures; want 3, 2, 3, 6 and 1",
			len(s.Traffic), len(s.Faults), len(s.Clocks), len(s.Expect), len(s.Output.Capture))
	}
	if r := runScenario(t, s); r.Verdict != Pass {
		t.Errorf("the example comes out %s; want PASS: %+v", r.Verdict, r.Expected)
	}
	written := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z0-9-]+)`").FindAllStringSubmatch(string(page), -1) {
		written[m[1]] = true
	}
	want := append(figureNames(false), keysOf(&schema{}, &ecnCurve{}, &clockSpec{}, &flowSpec{}, &routeSpec{}, &pattern{}, &serviceSpec{}, &migrationSpec{}, &lateSpec{})...)
	for _, a := range congestion.Algorithms() {
		want = append(want, a.Name)
		if p := a.Default(); p != nil {
			want = append(want, keysOf(p)...)
		}
	}
	for kind, spec := range trafficKinds {
		want = append(append(want, kind), keysOf(spec())...)
	}
	for kind, spec := range programKinds {
		want = append(append(want, kind), keysOf(spec())...)
	}
	for kind, spec := range faultKinds {
		want = append(append(want, kind), keysOf(spec())...)
	}
	for _, key := range want {
		reason, drop := strings.CutPrefix(key, "drops-")
		short := strings.TrimPrefix(key, "slowdown")
		if !written[key] && !written[short] && !(drop && strings.Contains(string(page), reason)) {
			t.Errorf("docs/scenarios.md does not have `%s`", key)
		}
	}
}

// keysOf lists the keys of schema structs, and of those inside them.
func keysOf(specs ...any) (keys []string) {
	for _, s := range specs {
		fields, order := fieldsOf(reflect.ValueOf(s).Elem())
		for _, key := range order {
			keys = append(keys, key)
			if v := reflect.ValueOf(fields[key]).Elem(); v.Kind() == reflect.Struct {
				if _, own := fields[key].(selfDecoder); !own {
					keys = append(keys, keysOf(fields[key])...)
				}
			}
		}
	}
	return keys
}

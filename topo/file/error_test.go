package file

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/topo"
)

// two is the start of a valid file; errors are from line 5 on.
const two = "nodes:\n  - {name: h0, role: host}\n  - {name: s0, role: switch}\n  - {name: s1, role: switch}\n"

const twoLinks = two + "links:\n  - {ends: [h0, s0]}\n  - {ends: [s0, s1]}\n"

// TestFileErrors: the error of every malformed file has file, line, what is wrong
// and what is wanted.
func TestFileErrors(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"empty.yaml", "", "empty.yaml:1: file is empty, want a topology"},
		{"comment.yaml", "# nothing\n", "comment.yaml:1: file is empty, want a topology"},
		{"list.yaml", "- a\n", "list.yaml:1: the file is a list, want keys and values"},
		{"syntax.yaml", "nodes:\n  - {name: h0\n", "syntax.yaml:2: "},
		{"twice.yaml", "name: a\nname: b\n", "twice.yaml:2: "},
		{"docs.yaml", "name: a\n---\nname: b\n", "docs.yaml:3: second document, want one in a file"},
		{"unknown.yaml", two + "nods:\n  - 3\n", `unknown.yaml:5: unknown key "nods" in the file, want one of name, seed`},
		{"none.yaml", "name: a\n", "none.yaml:1: file has neither nodes nor generate"},
		{"nonodes.yaml", "name: a\nnodes: []\n", "nonodes.yaml:2: fabric has no node, want at least one"},
		{"nodes.yaml", "nodes: 7\n", "nodes.yaml:1: nodes is a single value, want a list"},
		{"name.yaml", "nodes:\n  - role: host\n", "name.yaml:2: a node has no name, want one"},
		{"emptyname.yaml", "nodes:\n  - {role: host, name: }\n", "emptyname.yaml:2: name is empty, want a value"},
		{"noname.yaml", "nodes:\n  - {role: host, name: a, rol: x}\n", `noname.yaml:2: unknown key "rol" in a node`},
		{"badname.yaml", "name: \"\\t\"\n" + two, `badname.yaml:1: fabric name "\t", want`},
		{"role.yaml", "nodes:\n  - name: a\n    role: king\n", `role.yaml:3: role "king", want one of host`},
		{"norole.yaml", "nodes:\n  - name: a\n", "norole.yaml:2: node a has no role, want one"},
		{"pod.yaml", "nodes:\n  - name: a\n    role: host\n    pod: x\n", `pod.yaml:4: pod "x", want a whole number`},
		{"pod2.yaml", "nodes:\n  - name: a\n    role: host\n    pod: 99999999999999999999\n", "pod2.yaml:4: pod"},
		{"pod3.yaml", "nodes:\n  - name: a\n    role: host\n    pod: 999999999999\n", "pod3.yaml:2: node \"a\": pod 131072, want 0 to"},
		{"addr.yaml", "nodes:\n  - name: a\n    role: host\n    ipv4: 10.0.0\n", `addr.yaml:4: ipv4 "10.0.0", want an address`},
		{"addr6.yaml", "nodes:\n  - {name: a, role: host, ipv6: 10.0.0.1}\n", `addr6.yaml:2: node "a": address 10.0.0.1, want an IPv6 address`},
		{"net.yaml", "nodes:\n  - name: a\n    role: host\n    nets:\n      - 10.0.0.0/33\n", `net.yaml:5: net "10.0.0.0/33", want a prefix`},
		{"dup.yaml", two + "  - {name: h0, role: host}\n", `dup.yaml:5: node name "h0" is taken`},
		{"seed.yaml", "seed: -1\n" + two, `seed.yaml:1: seed "-1", want a whole number from 0`},
		{"link.yaml", two + "links:\n  - {ends: [h0, s9]}\n", `link.yaml:6: link names unknown node "s9", want one of the nodes above`},
		{"self.yaml", two + "links:\n  - {ends: [h0, h0]}\n", "self.yaml:6: link h0 - h0 joins a node to itself"},
		{"ends.yaml", two + "links:\n  - {ends: [h0]}\n", "ends.yaml:6: a link has 1 ends, want two"},
		{"noends.yaml", two + "links:\n  - {rate: 1G}\n", "noends.yaml:6: a link has no ends, want two"},
		{"port.yaml", two + "links:\n  - ends:\n      - h0\n      - 's0:'\n", `port.yaml:8: end "s0:", want node or node:port`},
		{"ports.yaml", two + "links:\n  - {ends: [h0, s0:e1]}\n  - {ends: [h0, s0:e1]}\n", "ports.yaml:7: link h0 - s0: port s0:e1 is taken"},
		{"rate.yaml", two + "links:\n  - ends: [h0, s0]\n    rate: fast\n", `rate.yaml:7: rate "fast": not a number, want`},
		{"rate0.yaml", two + "links:\n  - ends: [h0, s0]\n    rate: 0\n", "rate0.yaml:7: rate 0, want above 0"},
		{"delay.yaml", "defaults:\n  delay: -1us\n" + two, `delay.yaml:2: delay "-1us", want a duration`},
		{"error.yaml", "defaults: {error-rate: 1.5}\n" + two, `error.yaml:1: error rate "1.5", want a number from 0 to 1`},
		{"default.yaml", "defaults: {speed: 1}\n" + two, `default.yaml:1: unknown key "speed" in defaults, want one of rate, delay, error-rate`},
		{"route.yaml", twoLinks + "routes:\n  - {at: s9, to: h0, via: [s0]}\n", `route.yaml:9: route at unknown node "s9"`},
		{"routeto.yaml", twoLinks + "routes:\n  - {at: s1, to: h9, via: [s0]}\n", `routeto.yaml:9: route to "h9", want a node, an address or a prefix`},
		{"routehost.yaml", twoLinks + "routes:\n  - {at: h0, to: s1, via: [s0]}\n", "routehost.yaml:9: route at h0, which is a host, want a switch"},
		{"via.yaml", twoLinks + "routes:\n  - {at: s1, to: h0, via: [h0]}\n", "via.yaml:9: next hop h0 is not a neighbour of s1"},
		{"via2.yaml", twoLinks + "routes:\n  - {at: s1, to: h0, via: [s0, s0]}\n", "via2.yaml:9: route at s1 to 10.0.0.1/32 names port 1 twice"},
		{"novia.yaml", twoLinks + "routes:\n  - {at: s1, to: h0}\n", "novia.yaml:9: route needs next hops, want either via (neighbours) or ports"},
		{"emptyvia.yaml", twoLinks + "routes:\n  - {at: s1, to: h0, via: []}\n", "emptyvia.yaml:9: route at s1 to 10.0.0.1/32 has no next hop"},
		{"ownport.yaml", twoLinks + "routes:\n  - {at: s1, to: h0, ports: [Ethernet9]}\n", `ownport.yaml:9: s1 has no port "Ethernet9"`},
		{"routes2.yaml", twoLinks + "routes:\n  - {at: s1, to: h0, via: [s0]}\n  - {at: s1, to: 10.0.0.1, via: [s0]}\n", "routes2.yaml:10: route at s1 to 10.0.0.1/32 is defined twice"},
		{"gen.yaml", "generate:\n  kind: fat-tree\n  k: 5\n", "gen.yaml:3: k 5, want an even number"},
		{"gen2.yaml", "generate:\n  kind: fat-tree\n  pods: 5\n", `gen2.yaml:3: unknown parameter "pods", want one of k`},
		{"gen3.yaml", "generate:\n  kind: tree\n", `gen3.yaml:2: kind "tree", want one of`},
		{"gen4.yaml", "generate: {k: 4}\n", `gen4.yaml:1: kind "", want one of`},
		{"gen5.yaml", "generate: {kind: ring}\n" + two, "gen5.yaml:2: nodes together with generate, want one or the other"},
		{"gen6.yaml", "name: x\ngenerate: {kind: leaf-spine, leaves: 4000, hosts: 253}\n", "gen6.yaml:2: fabric of 1016002 nodes"},
		{"gen7.yaml", "generate: {kind: [a]}\n", "gen7.yaml:1: kind is a list, want a single value"},
		{"alias.yaml", "name: &a x\nnodes: *a\n", "alias.yaml:1: name is an anchor or alias, which is not supported here, want a single value"},
		{"deep.yaml", "a: " + strings.Repeat("[", 100), "deep.yaml:1: more than 32 nested brackets"},
		{"wide.yaml", strings.Repeat("- ", 200) + "a", "wide.yaml:1: item at column 201"},
		{"bad.json", `{"nodes": [{"name": "a"`, "bad.json:1: "},

		{"a.txt", "5 2\n", "a.txt:1: file ends here, want number of links"},
		{"b.txt", "1000000000 1 1\n", `b.txt:1: number of nodes "1000000000", want a number from 0 to 65536`},
		{"c.txt", "3 9 1\n", `c.txt:1: number of switches "9", want a number from 0 to 3`},
		{"d.txt", "3 1 1000000000\n", `d.txt:1: number of links "1000000000", want a number from 0 to 1048576`},
		{"e.txt", "3 2 1\n2 2\n", "e.txt:2: switch 2 is listed twice"},
		{"f.txt", "3 1 2\n2\n0 2 1Gbps 1us 0\n", "f.txt:3: file ends here, want link 2 of 2: node"},
		{"g.txt", "3 1 1\n2\n0 3 1Gbps 1us 0\n", `g.txt:3: link 1 of 1: node "3", want a number from 0 to 2`},
		{"h.txt", "3 1 1\n2\n\n2 2 1Gbps 1us 0\n", "h.txt:4: link s2 - s2 joins a node to itself"},
		{"i.txt", "3 1 1\n2\n0 2 1GBps 1us 0\n", `i.txt:3: link 1 of 1: rate "1GBps" counts bytes, want bits`},
		{"j.txt", "3 1 1\n2\n0 2 quick 1us 0\n", `j.txt:3: link 1 of 1: rate "quick": not a number`},
		{"k.txt", "3 1 1\n2\n0 2 1Gbps 1 0\n", `k.txt:3: link 1 of 1: delay "1", want a duration`},
		{"l.txt", "3 1 1\n2\n0 2 1Gbps 1us 7\n", `l.txt:3: link 1 of 1: error rate "7", want a number from 0 to 1`},
		{"m.txt", "0 0 0\n", "m.txt:1: fabric has no node, want at least one"},
		{"n.txt", "3 1 1\n2\n0 2 -1Gbps 1us 0\n", "n.txt:3: link h0 - s2: rate -1Gb/s, want above 0"},

		{"a.clab.yml", "name: x\n", "a.clab.yml:1: file has no topology, want a containerlab lab"},
		{"b.clab.yml", "topology:\n  links: []\n", "b.clab.yml:2: topology has no nodes, want at least one"},
		{"c.clab.yml", "topology:\n  nodes:\n    a:\n", "c.clab.yml:3: node a has no kind, want one"},
		{"d.clab.yml", "topology:\n  nodes:\n    a: {kind: linux}\n  links:\n    - endpoints: [\"a:eth1\", \"b:eth1\"]\n", `d.clab.yml:5: link names unknown node "b"`},
		{"e.clab.yml", "topology:\n  nodes:\n    a: {kind: linux}\n  links:\n    - endpoints: [\"a\", \"b:eth1\"]\n", `e.clab.yml:5: endpoint "a", want node:interface`},
		{"f.clab.yml", "topology:\n  nodes:\n    a: {kind: linux, labels: {weft.role: x}}\n", `f.clab.yml:3: label weft.role: role "x", want one of`},
		{"g.clab.yml", "topology:\n  nodes:\n    a: {kind: linux, labels: {weft.pod: x}}\n", `g.clab.yml:3: label weft.pod "x", want a whole number`},
		{"h.clab.yml", "topology:\n  nodes:\n    a: {kind: linux}\n  links:\n    - x: y\n", "h.clab.yml:5: a link has no endpoints, want two"},
		{"i.clab.yml", "topology:\n  nodes:\n    'a b': {kind: linux}\n", `i.clab.yml:3: node name "a b", want`},
		{"j.clab.yml", "topology: &t\n  nodes:\n    a: &a\n      <<: *a\n", "j.clab.yml:4: node a merges more than 8 times"},
	} {
		_, err := Parse(tc.name, []byte(tc.text))
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("Parse(%s) = %v\nwant an *Error %q…", tc.name, err, tc.want)
			continue
		}
		if e.File != tc.name || e.Line < 1 || !strings.Contains(e.Msg, "want") {
			t.Errorf("Parse(%s) = %+v; want its file, a line, and what is wanted", tc.name, e)
		}
	}
}

func TestHPCCRouteErrors(t *testing.T) {
	f, err := topo.Dumbbell(1, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"2 0\n":          "r.txt:1: 2 words, want switch, destination and next hop",
		"\n# x\n2 0 9\n": `r.txt:3: node "9", want a node id from 0 to 3`,
		"0 1 2\n":        "r.txt:1: route at h0, which is a host, want a switch",
		"2 1 1\n":        "r.txt:1: next hop 1 is not a neighbour of 2",
		"2 1 3\n2 1 3\n": "r.txt:2: next hop 3 at 2 to 1 is listed twice",
	} {
		_, err := ParseHPCCRoutes("r.txt", []byte(text), f)
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("ParseHPCCRoutes(%q) = %v; want %q", text, err, want)
		}
	}
}

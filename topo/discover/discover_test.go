package discover

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

var cfg = Config{Name: "found", Link: topo.LinkSpec{Rate: 100 * model.Gbps, Delay: time.Microsecond}}

func port(name string, rate model.Rate, peer string, forwards bool, names ...string) Port {
	return Port{Name: name, Rate: rate, Neighbors: []Neighbor{{Node: peer, Ports: names, Forwards: forwards}}}
}

// describe returns the links of a fabric as text, with their rates.
func describe(f *topo.Fabric) (list []string) {
	for _, l := range f.Links() {
		name := func(p model.Port) string { return f.Node(p.Node).Name + " " + f.Port(p).Name }
		list = append(list, name(l.A)+" - "+name(l.B)+" "+model.FormatRate(f.Port(l.A).Rate))
	}
	slices.Sort(list)
	return list
}

func TestBuild(t *testing.T) {
	const g100, g25 = 100 * model.Gbps, 25 * model.Gbps
	for name, tc := range map[string]struct {
		nodes    []Node
		links    []string
		findings []string
	}{
		"both ends, and a host that was not asked": {
			nodes: []Node{
				{Name: "tor0", Switch: true, Ports: []Port{port("Ethernet0", g100, "spine0", true, "Ethernet4"), port("Ethernet8", g25, "h0", false, "eth0")}},
				{Name: "spine0", Switch: true, Ports: []Port{port("Ethernet4", g100, "tor0", true, "Ethernet0")}},
			},
			links: []string{"spine0 Ethernet4 - tor0 Ethernet0 100 Gb/s", "h0 eth0 - tor0 Ethernet8 25 Gb/s"},
		},
		"ports by alias, and by who has whom": {
			nodes: []Node{
				{Name: "tor0", Switch: true, Ports: []Port{port("Ethernet0", 0, "spine0", true, "etp2"), port("Ethernet4", 0, "spine1", true, "02:00:00:00:00:01")}},
				{Name: "spine0", Switch: true, Ports: []Port{{Name: "Ethernet4", Alias: "etp2", Neighbors: []Neighbor{{Node: "tor0", Ports: []string{"Ethernet0"}}}}}},
				{Name: "spine1", Switch: true, Ports: []Port{port("Ethernet12", 0, "tor0", true, "Ethernet4")}},
			},
			links: []string{"spine0 Ethernet4 - tor0 Ethernet0 100 Gb/s", "spine1 Ethernet12 - tor0 Ethernet4 100 Gb/s"},
		},
		"one end alone, and different rates": {
			nodes: []Node{
				{Name: "tor0", Switch: true, Ports: []Port{port("Ethernet0", g100, "spine0", true, "Ethernet4"), port("Ethernet4", g25, "spine0", true, "Ethernet8")}},
				{Name: "spine0", Switch: true, Ports: []Port{{Name: "Ethernet4", Rate: g100}, port("Ethernet8", g100, "tor0", true, "Ethernet4")}},
			},
			links: []string{"spine0 Ethernet4 - tor0 Ethernet0 100 Gb/s", "spine0 Ethernet8 - tor0 Ethernet4 25 Gb/s"},
			findings: []string{
				"spine0 Ethernet8 has 100 Gb/s, tor0 Ethernet4 has 25 Gb/s: the ends of a link must agree",
				"tor0 Ethernet0 has the neighbour spine0 Ethernet4, which does not report it",
			},
		},
		"a contradiction, an unknown port, a shared segment": {
			nodes: []Node{
				{Name: "tor0", Switch: true, Ports: []Port{
					port("Ethernet0", 0, "spine0", true, "Ethernet4"), port("Ethernet4", 0, "spine0", true, "Ethernet99"),
					{Name: "Ethernet8", Neighbors: []Neighbor{{Node: "h0", Ports: []string{"eth0"}}, {Node: "h1", Ports: []string{"eth0"}}}},
				}},
				{Name: "tor1", Switch: true, Ports: []Port{port("Ethernet0", 0, "spine0", true, "Ethernet4")}},
				{Name: "spine0", Switch: true, Ports: []Port{port("Ethernet4", 0, "tor1", true, "Ethernet0")}},
			},
			links: []string{"spine0 Ethernet4 - tor1 Ethernet0 100 Gb/s"},
			findings: []string{
				"tor0 Ethernet0 says that it is linked to spine0 Ethernet4, but spine0 Ethernet4 is linked to tor1 Ethernet0",
				"tor0 Ethernet4 has the neighbour spine0 Ethernet99, which does not have that port",
				"tor0 Ethernet8 has 2 neighbours, want one: a bridge that passes LLDP on?",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the order of nodes does not matter
				f, findings, err := Build(cfg, tc.nodes)
				if err != nil {
					t.Fatal(err)
				}
				slices.Sort(tc.links)
				if d := cmp.Diff(tc.links, describe(f)); d != "" {
					t.Errorf("links (- want, + got):\n%s", d)
				}
				if d := cmp.Diff(tc.findings, findings); d != "" {
					t.Errorf("findings (- want, + got):\n%s", d)
				}
				slices.Reverse(tc.nodes)
			}
		})
	}
}

// What was discovered can be written and read again: names, roles and rates are the same.
func TestFileRoundTrip(t *testing.T) {
	f, _, err := Build(cfg, []Node{{Name: "tor0", Switch: true, Ports: []Port{port("Ethernet0", 25*model.Gbps, "h10", false, "eth0"), port("Ethernet4", 0, "h2", false, "eth0")}}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := file.Write(&out, file.YAML, &file.Document{Fabric: f}); err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/found.yaml"
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	doc, err := file.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(describe(f), describe(doc.Fabric)); d != "" {
		t.Errorf("links (- discovered, + read):\n%s", d)
	}
	names := ""
	for _, n := range doc.Fabric.Nodes() {
		names += n.Name + ":" + n.Role.String() + " "
	}
	if names != "h2:host h10:host tor0:switch " {
		t.Errorf("nodes %s; want hosts h2 and h10, and the switch tor0", names)
	}
}

func TestParseLLDPDErrors(t *testing.T) {
	for text, want := range map[string]string{
		``: "unexpected end", `{}`: "no object lldp", `{"lldp":[{"interface":[{"name":"e0"}]}]}`: "neighbour 1 has no interface, chassis or port",
		`{"lldp":{"interface":[]}}`: "want the output of lldpcli -f json0",
	} {
		if _, err := ParseLLDPD("tor0", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error with %q", text, err, want)
		}
	}
}

// FuzzParseLLDPD: nothing panics, and what parses can be built or is refused with an error.
func FuzzParseLLDPD(f *testing.F) {
	f.Add([]byte(`{"lldp":[{"interface":[{"name":"e0","chassis":[{"name":[{"value":"spine0"}],"mgmt-ip":[{"value":"10.0.0.1"}],"capability":[{"type":"Router","enabled":true}]}],"port":[{"id":[{"type":"ifname","value":"e4"}],"descr":[{"value":"to tor0"}]}]}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := ParseLLDPD("tor0", b)
		if err != nil {
			return
		}
		if fabric, _, err := Build(cfg, []Node{n}); (fabric == nil) == (err == nil) {
			t.Fatalf("fabric %v, error %v", fabric, err)
		}
	})
}

package file

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

var update = flag.Bool("update", false, "rewrite golden files")

func read(t testing.TB, name string) *Document {
	t.Helper()
	d, err := Read(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func write(t testing.TB, format Format, d *Document) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, format, d); err != nil {
		t.Fatalf("Write(%s, %s) = %v; want no error", format, d.Fabric.Name(), err)
	}
	return b.Bytes()
}

// diff compares all content of two documents.
func diff(a, b *Document) string {
	opts := cmp.Options{cmpopts.EquateComparable(netip.Prefix{}), cmpopts.EquateEmpty()}
	return cmp.Diff(a.Fabric.Name(), b.Fabric.Name()) +
		cmp.Diff(a.Fabric.Nodes(), b.Fabric.Nodes(), opts) +
		cmp.Diff(a.Fabric.Links(), b.Fabric.Links(), opts) +
		cmp.Diff(a.Seed, b.Seed) + cmp.Diff(a.Overrides, b.Overrides, opts) + cmp.Diff(a.Generate, b.Generate, opts)
}

// shape is the part of a document that HPCC files hold.
func shape(d *Document) (out []topo.Link, isSwitch []bool) {
	for i := range d.Fabric.Nodes() {
		isSwitch = append(isSwitch, d.Fabric.Nodes()[i].Role.IsSwitch())
	}
	return d.Fabric.Links(), isSwitch
}

// documents are one small fabric of each kind, listed and as a generator's
// parameters, and the example that uses every key.
func documents(t testing.TB) map[string]*Document {
	t.Helper()
	out := map[string]*Document{"every key": read(t, "fabric.yaml"), "lab": read(t, "lab.clab.yml"), "hpcc": read(t, "hpcc.txt")}
	for _, k := range topo.Kinds() {
		spec := topo.Spec{Kind: k.Name, Params: map[string]string{"host-rate": "25Gb/s", "error-rate": "0.001"}}
		f, err := topo.Generate(spec)
		if err != nil {
			t.Fatal(err)
		}
		sw := f.Switches()[0]
		d := Document{Fabric: f, Seed: 7, Overrides: f.RouteTo(sw, f.Hosts()[0], 1, 2)}
		out[k.Name] = &d
		asked := d
		asked.Generate = &spec
		out[k.Name+", generated"] = &asked
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	for name, d := range documents(t) {
		for _, format := range []Format{YAML, JSON} {
			text := write(t, format, d)
			got, err := Parse("x."+string(format), text)
			if err != nil {
				t.Errorf("%s: Parse(Write(%s)) = %v; want no error in\n%s", name, format, err, text)
				continue
			}
			if x := diff(d, got); x != "" {
				t.Errorf("%s: Parse(Write(%s)) differs (-want +got):\n%s", name, format, x)
			}
			if again := write(t, format, got); !bytes.Equal(text, again) {
				t.Errorf("%s: Write(Parse(Write(%s))) =\n%s\nwant\n%s", name, format, again, text)
			}
		}
		got, err := Parse("x.txt", write(t, HPCC, d))
		if err != nil {
			t.Errorf("%s: Parse(Write(hpcc)) = %v; want no error", name, err)
			continue
		}
		wantLinks, wantSwitch := shape(d)
		gotLinks, gotSwitch := shape(got)
		if x := cmp.Diff(wantLinks, gotLinks) + cmp.Diff(wantSwitch, gotSwitch); x != "" {
			t.Errorf("%s: Parse(Write(hpcc)) differs (-want +got):\n%s", name, x)
		}
	}
}

// TestEveryKey reads the example of the documentation.
func TestEveryKey(t *testing.T) {
	d := read(t, "fabric.yaml")
	f := d.Fabric
	h1, _ := f.ByName("h1")
	spine0, _ := f.ByName("spine0")
	n := f.Node(h1)
	if n.Pod != 1 || n.Role != topo.Host || n.IPv6.String() != "2001:db8::1:2" || len(n.Ports) != 2 || n.Ports[0].Rate != 25*model.Gbps {
		t.Errorf("h1 = %+v; want pod 1, a host, its own IPv6 address, two ports of 25Gb/s", n)
	}
	if got := f.Node(spine0).Ports[1].Name; got != "Ethernet100" {
		t.Errorf("second port of spine0 = %s; want Ethernet100", got)
	}
	vip := model.AddrOf(netip.MustParseAddr("192.0.2.10"))
	if got := f.Owners(vip); len(got) != 2 {
		t.Errorf("owners of 192.0.2.10 = %v; want mux0 and mux1", got)
	}
	if d.Seed != 42 || len(d.Overrides) != 4 {
		t.Errorf("seed %d and %d routes; want 42 and 4", d.Seed, len(d.Overrides))
	}
	r, err := d.Routes()
	if err != nil {
		t.Fatal(err)
	}
	border, _ := f.ByName("border0")
	if got := r.ExpectedLastHops(model.AddrOf(netip.MustParseAddr("203.0.113.1"))); !slices.Equal(got, []model.NodeID{border}) {
		t.Errorf("expected last hops of an outside address = %v; want border0 (%d)", got, border)
	}
	tor0, _ := f.ByName("tor0")
	spine1, _ := f.ByName("spine1")
	if got := r.NextHops(tor0, n.IPv4); !slices.Equal(got, f.Node(tor0).PortsTo(spine1)) {
		t.Errorf("next hops of tor0 to h1 = %v; want the port to spine1, as its static route says", got)
	}
}

func TestGenerate(t *testing.T) {
	d, err := Parse("x.yaml", []byte("name: pod lab\ngenerate: {kind: fat-tree, k: 4, host-rate: 25Gb/s}\nroutes:\n  - {at: tor0, to: h15, via: [leaf1]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d.Fabric.Name() != "pod lab" || len(d.Fabric.Hosts()) != 16 || d.Fabric.Links()[0].Rate != 25*model.Gbps || len(d.Overrides) != 2 {
		t.Errorf("fabric %q with %d hosts, host links of %v, %d routes; want pod lab, 16, 25Gb/s, 2 (IPv4 and IPv6)",
			d.Fabric.Name(), len(d.Fabric.Hosts()), d.Fabric.Links()[0].Rate, len(d.Overrides))
	}
	d.Generate = nil
	if text := string(write(t, YAML, d)); !strings.Contains(text, "{ends: [h0, tor0], rate: 25Gb/s}") {
		t.Errorf("Write with Generate nil = \n%s\nwant nodes and links written out", text)
	}
}

func TestHPCC(t *testing.T) {
	d := read(t, "hpcc.txt")
	f := d.Fabric
	if len(f.Hosts()) != 4 || len(f.Switches()) != 3 || len(f.Links()) != 7 {
		t.Fatalf("%d hosts, %d switches, %d links; want 4, 3, 7", len(f.Hosts()), len(f.Switches()), len(f.Links()))
	}
	h3, s6 := f.Node(3), f.Node(6)
	if h3.Name != "h3" || h3.IPv4.String() != "11.0.3.1" || h3.IPv6.String() != "fd00::b00:301" || s6.Name != "s6" {
		t.Errorf("node 3 = %s %v %v, node 6 = %s; want h3 11.0.3.1 fd00::b00:301, s6", h3.Name, h3.IPv4, h3.IPv6, s6.Name)
	}
	if l := f.Links()[3]; l.Rate != 25*model.Gbps || l.Delay != 1000 || l.ErrorRate != 0.001 {
		t.Errorf("link 3 = %+v; want 25Gb/s, 1µs, 0.001", l)
	}
	// Ports count the link lines of a node: 4 6 is the third of node 4.
	if p := f.Node(4).Port(3).Peer; p != (model.Port{Node: 6, Port: 1}) {
		t.Errorf("port 3 of node 4 leads to %v; want 6:1", p)
	}
	if f.Node(4).Tier != 1 || s6.Tier != 2 {
		t.Errorf("tiers of s4 and s6 = %d, %d; want 1, 2", f.Node(4).Tier, s6.Tier)
	}
	routes, err := ReadHPCCRoutes("testdata/routes.txt", f)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Concat(f.RouteTo(4, 2, 3, 4), f.RouteTo(6, 2, 1, 2, 3))
	if x := cmp.Diff(want, routes, cmpopts.EquateComparable(netip.Prefix{})); x != "" {
		t.Errorf("ReadHPCCRoutes differs (-want +got):\n%s", x)
	}
	d.Overrides = routes
	var b bytes.Buffer
	if err := WriteHPCCRoutes(&b, d); err != nil || b.String() != "4 2 6\n6 2 4\n6 2 5\n" {
		t.Errorf("WriteHPCCRoutes = %q, %v; want 4 2 6, 6 2 4, 6 2 5", b.String(), err)
	}
	d.Overrides = routes[:1]
	if err := WriteHPCCRoutes(&b, d); err == nil {
		t.Error("WriteHPCCRoutes of a route to one address = nil; want an error")
	}
	d.Overrides = f.RouteTo(4, 2, 3)
	if err := WriteHPCCRoutes(&b, d); err == nil {
		t.Error("WriteHPCCRoutes of a route by one of two parallel links = nil; want an error")
	}
}

func TestContainerlab(t *testing.T) {
	d := read(t, "lab.clab.yml")
	var got []string
	for i := range d.Fabric.Nodes() {
		n := &d.Fabric.Nodes()[i]
		got = append(got, n.Name+" "+n.Role.String())
		for _, p := range n.Ports {
			got = append(got, "  "+p.Name+" "+d.Fabric.PortRef(p.Peer))
		}
	}
	want := []string{
		"spine1 spine", "  eth1 leaf1:eth49", "  eth2 leaf2:eth49",
		"leaf1 tor", "  eth49 spine1:eth1", "  Ethernet0 client1:eth1",
		"leaf2 tor", "  eth49 spine1:eth2", "  Ethernet0 client2:eth1", "  Ethernet4 vip:eth1",
		"client1 host", "  eth1 leaf1:Ethernet0",
		"client2 host", "  eth1 leaf2:Ethernet0",
		"vip mux", "  eth1 leaf2:Ethernet4",
	}
	if x := cmp.Diff(want, got); x != "" {
		t.Errorf("lab differs (-want +got):\n%s", x)
	}
	if leaf1, _ := d.Fabric.ByName("leaf1"); d.Fabric.Node(leaf1).Pod != 0 || d.Fabric.Name() != "lab" {
		t.Errorf("pod of leaf1 is %d, lab is %q; want 0, lab", d.Fabric.Node(leaf1).Pod, d.Fabric.Name())
	}
}

func TestDot(t *testing.T) {
	f, err := topo.Clos(topo.DefaultClos(), topo.Links{
		Host:   topo.LinkSpec{Rate: 25 * model.Gbps, Delay: 600},
		Fabric: topo.LinkSpec{Rate: 100 * model.Gbps, Delay: 1000, ErrorRate: 0.001},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := write(t, Dot, &Document{Fabric: f})
	const golden = "testdata/clos.dot"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if x := cmp.Diff(string(want), string(got)); x != "" {
		t.Errorf("dot differs from %s (-want +got); -update rewrites it:\n%s", golden, x)
	}
}

func TestDetect(t *testing.T) {
	hpcc, lab, own := "\n2 1 1\n1\n", "name: x\ntopology:\n  nodes: {}\n", "name: x\n"
	for _, tc := range []struct {
		name, text string
		want       Format
	}{
		{"a.yaml", own, YAML},
		{"a.yml", lab, Containerlab},
		{"a.clab.yml", "", Containerlab},
		{"a.clab.yaml", own, Containerlab},
		{"a.json", `{"name": "x"}`, JSON},
		{"a.txt", hpcc, HPCC},
		{"a.txt", own, HPCC},
		{"a.topo", hpcc, HPCC},
		{"a", own, YAML},
		{"a", "\n3 2 1 0 2 H100\n2\n", SimAI},
		{"a.txt", "3 2 1 0 2 H100\n2\n", SimAI},
		{"a", "3 2 1 0 2 100\n2\n", YAML},
		{"a", lab, Containerlab},
		{"topology", "1 2\n", YAML},
	} {
		if got := detect(tc.name, []byte(tc.text)); got != tc.want {
			t.Errorf("detect(%s, %q) = %s; want %s", tc.name, tc.text, got, tc.want)
		}
	}
	for name, want := range map[string]Format{"a.yaml": YAML, "A.JSON": JSON, "b.dot": Dot, "b.gv": Dot, "c.txt": HPCC, "d.clab.yml": Containerlab, "e": ""} {
		if got, _ := FormatByName(name); got != want {
			t.Errorf("FormatOf(%s) = %q; want %q", name, got, want)
		}
	}
}

func TestReadMissing(t *testing.T) {
	_, err := Read("testdata/none.yaml")
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), "none.yaml") != 1 {
		t.Errorf("Read(missing) = %v; want an *Error of fs.ErrNotExist that names the file once", err)
	}
	if err := Write(&bytes.Buffer{}, Containerlab, read(t, "hpcc.txt")); err == nil {
		t.Error("Write(containerlab) = nil; want an error")
	}
	if _, err := Parse("x.dot", []byte("graph {}")); err == nil {
		t.Error("Parse(dot) = nil; want an error")
	}
}

func BenchmarkParse(b *testing.B) {
	f, err := topo.FatTree(16, topo.DefaultLinks())
	if err != nil {
		b.Fatal(err)
	}
	for _, format := range []Format{YAML, JSON, HPCC} {
		text := write(b, format, &Document{Fabric: f})
		b.Run(string(format), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := ParseAs(format, "x", text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestDocumentationExamples reads every YAML example of docs/topology.md.
func TestDocumentationExamples(t *testing.T) {
	text, err := os.ReadFile("../../docs/topology.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := strings.Split(string(text), "```yaml\n")[1:]
	if len(examples) != 2 {
		t.Errorf("docs/topology.md has %d YAML examples; want 2", len(examples))
	}
	for _, e := range examples {
		e, _, _ = strings.Cut(e, "```")
		d, err := Parse("topology.md.yaml", []byte(e))
		if err != nil {
			t.Errorf("%v; want no error in\n%s", err, e)
			continue
		}
		r, err := d.Routes()
		if err != nil {
			t.Errorf("Routes = %v; want no error in\n%s", err, e)
			continue
		}
		for _, f := range topo.Check(r) {
			if f.Severity == topo.Fault {
				t.Errorf("Check = %v; want no fault in\n%s", f, e)
			}
		}
	}
}

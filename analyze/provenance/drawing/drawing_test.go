package drawing

import (
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
)

var update = flag.Bool("update", false, "write golden files")

// testGraph is a ring of four switches with a host each, and a graph under
// construction.
type testGraph struct {
	t *testing.T
	f *topo.Fabric
	g *provenance.Graph
}

func newTestGraph(t *testing.T) *testGraph {
	f, err := topo.Ring(4, 1, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	b := &testGraph{t, f, &provenance.Graph{}}
	for _, sw := range f.Switches() {
		for i, p := range f.Node(sw).Ports {
			q := provenance.Queue{Port: model.Port{Node: sw, Port: model.PortID(i + 1)}, Priority: 3}
			n := provenance.Node{Queue: q, Peer: p.Peer, ToHost: f.Node(p.Peer.Node).Role == topo.Host, Packets: 1000}
			b.g.Nodes = append(b.g.Nodes, n)
		}
	}
	for src := range 4 {
		for port := range 2 {
			b.g.Flows = append(b.g.Flows, model.FlowKey{
				Src: f.Node(f.Hosts()[src]).IPv4, Dst: f.Node(f.Hosts()[(src+2)%4]).IPv4, SrcPort: uint16(1000 + port), DstPort: 4791, Proto: model.UDP,
			})
		}
	}
	b.g.Victim = b.g.Flows[0]
	return b
}

// drawPort is the node of the port from one node to another.
func (b *testGraph) port(from, to string) int {
	a, _ := b.f.ByName(from)
	z, _ := b.f.ByName(to)
	return b.g.Node(provenance.Queue{Port: model.Port{Node: a, Port: b.f.Node(a).PortsTo(z)[0]}, Priority: 3})
}

func (b *testGraph) pause(n int, packets uint64) {
	b.g.Nodes[n].Paused, b.g.Nodes[n].PauseFrames = packets, 4
}

// incast: the victim is paused at s0, which waits for s1, whose port to h1 two
// flows fill and delay a third.
func incast(t *testing.T) *testGraph {
	b := newTestGraph(t)
	up, down := b.port("s0", "s1"), b.port("s1", "h1")
	b.pause(up, 400)
	b.g.Nodes[down].Depth = 120.4
	b.g.FlowPort = []provenance.Edge{{From: 0, To: up, Weight: 200}, {From: 2, To: up, Weight: 20}}
	b.g.PortPort = []provenance.Edge{{From: up, To: down, Weight: 48_160}}
	for _, f := range []struct {
		flow           int
		packets, depth uint32
	}{{2, 20, 80}, {3, 400, 10}, {6, 300, 12}, {7, 8, 10}} {
		r := &epoch.Flow{Epoch: 1, Packets: f.packets, Depth: uint64(f.packets * f.depth)}
		b.g.FlowEpochs = append(b.g.FlowEpochs, provenance.FlowEpoch{Node: down, Flow: f.flow, Record: r})
	}
	return b
}

// deadlock: four ports are paused and wait for each other.
func deadlock(t *testing.T) *testGraph {
	b := newTestGraph(t)
	b.g.FlowPort = []provenance.Edge{{From: 0, To: b.port("s0", "s1"), Weight: 7}}
	for i := range 4 {
		from := b.port(fmt.Sprintf("s%d", i), fmt.Sprintf("s%d", (i+1)%4))
		to := b.port(fmt.Sprintf("s%d", (i+1)%4), fmt.Sprintf("s%d", (i+2)%4))
		b.pause(from, 100)
		b.g.Nodes[from].State = epoch.Port{Paused: true, Queued: 250_000}
		b.g.Held = append(b.g.Held, provenance.Edge{From: from, To: to, Weight: 120_000})
	}
	return b
}

func TestDrawings(t *testing.T) {
	for name, b := range map[string]*testGraph{"incast": incast(t), "deadlock": deadlock(t)} {
		o := DefaultOptions()
		o.FlowsPerPort = 3
		d := New(b.g, b.f, o)
		j, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		for ext, got := range map[string]string{"txt": d.Text(), "dot": d.Dot(), "svg": d.SVG(), "json": string(j) + "\n"} {
			golden(t, name+"."+ext, got)
		}
		wellFormed(t, name, d.SVG())
		graphviz(t, name, d.Dot())
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", name, diff)
	}
}

// wellFormed reads a picture to its end.
func wellFormed(t *testing.T, name, svg string) {
	t.Helper()
	for dec := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := dec.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// statement is what we write of Graphviz's grammar: attributes of all nodes or
// edges, an assignment, a node, an edge.
var statement = regexp.MustCompile(`^\t(` + strings.NewReplacer(
	"ID", `("(?:[^"\\]|\\.)*"|[a-z]+)`,
	"LIST", ` \[[a-z]+=(?:"(?:[^"\\]|\\.)*"|[A-Za-z0-9]+)(?:, [a-z]+=(?:"(?:[^"\\]|\\.)*"|[A-Za-z0-9]+))*\]`,
).Replace(`[a-z]+=[A-Z]+|IDLIST|ID -> IDLIST`) + `);$`)

func graphviz(t *testing.T, name, dot string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(dot, "\n"), "\n")
	if lines[0] != "digraph provenance {" || lines[len(lines)-1] != "}" {
		t.Fatalf("%s: begins %q, ends %q; want a digraph in braces", name, lines[0], lines[len(lines)-1])
	}
	for _, l := range lines[1 : len(lines)-1] {
		if !statement.MatchString(l) {
			t.Errorf("%s: %q is no statement", name, l)
		}
	}
}

// Names from outside cannot break out of their quotes.
func TestHostileNames(t *testing.T) {
	d := &Drawing{
		Victim: `a"b\`, Ports: []Port{{ID: `<p>"&`, Level: 1}}, Flows: []Flow{{ID: `a"b\`, Victim: true}},
		Edges: []Edge{{From: `a"b\`, To: `<p>"&`, Kind: FlowPort}},
	}
	wellFormed(t, "hostile", d.SVG())
	graphviz(t, "hostile", d.Dot())
}

// A graph without the victim draws what was paused and what that waited for, without pauses
// nothing but the victim's name, and with AllPorts whatever there is.
func TestVictimUnknown(t *testing.T) {
	b := incast(t)
	b.g.Victim = model.FlowKey{Src: b.f.Node(b.f.Hosts()[0]).IPv4, Dst: b.f.Node(b.f.Hosts()[3]).IPv4, SrcPort: 9}
	up, down := b.port("s0", "s1"), b.port("s1", "h1")
	d := New(b.g, b.f, DefaultOptions())
	if d.Victim != "h0 → h3" || len(d.Ports) != 2 || d.Ports[0].ID != b.f.PortName(b.g.Nodes[up].Port) || d.Ports[1].ID != b.f.PortName(b.g.Nodes[down].Port) || len(d.Flows) != 4 {
		t.Errorf("drawing of an unknown victim: %+v; want s0's port to s1, s1's to h1, and the flows there", d)
	}
	b.pause(up, 0)
	if d := New(b.g, b.f, DefaultOptions()); d.Victim != "h0 → h3" || len(d.Ports)+len(d.Flows)+len(d.Edges) != 0 {
		t.Errorf("drawing of an unknown victim: %+v; want h0 → h3 and nothing else", d)
	}
	if d := New(b.g, b.f, Options{FlowsPerPort: 1, AllPorts: true}); len(d.Ports) != len(b.g.Nodes) {
		t.Errorf("drawing of all: %d ports, want %d", len(d.Ports), len(b.g.Nodes))
	}
	wellFormed(t, "nothing", New(b.g, b.f, DefaultOptions()).SVG())
}

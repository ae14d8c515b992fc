package whatif

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/served"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/fairshare"
	"github.com/weft-telemetry/weft/topo/file"
)

const twoSpines = `duration: 1ms
topology: {generate: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 2}}
traffic:
  - kind: flows
    name: training
    list:
      - {from: h0, to: h2, bytes: 1MB, source-port: 49152}
      - {from: h1, to: h3, bytes: 1MB, source-port: SECOND}
`

// read returns the scenario with source ports that put its two flows on different
// spines.
func read(t *testing.T) *scenario.Scenario {
	t.Helper()
	for _, port := range []string{"49152", "49153", "49154", "49155", "49156", "49157"} {
		s, err := scenario.Parse("test.yaml", []byte(strings.Replace(twoSpines, "SECOND", port, 1)))
		if err != nil {
			t.Fatal(err)
		}
		a, err := Ask(s, Change{})
		if err != nil {
			t.Fatal(err)
		}
		if a.Before.MaxSlowdown == 1 {
			return s
		}
	}
	t.Fatal("no source ports spread the flows")
	return nil
}

func node(s *scenario.Scenario, name string) model.NodeID {
	id, _ := s.Topology.Fabric.ByName(name)
	return id
}

func TestDrain(t *testing.T) {
	s := read(t)
	a, err := Ask(s, Change{Drain: []model.NodeID{node(s, "spine0")}})
	if err != nil {
		t.Fatal(err)
	}
	if a.Before.MaxSlowdown != 1 || a.After.MaxSlowdown != 2 || a.After.NoPath != 0 || a.AtRisk() {
		t.Errorf("without one of two spines: %+v; want both flows on the other, at half of their rate", a)
	}
	if len(a.Jobs) != 1 || a.Jobs[0].Name != "training" || a.Jobs[0].After != 2 {
		t.Errorf("jobs %+v; want training twice as slow", a.Jobs)
	}
	if !slices.ContainsFunc(a.Links, func(l Link) bool { return strings.HasPrefix(l.Port, "spine0:") && l.After == 0 }) {
		t.Errorf("links %+v; want none of the load left on spine0", a.Links)
	}
	a, err = Ask(s, Change{Drain: []model.NodeID{node(s, "spine0"), node(s, "spine1")}})
	if err != nil || a.After.NoPath != 2 || a.LostPairs != 8 || a.Lost == "" || !a.AtRisk() || len(a.CutOff) != 0 {
		t.Errorf("without both spines: %+v, %v; want no path for both flows", a, err)
	}
	a, err = Ask(s, Change{Drain: []model.NodeID{node(s, "h0")}})
	if err != nil || a.After.Flows != 1 || a.AtRisk() {
		t.Errorf("without a host: %+v, %v; want one flow left", a, err)
	}
	a, err = Ask(s, Change{Drain: []model.NodeID{node(s, "leaf0")}})
	if err != nil || !slices.Equal(a.CutOff, []string{"h0", "h1"}) || a.LostPairs != 0 {
		t.Errorf("without a leaf: %+v, %v; want its hosts cut off", a, err)
	}
}

func TestAddJob(t *testing.T) {
	s := read(t)
	job := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(job, []byte("traffic:\n  - {kind: persistent, name: backup, pairs: [h1>h2], rate: 100Gb/s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Ask(s, Change{Jobs: []string{job}})
	if err != nil || a.After.Flows != 3 || len(a.Jobs) != 2 || !a.Jobs[1].Added || a.Jobs[1].Name != "backup" {
		t.Errorf("with another job: %+v, %v; want three flows and two jobs", a, err)
	}
	if err := os.WriteFile(job, []byte("traffic:\n  - {kind: persistent, pairs: [h1>h99]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Ask(s, Change{Jobs: []string{job}}); err == nil || !strings.Contains(err.Error(), "job.yaml:2: ") {
		t.Errorf("a job with an unknown host: %v; want an error with file and line", err)
	}
}

// TestCycle: two failures that close a cycle in a fat-tree are a risk.
func TestCycle(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	s := scenario.FromTopology("fabric", &file.Document{Fabric: f})
	link := func(a, b string) int {
		x, _ := f.ByName(a)
		y, _ := f.ByName(b)
		return f.Node(x).Port(f.Node(x).PortsTo(y)[0]).Link
	}
	a, err := Ask(s, Change{Links: []int{link("tor0", "leaf0"), link("tor2", "leaf3")}})
	if err != nil || len(a.Cycles) == 0 || !a.AtRisk() || !a.Sampled || a.After.NoPath != 0 {
		t.Errorf("two links of a fat-tree: %+v, %v; want a cycle", a, err)
	}
	if a, err = Ask(s, Change{}); err != nil || a.Before != a.After || len(a.Links) != 0 || math.IsNaN(a.Before.MeanSlowdown) {
		t.Errorf("no change: %+v, %v; want nothing to change", a, err)
	}
}

func BenchmarkAsk(b *testing.B) {
	f, err := topo.FatTree(16, topo.DefaultLinks())
	if err != nil {
		b.Fatal(err)
	}
	s := scenario.FromTopology("fabric", &file.Document{Fabric: f})
	spine, _ := f.ByName("spine0")
	for b.Loop() {
		if _, err := Ask(s, Change{Drain: []model.NodeID{spine}}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestLive: traffic that a controller counted keeps its rates, and its paths unless they
// fail.
func TestLive(t *testing.T) {
	s := read(t)
	f := s.Topology.Fabric
	routes, err := s.IntendedRoutes()
	if err != nil {
		t.Fatal(err)
	}
	var over [2][]topo.Hop // spine0, spine1
	paths, _ := routes.Paths(node(s, "h0"), f.Node(node(s, "h2")).IPv4, 4)
	for _, p := range paths {
		over[slices.Index([]string{"spine0", "spine1"}, f.Node(p[2].Node).Name)] = p
	}
	flow := func(port uint16, path []topo.Hop) fairshare.Flow {
		return fairshare.Flow{
			Key: model.FlowKey{Src: f.Node(node(s, "h0")).IPv4, Dst: f.Node(node(s, "h2")).IPv4, SrcPort: port, DstPort: 4791, Proto: model.UDP},
			Src: node(s, "h0"), Demand: 40 * model.Gbps, Path: path,
		}
	}
	now := &served.Traffic{Flows: 2, Jobs: []scenario.JobFlows{{Name: "seen", Flows: []fairshare.Flow{flow(1, over[0]), flow(2, over[1])}}}}
	a, err := AskLive(s, now, Change{Drain: []model.NodeID{node(s, "spine0")}})
	if err != nil {
		t.Fatal(err)
	}
	if a.Live != now || a.Sampled || a.Before.Flows != 2 || a.Before.MaxSlowdown != 1 || a.After.MaxSlowdown != 1 || a.AtRisk() {
		t.Errorf("two flows of 40 Gb/s: %+v; want both to keep their rates", a)
	}
	i := slices.IndexFunc(a.Links, func(l Link) bool {
		return l.Port == "leaf0:"+f.Port(model.Port{Node: over[1][1].Node, Port: over[1][1].Out}).Name
	})
	if i < 0 || math.Abs(a.Links[i].Before-0.4) > 1e-9 || math.Abs(a.Links[i].After-0.8) > 1e-9 {
		t.Errorf("links %+v; want that of leaf0 to spine1 to go from 40 %% to 80 %%", a.Links)
	}
	job := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(job, []byte("traffic:\n  - {kind: persistent, name: backup, pairs: [h0>h2], rate: 100Gb/s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err = AskLive(s, now, Change{Jobs: []string{job}}); err != nil || len(a.Jobs) != 2 || a.After.Flows != 3 || a.Jobs[1].Name != "backup" || !a.Jobs[1].Added {
		t.Errorf("with another job: %+v, %v; want the counted one, and that of the file", a, err)
	}
}

func BenchmarkAskLive(b *testing.B) {
	f, err := topo.FatTree(16, topo.DefaultLinks())
	if err != nil {
		b.Fatal(err)
	}
	s := scenario.FromTopology("fabric", &file.Document{Fabric: f})
	spine, _ := f.ByName("spine0")
	flows := sample(f, 1)
	for i := range flows {
		flows[i].Demand = 4 * model.Gbps
	}
	now := &served.Traffic{Flows: len(flows), Jobs: []scenario.JobFlows{{Name: "seen", Flows: flows}}}
	for b.Loop() {
		if _, err := AskLive(s, now, Change{Drain: []model.NodeID{spine}}); err != nil {
			b.Fatal(err)
		}
	}
}

package coverage

import (
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Probes pass every port of a fabric's switches, as its routes say, with far fewer flows than ports.
func TestProbesPassEveryPort(t *testing.T) {
	for name, build := range map[string]func() (*topo.Fabric, error){
		"fat-tree": func() (*topo.Fabric, error) { return topo.FatTree(8, topo.DefaultLinks()) },
		"clos":     func() (*topo.Fabric, error) { return topo.Clos(topo.DefaultClos(), topo.DefaultLinks()) },
	} {
		f, err := build()
		if err != nil {
			t.Fatal(err)
		}
		r, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 77})
		if err != nil {
			t.Fatal(err)
		}
		var all []model.Port
		for _, id := range f.Switches() {
			for _, p := range f.Node(id).Ports {
				all = append(all, model.Port{Node: id, Port: p.ID})
			}
		}
		flows, unreached := PlanProbes(r, all, 7)
		if len(unreached) > 0 || len(flows) > len(all)/2 {
			t.Errorf("%s: %d flows for %d ports, %v unreached; want at most half as many, and none", name, len(flows), len(all), unreached)
		}
		passed := map[model.Port]bool{}
		for _, p := range flows {
			path, err := r.Path(p.Key, p.Host)
			if err != nil {
				t.Fatal(err)
			}
			for _, port := range p.Ports {
				if !slices.ContainsFunc(path, func(h topo.Hop) bool { return h.Node == port.Node && h.Out == port.Port }) {
					t.Errorf("%s: flow %v does not pass %v; its path is %v", name, p.Key, port, path)
				}
				passed[port] = true
			}
		}
		if len(passed) != len(all) {
			t.Errorf("%s: %d of %d ports are passed; want all", name, len(passed), len(all))
		}
	}
}

// A port behind which no host is has no probe, and is returned.
func TestPortsWithoutProbe(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	sw := f.Switches()[0]
	up := slices.IndexFunc(f.Node(sw).Ports, func(p topo.Port) bool { return f.Node(p.Peer.Node).Role.IsSwitch() })
	port := f.Node(sw).Ports[up]
	r, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1, Down: []int{port.Link}})
	if err != nil {
		t.Fatal(err)
	}
	dead := model.Port{Node: sw, Port: port.ID}
	flows, unreached := PlanProbes(r, []model.Port{dead}, 7)
	if len(flows) != 0 || !slices.Equal(unreached, []model.Port{dead}) {
		t.Errorf("flows %v, unreached %v; want no flow over a link that routes avoid", flows, unreached)
	}
}

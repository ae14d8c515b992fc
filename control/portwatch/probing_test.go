package portwatch

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// testProber records the ports that probes were sent over.
type testProber struct {
	ports  []model.Port
	refuse bool
}

func (p *testProber) Probe(f coverage.ProbeFlow) error {
	if p.refuse {
		return errors.New("no connection")
	}
	p.ports = append(p.ports, f.Ports...)
	return nil
}

// Ports are probed that have neither a new label nor traffic, and no others.
func TestIdlePortsAreProbed(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	var all []model.Port
	for _, id := range f.Switches() {
		for _, p := range f.Node(id).Ports {
			all = append(all, model.Port{Node: id, Port: p.ID})
		}
	}
	d, probes := &testFabric{shift: map[model.Port]uint8{}}, &testProber{}
	cfg := Config{States: coverage.DefaultConfig(f), Window: 100 * ms, KeepWindows: 3, Probing: &Probing{Routes: routes, Prober: probes, After: 50 * ms}}
	w, err := New(cfg, d)
	if err != nil {
		t.Fatal(err)
	}
	w.Tick(0)
	w.Tick(at(10 * ms)) // no label yet
	slices.SortFunc(probes.ports, model.Port.Compare)
	if got := slices.Compact(probes.ports); !slices.Equal(got, all) {
		t.Fatalf("probes pass %d ports; want all %d", len(got), len(all))
	}
	for _, p := range all {
		if err := w.IngestReport(at(20*ms), export(p, at(20*ms), 1)); err != nil {
			t.Fatal(err)
		}
	}
	probes.ports = nil
	w.Tick(at(60 * ms))
	if len(probes.ports) != 0 {
		t.Errorf("probes over %v, whose labels are 40 ms old; want none before 50 ms", probes.ports)
	}
	d.active = slices.DeleteFunc(slices.Clone(all), func(p model.Port) bool { return p == all[7] })
	w.Tick(at(80 * ms))
	if !slices.Contains(probes.ports, all[7]) || len(probes.ports) > 6 {
		t.Errorf("probes over %v; want those of one path through %v, which alone has no traffic", probes.ports, all[7])
	}
	sent := w.Stats().Probes
	probes.refuse = true
	w.Tick(at(90 * ms))
	w.Tick(at(100 * ms))
	s := w.Stats()
	if s.Unprobed != 2 || s.Probes != sent || s.Unprobable != 0 {
		t.Errorf("%+v; want two refused probes counted, and %d sent", s, sent)
	}
	if win := w.Windows()[0]; win.Unreported != 0 || win.Active != len(all)-1 {
		t.Errorf("window %+v; want all ports reported, and all but one with traffic", win)
	}
}

func TestProbingIsChecked(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*Probing{
		"no routes": {Prober: &testProber{}, After: ms},
		"no prober": {Routes: routes, After: ms},
		"no age":    {Routes: routes, Prober: &testProber{}},
	} {
		cfg := Config{States: coverage.DefaultConfig(f), Window: ms, KeepWindows: 1, Probing: p}
		if _, err := New(cfg, &testFabric{}); err == nil || !strings.HasPrefix(err.Error(), "portwatch: ") {
			t.Errorf("%s: New = %v; want a complaint", name, err)
		}
	}
}

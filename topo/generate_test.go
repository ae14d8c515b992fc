package topo

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/weft-telemetry/weft/model"
)

func TestGeneratorSizes(t *testing.T) {
	l := DefaultLinks()
	for name, tc := range map[string]struct {
		f                      *Fabric
		hosts, switches, links int
	}{
		"fat-tree 2":  {must(FatTree(2, l)), 2, 5, 2 + 2 + 2},
		"fat-tree 4":  {must(FatTree(4, l)), 16, 20, 48},
		"fat-tree 16": {must(FatTree(16, l)), 1024, 320, 3072},
		"leaf-spine":  {must(LeafSpine(300, 4, 2, l)), 600, 304, 1800},
		"clos":        {must(Clos(ClosSize{Pods: 3, ToRs: 4, Leaves: 2, Spines: 5, Hosts: 6}, l)), 72, 12 + 6 + 10, 72 + 24 + 30},
		"dumbbell":    {must(Dumbbell(5, l)), 10, 2, 11},
		"ring":        {must(Ring(5, 2, l)), 10, 5, 15},
	} {
		if h, s, n := len(tc.f.Hosts()), len(tc.f.Switches()), len(tc.f.Links()); h != tc.hosts || s != tc.switches || n != tc.links {
			t.Errorf("%s has %d hosts, %d switches, %d links; want %d, %d, %d", name, h, s, n, tc.hosts, tc.switches, tc.links)
		}
	}
}

func TestFatTreeShape(t *testing.T) {
	f := must(FatTree(4, DefaultLinks()))
	for _, sw := range f.Switches() {
		if n := len(f.Node(sw).Ports); n != 4 {
			t.Errorf("%s has %d ports; want 4", f.Node(sw).Name, n)
		}
	}
	for name, want := range map[string]struct {
		id      model.NodeID
		v4, v6  string
		pod     int
		portsTo string // who is on the last port
	}{
		"h0":     {0, "10.0.0.2", "fd00::a00:2", 0, "tor0"},
		"h15":    {15, "10.3.1.3", "fd00::a03:103", 3, "tor7"},
		"tor7":   {23, "10.3.1.1", "fd00::a03:101", 3, "leaf7"},
		"leaf6":  {30, "10.3.2.1", "fd00::a03:201", 3, "spine1"},
		"leaf7":  {31, "10.3.3.1", "fd00::a03:301", 3, "spine3"},
		"spine3": {35, "10.4.2.2", "fd00::a04:202", NoPod, "leaf7"},
	} {
		n := f.Node(id(t, f, name))
		last := f.Node(n.Ports[len(n.Ports)-1].Peer.Node).Name
		if n.ID != want.id || n.IPv4 != ip(want.v4) || n.IPv6 != ip(want.v6) || n.Pod != want.pod || last != want.portsTo {
			t.Errorf("%s = id %d, %v, %v, pod %d, last port to %s; want %+v", name, n.ID, n.IPv4, n.IPv6, n.Pod, last, want)
		}
	}
}

// TestClosIsINTLabels: 4 spines (switches 0 to 3), 4 leaves, 4 ToRs, 8 hosts,
// 40 switch ports, hosts 10.pod.tor.host from 1.
func TestClosIsINTLabels(t *testing.T) {
	f := must(Clos(DefaultClos(), DefaultLinks()))
	ports := 0
	for i, sw := range f.Switches() {
		ports += len(f.Node(sw).Ports)
		if role := []Role{Spine, Leaf, ToR}[i/4]; int(sw) != i || f.Node(sw).Role != role {
			t.Errorf("switch %d has id %d and role %v; want %v", i, sw, f.Node(sw).Role, role)
		}
	}
	if len(f.Switches()) != 12 || len(f.Hosts()) != 8 || ports != 40 {
		t.Errorf("Clos has %d switches, %d hosts, %d switch ports; want 12, 8, 40", len(f.Switches()), len(f.Hosts()), ports)
	}
	if got := f.Node(id(t, f, "h7")).IPv4; got != ip("10.2.2.2") {
		t.Errorf("the last host has %v; want 10.2.2.2", got)
	}
	r := mustRoutes(t, f, RouteConfig{})
	if p, _ := r.Paths(id(t, f, "h0"), ip("10.2.2.2"), 100); len(p) != 4 {
		t.Errorf("%d paths between pods; want 4", len(p))
	}
}

func TestKindsAgreeWithGenerators(t *testing.T) {
	l := DefaultLinks()
	fast := Links{
		Host:   LinkSpec{Rate: 25 * model.Gbps, Delay: 2 * time.Microsecond, ErrorRate: 0.25},
		Fabric: LinkSpec{Rate: 400 * model.Gbps, Delay: 500, ErrorRate: 0.25},
	}
	for _, tc := range []struct {
		spec Spec
		want *Fabric
	}{
		{Spec{Kind: "fat-tree"}, must(FatTree(4, l))},
		{Spec{Kind: "fat-tree", Params: map[string]string{"k": "6"}}, must(FatTree(6, l))},
		{Spec{Kind: "leaf-spine", Params: map[string]string{"spines": "3"}}, must(LeafSpine(4, 3, 4, l))},
		{Spec{Kind: "clos"}, must(Clos(DefaultClos(), l))},
		{Spec{Kind: "dumbbell", Params: map[string]string{"hosts": "2"}}, must(Dumbbell(2, l))},
		{Spec{Kind: "ring", Params: map[string]string{"switches": "5", "hosts": "0"}}, must(Ring(5, 0, l))},
		{Spec{Kind: "fat-tree", Params: map[string]string{
			"rate": "400G", "host-rate": "25Gb/s", "delay": "500ns", "host-delay": "2us", "error-rate": "0.25",
		}}, must(FatTree(4, fast))},
	} {
		got, err := Generate(tc.spec)
		if err != nil {
			t.Errorf("Generate(%+v) = %v; want no error", tc.spec, err)
			continue
		}
		if d := cmp.Diff(tc.want.Nodes(), got.Nodes(), cmpopts.EquateEmpty()); d != "" || got.Name() != tc.want.Name() {
			t.Errorf("Generate(%+v) = %s, other nodes than %s (-want +got):\n%s", tc.spec, got.Name(), tc.want.Name(), d)
		}
	}
	if f := must(Generate(Spec{Kind: "ring", Name: "my ring"})); f.Name() != "my ring" {
		t.Errorf("Generate(name: my ring) is named %q; want my ring", f.Name())
	}
}

func TestGenerateErrors(t *testing.T) {
	params := func(kv ...string) map[string]string {
		m := make(map[string]string)
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	for want, tc := range map[string]struct {
		spec  Spec
		param string
	}{
		`kind "tree", want one of fat-tree, leaf-spine`: {Spec{Kind: "tree"}, "kind"},
		`k 5, want an even number`:                      {Spec{Kind: "fat-tree", Params: params("k", "5")}, "k"},
		`k 66, want 2 to 64`:                            {Spec{Kind: "fat-tree", Params: params("k", "66")}, "k"},
		`k "four", want a whole number`:                 {Spec{Kind: "fat-tree", Params: params("k", "four")}, "k"},
		`unknown parameter "pods", want one of k, rate`: {Spec{Kind: "fat-tree", Params: params("pods", "4")}, "pods"},
		`rate 0b/s, want above 0`:                       {Spec{Kind: "ring", Params: params("rate", "0")}, "rate"},
		`rate "fast"`:                                   {Spec{Kind: "ring", Params: params("host-rate", "fast")}, "host-rate"},
		`delay "-1us", want`:                            {Spec{Kind: "ring", Params: params("delay", "-1us")}, "delay"},
		`error rate "2", want a number from 0 to 1`:     {Spec{Kind: "ring", Params: params("error-rate", "2")}, "error-rate"},
		`hosts 254, want 0 to 253`:                      {Spec{Kind: "leaf-spine", Params: params("hosts", "254")}, "hosts"},
		`switches 2, want 3 to 4096`:                    {Spec{Kind: "ring", Params: params("switches", "2")}, "switches"},
		`want at most 131072 and 1048576`:               {Spec{Kind: "leaf-spine", Params: params("leaves", "4096", "hosts", "253")}, ""},
		`fabric name "\n", want`:                        {Spec{Kind: "ring", Name: "\n"}, "name"},
	} {
		_, err := Generate(tc.spec)
		var pe *ParamError
		if !errors.As(err, &pe) || !strings.Contains(pe.Msg, want) || pe.Param != tc.param {
			t.Errorf("Generate(%+v) = %v (%+v); want %q about %q", tc.spec, err, pe, want, tc.param)
		}
	}
}

func TestKindsAreDocumented(t *testing.T) {
	for _, k := range Kinds() {
		if k.About == "" || len(k.Params) <= len(linkParams) {
			t.Errorf("kind %s has about %q and %d parameters; want a sentence and its own parameters", k.Name, k.About, len(k.Params))
		}
		// Every default must be a value that Generate takes.
		given := make(map[string]string)
		for _, p := range k.Params {
			if p.About == "" {
				t.Errorf("parameter %s of %s has no about; want a sentence", p.Name, k.Name)
			}
			if p.Default != "" {
				given[p.Name] = p.Default
			}
		}
		got, err := Generate(Spec{Kind: k.Name, Params: given})
		if err != nil {
			t.Errorf("Generate(%s, %v) = %v; want no error", k.Name, given, err)
			continue
		}
		if d := cmp.Diff(must(Generate(Spec{Kind: k.Name})).Nodes(), got.Nodes()); d != "" {
			t.Errorf("Generate(%s) differs from its documented defaults:\n%s", k.Name, d)
		}
	}
}

package file

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

func TestHTSimSamples(t *testing.T) {
	for name, want := range map[string]struct {
		switches, links, hops int
		far                   time.Duration // one way between hosts 0 and 15
	}{
		"leaf-spine.topo": {switches: 6, links: 16 + 4*2, hops: 4, far: 2*500 + 2*1000 + 3*300},
		"fat-tree.topo":   {switches: 8 + 4 + 2, links: 16 + 8 + 8, hops: 6, far: 2*500 + 4*1000},
	} {
		d, err := Read("../../examples/htsim/" + name)
		if err != nil {
			t.Errorf("Read(%s) = %v", name, err)
			continue
		}
		f := d.Fabric
		if len(f.Hosts()) != 16 || len(f.Switches()) != want.switches || len(f.Links()) != want.links {
			t.Errorf("%s: %d hosts, %d switches, %d links; want 16, %d, %d", name, len(f.Hosts()), len(f.Switches()),
				len(f.Links()), want.switches, want.links)
		}
		routes, err := d.Routes()
		if err != nil {
			t.Fatal(err)
		}
		a, z := f.Node(0), f.Node(15)
		path, err := routes.Path(model.FlowKey{Src: a.IPv4, Dst: z.IPv4, Proto: model.UDP}, a.ID)
		if err != nil {
			t.Fatal(err)
		}
		var delay time.Duration
		hops := 0
		for _, h := range path {
			if h.Out != 0 {
				hops++
				delay += f.Node(h.Node).Port(h.Out).Delay
			}
		}
		if hops != want.hops || delay != want.far {
			t.Errorf("%s: path of %d links and %v; want %d and %v", name, hops, delay, want.hops, want.far)
		}
	}
}

// TestHTSimEqualsFatTree: the file of a k-ary fat-tree is the generated one,
// but for how leaves and spines are paired.
func TestHTSimEqualsFatTree(t *testing.T) {
	for _, k := range []int{2, 4, 8} {
		text := fmt.Sprintf("Nodes %d\nTiers 3\nPodsize %d\n", k*k*k/4, k*k/4)
		for tier := range 3 {
			text += fmt.Sprintf("Tier %d\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1000\n", tier)
			if tier == 2 {
				text += fmt.Sprintf("Radix_Down %d\n", k)
			} else {
				text += fmt.Sprintf("Radix_Down %d\nRadix_Up %d\n", k/2, k/2)
			}
		}
		d, err := Parse("x.topo", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		want, err := topo.FatTree(k, topo.DefaultLinks())
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Fabric; len(got.Nodes()) != len(want.Nodes()) || len(got.Links()) != len(want.Links()) {
			t.Errorf("k=%d: %d nodes and %d links; want %d and %d", k, len(got.Nodes()), len(got.Links()),
				len(want.Nodes()), len(want.Links()))
		}
		for i := range want.Nodes() {
			got, want := d.Fabric.Node(model.NodeID(i)), want.Node(model.NodeID(i))
			if got.Name != want.Name || got.Role != want.Role || got.Pod != want.Pod || len(got.Ports) != len(want.Ports) {
				t.Errorf("k=%d: node %d is %s (%v, pod %d, %d ports); want %s (%v, pod %d, %d ports)", k, i,
					got.Name, got.Role, got.Pod, len(got.Ports), want.Name, want.Role, want.Pod, len(want.Ports))
			}
		}
	}
}

func TestHTSimErrors(t *testing.T) {
	sample, err := os.ReadFile("../../examples/htsim/leaf-spine.topo")
	if err != nil {
		t.Fatal(err)
	}
	good := string(sample)
	for old, tc := range map[string]struct{ new, want string }{
		"Nodes 16":               {"Nodes 1", `x:2: nodes "1", want a whole number from 2`},
		"Nodes 16\n":             {"\n", "x: no nodes, want one"},
		"Tiers 2":                {"Tiers 4", `x:3: tiers "4", want a whole number from 2 to 3`},
		"Podsize 16":             {"Podsize 5", "x:4: podsize 5, want a divisor of the 16 nodes"},
		"Podsize 16\n":           {"Podsize 16 8\n", "x:4: 3 words, want a key and a value"},
		"Tier 1":                 {"Tier 0", "x:14: tier 0 again, the first one is on line 6"},
		"Tier 0":                 {"Oversubscribed 1", `x:6: unknown key "oversubscribed" before the first tier`},
		"Radix_Down 4\nRadix_Up": {"Radix_Down 3\nRadix_Up", "x:6: radix_down 3 of tier 0, want a divisor of podsize 16"},
		"Radix_Up 2":             {"Radix_Up 3", "x:6: tier 0 has 4 links down of 100Gb/s and oversubscription 2, so radix_up 3 of 100Gb/s does not fit, want 2"},
		"Radix_Up":               {"Radix_Upp", `x:9: unknown key "radix_upp", want downlink_speed_gbps`},
		"Downlink_Latency_ns 500\n": {
			"", "x:6: tier 0 has no downlink_latency_ns, want one",
		},
		"Radix_Down 4\nDownlink_Latency_ns 1000": {
			"Radix_Down 8\nDownlink_Latency_ns 1000", "x:14: radix_down 8 of tier 1 gives 1 switches in each pod for the 2 uplinks of a ToR, want as many",
		},
	} {
		text := strings.Replace(good, old, tc.new, 1)
		if text == good {
			t.Fatalf("the sample has no %q", old)
		}
		if _, err := Parse("x", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%q as %q: %v; want %s", old, tc.new, err, tc.want)
		}
	}
}

func FuzzHTSim(f *testing.F) {
	for _, name := range []string{"leaf-spine.topo", "fat-tree.topo"} {
		in, err := os.ReadFile("../../examples/htsim/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) { check(t, HTSim, in) })
}

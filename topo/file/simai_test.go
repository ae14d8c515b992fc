package file

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// TestSimAISample: 16 GPUs of two servers, each with an NVSwitch; GPUs of one server
// reach each other by NVLink, those of one rail by their ToR, others by a spine.
func TestSimAISample(t *testing.T) {
	d, err := Read("../../examples/simai/rails.topo")
	if err != nil {
		t.Fatal(err)
	}
	f := d.Fabric
	if len(f.Hosts()) != 16 || len(f.Switches()) != 12 || len(f.Links()) != 48 || d.PerServer != 8 {
		t.Fatalf("%d hosts, %d switches, %d links, %d of a server; want 16, 12, 48, 8", len(f.Hosts()), len(f.Switches()), len(f.Links()), d.PerServer)
	}
	routes, err := d.Routes()
	if err != nil {
		t.Fatal(err)
	}
	for to, want := range map[model.NodeID]struct {
		links int
		via   string
	}{7: {2, "nvs16"}, 8: {2, "s18"}, 9: {4, "s18"}} {
		path, err := routes.Path(model.FlowKey{Src: f.Node(0).IPv4, Dst: f.Node(to).IPv4, Proto: model.UDP}, 0)
		if err != nil || len(path) != want.links+1 || f.Node(path[1].Node).Name != want.via {
			t.Errorf("path from h0 to h%d is %+v, %v; want %d links by %s", to, path, err, want.links, want.via)
		}
	}
	if p := f.Node(0).Port(1); p.Rate != 2400*model.Gbps || p.Delay != 25*time.Nanosecond {
		t.Errorf("NVLink of h0: %v, %v; want 2.4 Tb/s and 25 ns", p.Rate, p.Delay)
	}
}

func TestSimAIErrors(t *testing.T) {
	for text, want := range map[string]string{
		"3 2 1 0 2 H100":                       "in:1: file ends here, want switch 1 of 1:",
		"3 2 1 0":                              "in:1: file ends here, want number of links",
		"3 2 1 0 2":                            "in:1: file ends here, want the type of the GPUs",
		"x 2 1 0 2 H100":                       `in:1: number of nodes "x", want a number from 0 to 65536`,
		"2 2 1 1 2 H100":                       "in:1: 2 nodes with 1 NVSwitches and 1 switches, want a GPU at least",
		"4 2 1 0 2 H100":                       "in:1: 2 GPUs of a server, want a divisor of 3, the number of GPUs",
		"3 0 1 0 2 H100":                       "in:1: 0 GPUs of a server, want a divisor of 2, the number of GPUs",
		"3 2 1 0 2 H100\n1":                    "in:2: switch 1 among the first 2 nodes, want GPUs there",
		"4 2 1 1 2 H100\n2 2":                  "in:2: switch 2 is listed twice, want 2 different switches",
		"3 2 1 0 2 H100\n2\n0 2 400Gbps 1us":   "in:3: file ends here, want link 1 of 2: error rate",
		"3 2 1 0 1 H100\n2\n0 3 400Gbps 1us 0": `in:3: link 1 of 1: node "3", want a number from 0 to 2`,
		"3 2 1 0 1 H100\n2\n0 2 400GBps 1us 0": `in:3: link 1 of 1: rate "400GBps" counts bytes, want bits such as 100Gbps`,
	} {
		if _, err := ParseAs(SimAI, "in", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("ParseAs(simai, %q) = %v; want %s", text, err, want)
		}
	}
}

func FuzzSimAI(f *testing.F) {
	seed(f, "../../../examples/simai/rails.topo")
	f.Add([]byte("3 2 1 0 2 H100\n2\n0 2 400Gbps 1us 0\n1 2 400Gbps 0.001ms 0"))
	f.Fuzz(func(t *testing.T, in []byte) { check(t, SimAI, in) })
}

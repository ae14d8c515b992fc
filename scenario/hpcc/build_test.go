package hpcc

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// build reads and builds a configuration of testdata.
func build(t *testing.T, name string) *Setup {
	t.Helper()
	c, err := Read(filepath.Join("testdata", name, "config.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Build(c, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write makes a folder of files and returns the configuration's path.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "config.txt")
}

const (
	plainConfig = "TOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\nKMIN_MAP 1 100000000000 400\nKMAX_MAP 1 100000000000 1600\nPMAX_MAP 1 100000000000 0.2\n"
	plainStar   = "3 1 2\n0\n0 1 100Gbps 1us 0\n0 2 100Gbps 1us 0\n"
	plainFlow   = "1\n1 2 3 100 5000 2\n"
)

func plain(changes map[string]string) map[string]string {
	files := map[string]string{"config.txt": plainConfig, "topology.txt": plainStar, "flow.txt": plainFlow}
	for name, text := range changes {
		if text == "" {
			delete(files, name)
		} else {
			files[name] = text
		}
	}
	return files
}

func TestBuildStar(t *testing.T) {
	s := build(t, "star")
	f := s.Fabric
	if got := []string{f.Node(0).Name, f.Node(1).Name, f.Node(4).Name, f.Node(4).IPv4.String()}; !slices.Equal(got, []string{"s0", "h1", "h4", "11.0.4.1"}) {
		t.Errorf("nodes are %q; want s0, h1, h4 at 11.0.4.1", got)
	}
	// In the order of the links, whichever end is written first.
	if p := f.Node(0).Port(3); p == nil || p.Peer.Node != 3 {
		t.Errorf("port 3 of s0 leads to %+v; want h3", p)
	}
	ms := model.Time(time.Millisecond)
	want := []traffic.Flow{
		{Src: 1, Dst: 2, Priority: 3, SrcPort: 10000, DstPort: 100, Bytes: 1e6, Start: 2000 * ms},
		{Src: 3, Dst: 4, Priority: 3, SrcPort: 10000, DstPort: 200, Bytes: 2500, Start: 2000*ms + 1000},
		{Src: 1, Dst: 2, Priority: 3, SrcPort: 10001, DstPort: 100, Bytes: 1, Start: 2001*ms - 1}, // a double falls short of 2.001
	}
	if diff := cmp.Diff(want, s.Flows); diff != "" {
		t.Errorf("flows differ (-want +got):\n%s", diff)
	}
	g := s.Sim
	if !g.HPCC || !g.NS3 || g.MTU != 1000 || g.Overhead != 48 || g.AckSize != 60 || g.CNPInterval != 0 || g.PauseTime != 0 || g.RTO != 0 ||
		g.ECNAtEnq || !g.HPCCIdeal || !g.Window || !g.GlobalWindow || g.VarWindow || congestion.TraitsOf(g.Congestion).Name != "dcqcn" || g.Buffer != 16*model.MiB ||
		g.NackGap != 500*time.Microsecond || g.AckControl || !g.AckHosts || !g.RateBound || g.Seed != 1 {
		t.Errorf("simulator is set up as %+v; want as the original", g)
	}
	ecn := []sim.ECNParams{
		{Rate: 25e9, Kmin: 100_000, Kmax: 400_000, Pmax: 0.2},
		{Rate: 100e9, Kmin: 400_000, Kmax: 1_600_000, Pmax: 0.2},
	}
	if diff := cmp.Diff(ecn, g.ECN); diff != "" {
		t.Errorf("marking curves differ (-want +got):\n%s", diff)
	}
	if s.Stop != 2010*ms || s.FCT != "mix/out-fct.txt" || s.PFC != "pfc.txt" || s.Down != nil || len(s.Agents) != 0 {
		t.Errorf("stop %v, files %q and %q, outage %v, agents %v; want 2.01s, mix/out-fct.txt and pfc.txt, none, none", s.Stop, s.FCT, s.PFC, s.Down, s.Agents)
	}
}

func TestBuildOfTheFork(t *testing.T) {
	s := build(t, "ring")
	if s.Sim.Buffer != 1000*model.KiB || !slices.Equal(s.Agents, []model.NodeID{0, 2}) || s.Threshold != 80*time.Microsecond || s.Epoch != 200*time.Microsecond {
		t.Errorf("buffer %v, agents %v above %v, epoch %v; want 1000KiB, 0 and 2 above 80µs, 200µs", s.Sim.Buffer, s.Agents, s.Threshold, s.Epoch)
	}
	for i, f := range s.Flows {
		if !f.NoCC {
			t.Errorf("flow %d of h%d has congestion control; want none: it is a NO_CC_NODE", i, f.Src)
		}
	}
	hops, err := s.Routes.Path(s.key(&s.Flows[0]), 0)
	if err != nil || len(hops) != 5 || hops[2].Node != 4 {
		t.Errorf("path from h0 to h2 is %v, %v; want over s3, s4, s5 as ROUTE_FILE says", hops, err)
	}
}

func TestBuildErrorRates(t *testing.T) {
	c, err := Read(write(t, plain(map[string]string{
		"config.txt":   plainConfig + "ERROR_RATE_PER_LINK 0.01\n",
		"topology.txt": "3 1 2\n0\n0 1 100Gbps 1us 0\n2 0 100Gbps 1us 0.5\n",
	})))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Build(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := s.Fabric.Links()
	if l[0].ErrorRate != 0.01 || l[1].ErrorRate != 0.5 || s.Fabric.Node(2).IPv4.String() != "11.0.2.1" || l[1].A.Node != 2 {
		t.Errorf("links are %+v; want error rates 0.01 and the link's own 0.5, all else as before", l)
	}
}

func TestBuildFindsFiles(t *testing.T) {
	config := write(t, map[string]string{
		"config.txt":     "TOPOLOGY_FILE mix/topology.txt\nFLOW_FILE in/flow.txt\nENABLE_QCN 0\n",
		"topology.txt":   plainStar, // mix/ is where the configuration is
		"in/flow.txt":    plainFlow,
		"mix/ignored":    "",
		"run/mix/x":      "",
		"run/wrong.txt":  "",
		"run/in/flow.me": "",
	})
	c, err := Read(config)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Build(c, Options{}); err != nil || len(s.Flows) != 1 {
		t.Errorf("Build with files beside the configuration = %v, %v; want one flow", s, err)
	}
	// What lies where the command runs comes first.
	run := filepath.Join(filepath.Dir(config), "run")
	if err := os.WriteFile(filepath.Join(run, "mix", "topology.txt"), []byte("4 1 3\n0\n0 1 100Gbps 1us 0\n0 2 100Gbps 1us 0\n0 3 100Gbps 1us 0\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Chdir(run)
	if s, err := Build(c, Options{}); err != nil || len(s.Fabric.Hosts()) != 3 {
		t.Errorf("Build with files where it runs = %v, %v; want three hosts", s, err)
	}
}

func TestBuildErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no topology": {
			map[string]string{"topology.txt": ""},
			"config.txt:1: TOPOLOGY_FILE topology.txt does not exist, want a file; tried topology.txt, DIR/topology.txt",
		},
		"no flows, and where it was searched": {
			map[string]string{"config.txt": strings.Replace(plainConfig, "flow.txt", "mix/flow.txt", 1), "flow.txt": ""},
			"config.txt:2: FLOW_FILE mix/flow.txt does not exist, want a file; tried mix/flow.txt, DIR/mix/flow.txt, DIR/flow.txt",
		},
		"a folder": {
			map[string]string{"config.txt": "TOPOLOGY_FILE .\nFLOW_FILE f\n"},
			"config.txt:1: TOPOLOGY_FILE . is a folder, want a file",
		},
		"topology": {
			map[string]string{"topology.txt": "3 1 2\n0\n0 1 100Gbps 1us 0\n0 7 100Gbps 1us 0\n"},
			`topology.txt:4: link 2 of 2: node "7", want a number from 0 to 2`,
		},
		"no switch": {
			map[string]string{"topology.txt": "2 0 1\n\n0 1 100Gbps 1us 0\n"},
			"topology.txt: 2 hosts and 0 switches, want at least two and one",
		},
		"first host alone": {
			map[string]string{"topology.txt": "3 1 1\n1\n1 2 100Gbps 1us 0\n"},
			"topology.txt: h0 has no link, want one: PFC thresholds depend on its rate",
		},
		"switch alone": {
			map[string]string{"topology.txt": "4 2 2\n0 3\n0 1 100Gbps 1us 0\n0 2 100Gbps 1us 0\n"},
			"topology.txt: s3 has no link, want one",
		},
		"flows": {
			map[string]string{"flow.txt": "1\n0 2 3 100 5000 2\n"},
			"flow.txt:2: flow 1 of 1: source 0 is not a host",
		},
		"routes": {
			map[string]string{"config.txt": plainConfig + "ROUTE_FILE routes.txt\n", "routes.txt": "# all wrong\n0 1 1 1\n"},
			"routes.txt:2: 4 words, want switch, destination and next hop",
		},
		"no routes": {
			map[string]string{"config.txt": plainConfig + "ROUTE_FILE routes.txt\n"},
			"config.txt:6: ROUTE_FILE routes.txt does not exist",
		},
		"rate without a curve": {
			map[string]string{"topology.txt": "3 1 2\n0\n0 1 100Gbps 1us 0\n0 2 40Gbps 1us 0\n"},
			"config.txt:3: KMIN_MAP has no entry for 40Gb/s, the rate of port 2 of s0, want an entry for each rate",
		},
		"no curve at all": {
			map[string]string{"config.txt": "TOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\nKMIN_MAP 1 100000000000 400\n"},
			"config.txt: KMAX_MAP has no entry for 100Gb/s",
		},
		"curve upside down": {
			map[string]string{"config.txt": plainConfig + "KMIN_MAP 1 100000000000 4000\n"},
			"config.txt:6: KMIN_MAP has 4MB for 100Gb/s, want at most KMAX_MAP's 1.6MB",
		},
		"link that is not there": {
			map[string]string{"config.txt": plainConfig + "LINK_DOWN 5 1 2\n"},
			"config.txt:6: LINK_DOWN: no link between nodes 1 and 2, want one",
		},
		"link of no node": {
			map[string]string{"config.txt": plainConfig + "LINK_DOWN 5 1 200\n"},
			"config.txt:6: LINK_DOWN: no link between nodes 1 and 200, want one",
		},
		"agent": {
			map[string]string{"config.txt": plainConfig + "AGENT_NODE 1 0\nBUFFER_SIZE 1000\n"},
			"config.txt:6: AGENT_NODE 0 is not a host of topology.txt, want one",
		},
		"no congestion control": {
			map[string]string{"config.txt": plainConfig + "NO_CC_NODE 1 9\nBUFFER_SIZE 1000\n"},
			"config.txt:6: NO_CC_NODE 9 is not a host of topology.txt, want one",
		},
		"small buffer": {
			map[string]string{"config.txt": plainConfig + "EPOCH_TIME 1000\nBUFFER_SIZE 40\n"},
			"config.txt:7: BUFFER_SIZE of 40KiB is not enough for s0: mmu: buffer 40KiB, want more than",
		},
		"HPCC-PINT": {
			map[string]string{"config.txt": plainConfig + "CC_MODE 10\n"},
			"config.txt:6: CC_MODE 10 is HPCC-PINT, a congestion control that Weft does not have, want 0, 1, 3, 7 or 8 (none, DCQCN, HPCC, TIMELY, DCTCP), or --dcqcn",
		},
		"HPCC without windows": {
			map[string]string{"config.txt": plainConfig + "CC_MODE 3\nHAS_WIN 0\n"},
			"config.txt:7: HAS_WIN 0 with CC_MODE 3 (HPCC), want 1",
		},
		"HPCC and a rate its header has no code for": {
			map[string]string{
				"config.txt":   "TOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\nENABLE_QCN 0\nCC_MODE 3\n",
				"topology.txt": "3 1 2\n0\n0 1 40Gbps 1us 0\n2 0 100Gbps 1us 0\n",
			},
			"config.txt:4: CC_MODE 3 (HPCC): port 1 of s0 has 40Gb/s, want one of [25Gb/s 50Gb/s 100Gb/s 200Gb/s 400Gb/s]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := write(t, plain(tc.files))
			c, err := Read(config)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Build(c, Options{})
			dir := filepath.Dir(config)
			if err == nil || !strings.HasPrefix(strings.ReplaceAll(strings.TrimPrefix(err.Error(), dir+"/"), dir, "DIR"), tc.want) {
				t.Errorf("Build = %v, %v; want an error that begins %q", s, err, tc.want)
			}
		})
	}
}

func TestBuildAsDCQCN(t *testing.T) {
	c, err := Read(write(t, plain(map[string]string{"config.txt": plainConfig + "CC_MODE 10\n"})))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Build(c, Options{}); !errors.Is(err, ErrControl) {
		t.Errorf("Build of HPCC-PINT says %v; want ErrControl", err)
	}
	s, err := Build(c, Options{AsDCQCN: true})
	if err != nil {
		t.Fatal(err)
	}
	const note = "CC_MODE 10 (HPCC-PINT) is run with DCQCN (--dcqcn): rates and completion times are not those of HPCC-PINT"
	if congestion.TraitsOf(s.Sim.Congestion).Name != "dcqcn" || !slices.Contains(s.Notes, note) {
		t.Errorf("control %v, notes %q; want DCQCN and a note that says so", s.Sim.Congestion, s.Notes)
	}
}

func TestReadNeedsAFile(t *testing.T) {
	if c, err := Read(filepath.Join(t.TempDir(), "none.txt")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Read of no file = %v, %v; want ErrNotExist", c, err)
	}
}

func TestFlowsAreSorted(t *testing.T) {
	c, err := Read(write(t, plain(map[string]string{"flow.txt": "3\n1 2 3 100 5000 2.5\n1 2 3 100 6000 2\n1 2 3 100 7000 9\n"})))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Build(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Flows[0].Bytes != 6000 || s.Flows[0].SrcPort != 10000 || s.Flows[1].SrcPort != 10001 {
		t.Errorf("flows are %+v; want them by start, with ports in that order", s.Flows)
	}
	for _, want := range []string{"does not ascend by start", "1 of 3 flows start after the end of the run at +3.01s"} {
		if !slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("notes are %q; want one with %q", s.Notes, want)
		}
	}
}

// TestBufferUnit: the unit of BUFFER_SIZE is the one of the options.
func TestBufferUnit(t *testing.T) {
	c, err := Read("testdata/star/config.txt")
	if err != nil {
		t.Fatal(err)
	}
	for unit, want := range map[model.Bytes]model.Bytes{0: 16 * model.MiB, model.MiB: 16 * model.MiB, 256 * model.KiB: 4 * model.MiB} {
		s, err := Build(c, Options{Seed: 1, BufferUnit: unit})
		if err != nil {
			t.Fatal(err)
		}
		if s.Sim.Buffer != want || c.Buffer != 16*model.MiB {
			t.Errorf("unit %v: buffer %v, configuration %v; want %v, and the configuration unchanged", unit, s.Sim.Buffer, c.Buffer, want)
		}
	}
}

package scenario

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/sim"
)

// runWorkload runs a sample file and checks that every flow finished.
func runWorkload(t *testing.T, format, path, topology string) *Result {
	t.Helper()
	s, err := ReadWorkload(format, path, topology)
	if err != nil {
		t.Fatal(err)
	}
	r := runScenario(t, s)
	if r.Summary.Flows.Total == 0 || r.Summary.Flows.Finished != r.Summary.Flows.Total || r.Verdict != Pass {
		t.Errorf("%s: %d of %d flows finished, verdict %s; want all, and PASS", path, r.Summary.Flows.Finished,
			r.Summary.Flows.Total, r.Verdict)
	}
	return r
}

// within reports whether got is within a share of want.
func within(got, want time.Duration, share float64) bool {
	return math.Abs(float64(got-want)) <= share*float64(want)
}

// TestHTSimSamplesTakeTheIdealTime: on an idle fabric the ring of the all-gather
// takes three transmissions and three paths, and the flow after its barrier
// one more; the permutation is bounded by its links.
func TestHTSimSamplesTakeTheIdealTime(t *testing.T) {
	const dir = "../examples/htsim/"
	r := runWorkload(t, "htsim", dir+"allgather.cm", dir+"leaf-spine.topo")
	// Frames of 1024 bytes have 1098; 90 µs at 100 Gb/s. Between racks 3.9 µs of
	// links and switches, and a frame stored in each of three switches.
	perByte := func(bytes float64) time.Duration {
		return time.Duration(bytes / 1024 * 1098 * 8 / 100)
	}
	want := 3*(perByte(1e6)+3900+3*88) + perByte(5e5) + 1300 + 88 // the last one within a rack
	last := time.Duration(0)
	for _, f := range r.Run.Flows {
		if s := f.Slowdown(); s > 1.1 {
			t.Errorf("flow %s>%s takes %.2f times its ideal; want it alone", f.Src, f.Dst, s)
		}
		last = max(last, time.Duration(f.Finish))
	}
	if !within(last, want, 0.05) {
		t.Errorf("all-gather ends at %v; want %v", last, want)
	}
	if len(r.Injected) != 1 || !strings.Contains(r.Injected[0], "link-down at tor1 Ethernet16") {
		t.Errorf("injected %q; want the failed uplink of tor1", r.Injected)
	}
	for _, p := range r.Run.Ports {
		if p.Node == "tor1" && p.Interface == "Ethernet16" {
			for _, s := range p.Samples {
				if s.Tx > 0 {
					t.Fatalf("tor1 Ethernet16 sent %v at %v; want nothing: it is down", s.Tx, s.At)
				}
			}
		}
	}
	r = runWorkload(t, "htsim", dir+"permutation.cm", dir+"fat-tree.topo")
	for _, f := range r.Run.Flows {
		if f.FCT() < perByte(2e6) {
			t.Errorf("flow %s>%s took %v; want at least the %v of its link", f.Src, f.Dst, f.FCT(), perByte(2e6))
		}
	}
}

// TestWorkloadWithoutTopology: the smallest fat-tree with enough hosts.
func TestWorkloadWithoutTopology(t *testing.T) {
	s, err := ReadWorkload("htsim", "../examples/htsim/permutation.cm", "")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.Topology.Fabric.Hosts()); n != 16 || !strings.Contains(s.Notes[0], "fat-tree of k=4") {
		t.Errorf("%d hosts, notes %q; want 16, and a note about k=4", n, s.Notes)
	}
}

// TestWorkloadsInScenarios: a scenario names a workload file as traffic, and maps
// its ranks to hosts.
func TestWorkloadsInScenarios(t *testing.T) {
	load := func(path string) ([]byte, error) {
		if path == "dir/two.cm" {
			return []byte("Nodes 2\nConnections 1\n0->1 start 0 size 1000 prio 4\n"), nil
		}
		return nothing(path)
	}
	text := ring + "traffic:\n  - {kind: htsim, file: two.cm, hosts: [h4, h1]}\n"
	s, err := parse("dir/x.yaml", []byte(text), load)
	if err != nil {
		t.Fatal(err)
	}
	r := runScenario(t, s)
	if f := r.Run.Flows[0]; f.Src != "h4" || f.Dst != "h1" || !f.Finished || f.Group != "htsim" {
		t.Errorf("flow %+v; want h4>h1, finished", f)
	}
	if notes := strings.Join(r.Run.Notes, "\n"); !strings.Contains(notes, "prio has no effect") {
		t.Errorf("notes %q; want one about prio", notes)
	}
	missing := strings.Replace(text, "two.cm", "2.cm", 1)
	if _, err := parse("dir/x.yaml", []byte(missing), load); err == nil ||
		err.Error() != "dir/x.yaml:7: htsim: open dir/2.cm: no such file, want a file" {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := parse("dir/x.yaml", []byte(ring+"traffic:\n  - {kind: htsim}\n"), load); err == nil ||
		err.Error() != "dir/x.yaml:7: htsim has no file, want one" {
		t.Errorf("htsim without a file: %v", err)
	}
}

// TestGOALSamplesTakeTheIdealTime: chains of computations and messages take the
// sum of their parts on an idle fabric.
func TestGOALSamplesTakeTheIdealTime(t *testing.T) {
	r := runWorkload(t, "goal", "../examples/goal/tree.goal", "")
	// Two messages of 1 MB one after the other, 10 µs, a small message, 5 µs.
	const wire = 85_790 // 1 MB in frames of 1098 bytes per 1024 at 100 Gb/s
	path := r.CriticalPaths[0]
	if want := time.Duration(2*wire + 15_000 + 3*5_000); !within(path.Length, want, 0.05) {
		t.Errorf("the tree takes %v; want %v", path.Length, want)
	}
	if path.Computing != 15*time.Microsecond || path.Late > path.Length/50 ||
		path.Computing+path.Transfers+path.Waiting+path.Late != path.Length {
		t.Errorf("critical path %+v; want 15µs of computing, little lateness, and parts that add up", path)
	}
	r = runWorkload(t, "goal", "../examples/goal/allreduce.goal", "")
	path = r.CriticalPaths[0]
	if want := time.Duration(2 * (200_000 + 14*(wire+4_000))); !within(path.Length, want, 0.1) {
		t.Errorf("two steps take %v; want %v", path.Length, want)
	}
	if path.Computing != 400*time.Microsecond || path.Computing+path.Transfers+path.Waiting+path.Late != path.Length {
		t.Errorf("critical path %+v; want 400µs of computing, and parts that add up", path)
	}
}

// TestCriticalPathNamesTheStraggler: a host that computes three times as long,
// 400 µs more in each of two steps, delays everyone and is named. Of the second
// step a part is hidden: others are still sending.
func TestCriticalPathNamesTheStraggler(t *testing.T) {
	s, err := ReadWorkload("goal", "../examples/goal/allreduce.goal", "")
	if err != nil {
		t.Fatal(err)
	}
	before := runScenario(t, s).CriticalPaths[0]
	h5, _ := s.Topology.Fabric.ByName("h5")
	s.Faults = []Fault{{Kind: "straggler", Injection: sim.Injection{Fault: sim.Straggler{Host: h5, Factor: 3}}}}
	r := runScenario(t, s)
	path := r.CriticalPaths[0]
	if len(path.Delayed) == 0 || path.Delayed[0].By != "h5" || !path.Delayed[0].Computing ||
		path.Delayed[0].Late < 400*time.Microsecond {
		t.Errorf("delayed by %+v; want h5 computing, at least 400µs", path.Delayed)
	}
	if grew := path.Length - before.Length; grew < 400*time.Microsecond || grew > 820*time.Microsecond {
		t.Errorf("the job takes %v longer; want 400µs to 800µs", grew)
	}
	if !strings.Contains(path.String(), "delayed by h5 computing (+400 µs") {
		t.Errorf("%s; want it to name h5", path.String())
	}
	if len(r.Injected) != 1 || !strings.HasPrefix(r.Injected[0], "straggler at h5") {
		t.Errorf("injected %q; want the straggler", r.Injected)
	}
}

// TestChakraSampleTakesTheIdealTime: 100 µs, six steps of 1 MB around the ring,
// 50 µs, and three messages of 500 kB one after the other.
func TestChakraSampleTakesTheIdealTime(t *testing.T) {
	r := runWorkload(t, "chakra", "../examples/chakra/train", "")
	const wire = 85_790 // 1 MB in frames of 1098 bytes per 1024 at 100 Gb/s
	path := r.CriticalPaths[0]
	want := time.Duration(100_000 + 6*(wire+4_000) + 50_000 + 3*(wire/2+4_000))
	if !within(path.Length, want, 0.05) || path.Computing != 150*time.Microsecond {
		t.Errorf("critical path %+v; want %v, of which 150µs computing", path, want)
	}
	if n := len(r.Run.Flows); n != 4*6+3 {
		t.Errorf("%d flows; want 27", n)
	}
	if n := len(r.Run.Computations); n != 8 {
		t.Errorf("%d computations; want two of each rank", n)
	}
	if _, err := ReadWorkload("chakra", "none", ""); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("traces that are not there: %v", err)
	}
}

package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/scenario/hpcc"
)

const simaiDir = "../examples/simai/"

func readSimAI(t *testing.T, workload, network string) *Scenario {
	t.Helper()
	f := SimAIFiles{Workload: simaiDir + workload, Topology: simaiDir + "rails.topo"}
	if network != "" {
		f.Network = simaiDir + network
	}
	s, err := ReadSimAI(f, hpcc.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSimAISampleTakesTheIdealTime: tensor parallel collectives of 8 GPUs go by NVLink
// and the replicas' all-reduces of 2 by 100 Gb/s rails.
func TestSimAISampleTakesTheIdealTime(t *testing.T) {
	for _, network := range []string{"", "network.conf"} {
		r := runScenario(t, readSimAI(t, "dense.txt", network))
		if r.Verdict != Pass || len(r.CriticalPaths) != 1 || r.Summary.Flows.Finished != r.Summary.Flows.Total {
			t.Fatalf("%s: %v, %d of %d flows finished, critical paths %+v; want all, and one path", network, r.Verdict,
				r.Summary.Flows.Finished, r.Summary.Flows.Total, r.CriticalPaths)
		}
		// All-reduces of the replicas end the iteration: they begin when the input gradient
		// of the last layer has been computed, and run one after the other.
		const computing = (20 + 50 + 80 + 160) * time.Microsecond
		// Until then a ring of 8 GPUs has passed on 7/8 of 1.6 MB for each all-gather and
		// reduce-scatter, twice that for the all-reduce: 5 × 1.4 MB at 2.4 Tb/s. Two
		// replicas pass on the whole of 6.4 and 3.2 MB.
		transfers := (5*1.4e6*8/2.4e12 + 9.6e6*8/100e9) * float64(time.Second)
		least := computing + time.Duration(transfers)
		most := computing + time.Duration(1.1*transfers) + 6*14*2*time.Microsecond
		if got := r.CriticalPaths[0].Length; got < least || got > most {
			t.Errorf("%s: takes %v; want from %v to %v", network, got, least, most)
		}
		if got := r.CriticalPaths[0].Computing; got < computing || got > computing+2*time.Microsecond {
			t.Errorf("%s: %v of computing on the critical path; want %v", network, got, computing)
		}
		for i := range r.Run.Flows {
			f := &r.Run.Flows[i]
			if s := f.Slowdown(); network == "" && s > 40 {
				t.Errorf("%s to %s: slowdown %.1f; want a plausible one", f.Src, f.Dst, s)
			}
		}
	}
}

// TestSimAIBytesAreThoseOfTheLines: each collective's bytes by the formulas, in all
// groups.
func TestSimAIBytesAreThoseOfTheLines(t *testing.T) {
	for workload, want := range map[string]int64{
		// Of 2 groups of 8: an all-reduce, and two all-gathers and reduce-scatters;
		// of 8 groups of 2: all-reduces.
		"dense.txt": 2*(14*1_600_000+4*7*1_600_000) + 8*2*(3_200_000+6_400_000),
		// Of 4 groups of 4 experts: 3 all-to-alls of 3/4 of a buffer from every rank; of
		// 8 groups of 2 replicas of experts: an all-reduce.
		"experts.txt": 3*16*800_000*3/4 + 8*2*1_600_000,
	} {
		r := runScenario(t, readSimAI(t, workload, ""))
		var got int64
		for i := range r.Run.Flows {
			got += int64(r.Run.Flows[i].Bytes)
		}
		if got != want || r.Summary.Flows.Finished != r.Summary.Flows.Total {
			t.Errorf("%s: %d bytes in %d of %d flows; want %d, and all", workload, got, r.Summary.Flows.Finished, r.Summary.Flows.Total, want)
		}
	}
}

// TestSimAIDirectory: files are known by their content.
func TestSimAIDirectory(t *testing.T) {
	dir := t.TempDir()
	for from, to := range map[string]string{"dense.txt": "w", "rails.topo": "t", "network.conf": "n.conf"} {
		data, err := os.ReadFile(simaiDir + from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "README"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := FindSimAI(dir)
	want := SimAIFiles{filepath.Join(dir, "w"), filepath.Join(dir, "t"), filepath.Join(dir, "n.conf")}
	if err != nil || got != want {
		t.Errorf("FindSimAI = %+v, %v; want %+v", got, err, want)
	}
	if err := os.Rename(filepath.Join(dir, "t"), filepath.Join(dir, "x.conf")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "y.conf"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := FindSimAI(dir); err == nil || !strings.Contains(err.Error(), "y.conf: another network configuration is ") {
		t.Errorf("FindSimAI of two configurations = %v; want an error", err)
	}
	if _, err := FindSimAI(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no workload, want a file that begins with HYBRID") {
		t.Errorf("FindSimAI of an empty directory = %v; want an error", err)
	}
}

// TestSimAINetwork: what HPCC's keys say holds, and what has no effect is said.
func TestSimAINetwork(t *testing.T) {
	s := readSimAI(t, "dense.txt", "network.conf")
	if !s.Sim.HPCC || s.Sim.MTU != 9000 || s.Sim.Buffer != 32<<20 || s.Routes == nil {
		t.Errorf("simulator %+v; want HPCC's, packets of 9000 bytes and 32 MiB", s.Sim)
	}
	notes := strings.Join(s.Notes, "\n")
	for _, want := range []string{"no entry for [2.4Tb/s]", "BW_MON_FILE", "SIMULATOR_STOP_TIME because the run ends when the workload has ended"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes %s\nwant %q among them", notes, want)
		}
	}
	if strings.Contains(notes, "PFC cannot fire") {
		t.Errorf("notes %s\nwant none that PFC cannot fire: a GPU's rail is slower than its NVLink", notes)
	}
	bad := filepath.Join(t.TempDir(), "bad.conf")
	for text, want := range map[string]string{
		"CC_MODE 1\nBUFFER_SIZES 3\n": `bad.conf:2: unknown key "BUFFER_SIZES", want BUFFER_SIZE`,
		"LINK_DOWN 100 1 2\n":         "bad.conf:1: LINK_DOWN with a time, want 0 0 0: links go down by faults of a scenario",
	} {
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadSimAI(SimAIFiles{simaiDir + "dense.txt", simaiDir + "rails.topo", bad}, hpcc.Options{Seed: 1})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("ReadSimAI with %q = %v; want %s", text, err, want)
		}
	}
}

// TestSimAIOfAScenario: a scenario names the file and the size of servers.
func TestSimAIOfAScenario(t *testing.T) {
	text := `
duration: 50ms
stop-when-finished: on
topology: {file: ../examples/simai/rails.topo}
traffic: [{kind: simai, file: ../examples/simai/experts.txt, ranks-per-server: 8}]
faults: [{kind: straggler, host: h3, factor: 4}]
`
	s, err := Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r := runScenario(t, s)
	p := r.CriticalPaths[0]
	if len(p.Delayed) == 0 || p.Delayed[0].By != "h3" || !p.Delayed[0].Computing || p.Delayed[0].Late < 300*time.Microsecond {
		t.Errorf("delayed by %+v; want h3 computing by 3 × 121 µs", p.Delayed)
	}
	if _, err := Parse("x.yaml", []byte(strings.Replace(text, "ranks-per-server: 8", "ranks-per-server: 0", 1))); err == nil ||
		err.Error() != "x.yaml:5: ranks-per-server 0, want 1 or more" {
		t.Errorf("Parse = %v; want an error at line 5", err)
	}
}

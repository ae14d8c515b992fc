package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/hpcc"
	"github.com/weft-telemetry/weft/sim"
)

func readExample(t *testing.T, name string) *Scenario {
	t.Helper()
	s, err := Read("../examples/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// roots are the causes that diagnoses name.
func roots(r *Result) map[string]bool {
	out := map[string]bool{}
	for _, d := range r.Diagnoses {
		if d.Anomaly != anomaly.None && d.Cause != anomaly.NoRootCause {
			out[fmt.Sprintf("%v at %v", d.Cause, d.Initial)] = true
		}
	}
	return out
}

// TestClocksApart: devices' clocks differ by up to 100 µs. What is expected of
// the examples holds.
func TestClocksApart(t *testing.T) {
	race.LeaveToPlainRun(t)
	for i, name := range []string{"incast", "storm", "deadlock", "deadlock-contention", "contention"} {
		s := readExample(t, name)
		for id := range s.fabric().Nodes() {
			offset := time.Duration((id*37+i*11)%101) * time.Microsecond
			s.Clocks = append(s.Clocks, Clock{model.NodeID(id), sim.Clock{Offset: offset}})
		}
		if r := runScenario(t, s); r.Verdict != Pass {
			t.Errorf("%s: %+v", name, r.Expected)
		}
	}
}

// TestLostReports loses a fifth of them. What is found then is found without
// loss, too: no cause is invented.
func TestLostReports(t *testing.T) {
	race.LeaveToPlainRun(t)
	found := 0
	for _, name := range []string{"storm", "deadlock-injection", "slow-receiver"} {
		whole := roots(runScenario(t, readExample(t, name)))
		for seed := range uint64(2) {
			s := readExample(t, name)
			s.Management.Loss = 0.2
			s.Seed += seed
			if seed > 0 {
				whole2 := readExample(t, name)
				whole2.Seed += seed
				maps.Copy(whole, roots(runScenario(t, whole2)))
			}
			r := runScenario(t, s)
			if r.Telemetry.lost() == 0 && r.Telemetry.Reports > 50 {
				t.Errorf("%s: no report of %d lost; want a fifth", name, r.Telemetry.Reports)
			}
			for root := range roots(r) {
				found++
				if !whole[root] {
					t.Errorf("%s, seed %d: %s; want one of %v", name, s.Seed, root, slices.Sorted(maps.Keys(whole)))
				}
			}
		}
	}
	if found == 0 {
		t.Error("nothing was found with a fifth of the reports lost; want some of it")
	}
}

// TestFlowsAtSomeSwitches: where only ToR switches keep flows, pauses are still
// followed, and the cause at a ToR is named.
func TestFlowsAtSomeSwitches(t *testing.T) {
	s := readExample(t, "incast")
	tors, rest := []model.NodeID{}, []model.NodeID{}
	for _, id := range s.fabric().Switches() {
		if strings.HasPrefix(s.fabric().Node(id).Name, "tor") {
			tors = append(tors, id)
		} else {
			rest = append(rest, id)
		}
	}
	without := defaultEpoch()
	without.Flows = 0
	p := Program{Kind: "epoch", Switches: rest}
	if err := without.program(&p); err != nil {
		t.Fatal(err)
	}
	s.Telemetry[0].Switches = tors
	s.Telemetry = append(s.Telemetry, p)
	r := runScenario(t, s)
	isIncast := func(d diagnose.VerdictView) bool {
		return d.Initial != nil && d.Initial.Node == "tor7" && len(d.Culprits) >= 10
	}
	if r.Verdict != Pass || !slices.ContainsFunc(r.Diagnoses, isIncast) {
		t.Errorf("%+v, %+v; want the incast at tor7 and its flows", r.Expected, r.Diagnoses)
	}
	for _, d := range r.Diagnoses {
		if d.Initial != nil && !strings.HasPrefix(d.Initial.Node, "tor") && len(d.Culprits) > 0 {
			t.Errorf("culprits %v at %v, whose switch keeps no flows", d.Culprits, d.Initial)
		}
	}
}

// TestASwitchThatDoesNotAnswer: polls end at a switch without the program.
func TestASwitchThatDoesNotAnswer(t *testing.T) {
	s := readExample(t, "storm")
	var most []model.NodeID
	for _, id := range s.fabric().Switches() {
		if s.fabric().Node(id).Name != "tor7" {
			most = append(most, id)
		}
	}
	s.Telemetry[0].Switches = most
	s.ExpectDiagnoses = nil
	for _, d := range runScenario(t, s).Diagnoses {
		if d.Cause == anomaly.HostInjection {
			t.Errorf("%s; want no word of a host: the switch that knows did not answer", d.Sentence())
		}
	}
}

// TestQuietFabricHasNoDiagnosis: at moderate load nothing is said, or only that
// flows share a queue.
func TestQuietFabricHasNoDiagnosis(t *testing.T) {
	race.LeaveToPlainRun(t)
	s := readExample(t, "websearch")
	s.Agents = DefaultAgents()
	s.Telemetry = append(s.Telemetry, epochProgram(time.Millisecond))
	s.Management.Delay = 100 * time.Microsecond
	s.Duration = min(s.Duration, 2*time.Millisecond)
	r := runScenario(t, s)
	for _, d := range r.Diagnoses {
		if d.Anomaly > anomaly.FlowContention && r.Truth != nil && len(r.Run.Pauses) == 0 {
			t.Errorf("%s; no pause was sent", d.Sentence())
		}
	}
}

// TestDiagnosesJSON holds the names that others read in the result.
func TestDiagnosesJSON(t *testing.T) {
	r := runScenario(t, readExample(t, "deadlock"))
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Diagnoses []map[string]any `json:"diagnoses"`
	}
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Diagnoses) == 0 {
		t.Fatal("no diagnoses in the result's JSON")
	}
	for _, key := range []string{
		"anomaly", "root_cause", "cause_detail", "initial_port", "culprits", "spreaders", "pfc_path", "deadlock_cycle",
		"persistent", "routing_fault", "victim", "confidence", "switches_polled", "telemetry_bytes", "remedy",
	} {
		if _, ok := back.Diagnoses[0][key]; !ok {
			t.Errorf("a diagnosis has no %q: %v", key, back.Diagnoses[0])
		}
	}
	again, err := json.Marshal(runScenario(t, readExample(t, "deadlock")))
	if err != nil || string(again) != string(b) {
		t.Error("two runs of one scenario give different JSON")
	}
}

// fork writes files of Hawkeye's fork and reads them.
func fork(t *testing.T, topology, flows, routes string, agents string) *Scenario {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"topology.txt": topology, "flow.txt": flows, "routes.txt": routes,
		"config.txt": "TOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\nROUTE_FILE routes.txt\nSIMULATOR_STOP_TIME 2.01\nCC_MODE 1\nHAS_WIN 0\n" +
			"KMIN_MAP 2 100000000000 400 400000000000 1600\nKMAX_MAP 2 100000000000 1600 400000000000 6400\nPMAX_MAP 2 100000000000 0.2 400000000000 0.2\nBUFFER_SIZE 3000\nEPOCH_TIME 100000\nAGENT_THRESHOLD 30\n" + agents,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	c, err := hpcc.Read(filepath.Join(dir, "config.txt"))
	if err != nil {
		t.Fatal(err)
	}
	setup, err := hpcc.Build(c, hpcc.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return FromHPCC(c, setup)
}

// TestForkFindsTheIncast is the paper's Fig. 1(a): h0's flow never meets the
// burst into h2, and is paused by it.
//
//	h0, h1 - s8 - s9 - h2, h3 … and h4 to h7 at s9
func TestForkFindsTheIncast(t *testing.T) {
	topology := "10 2 9\n8 9\n"
	for _, h := range []int{0, 1} {
		topology += fmt.Sprintf("%d 8 100Gbps 1us 0\n", h)
	}
	for _, h := range []int{2, 3, 4, 5, 6, 7} {
		topology += fmt.Sprintf("%d 9 100Gbps 1us 0\n", h)
	}
	topology += "8 9 400Gbps 1us 0\n"
	flows := "6\n0 3 3 100 9000000 2\n1 2 3 100 4000000 2.00002\n"
	for _, h := range []int{4, 5, 6, 7} {
		flows += fmt.Sprintf("%d 2 3 100 4000000 2.00002\n", h)
	}
	r := runScenario(t, fork(t, topology, flows, "", "AGENT_NODE 1 0\nNO_CC_NODE 8 0 1 2 3 4 5 6 7\n"))
	if len(r.Diagnoses) == 0 {
		t.Fatalf("no diagnosis of %v", r.DiagnosisRequests)
	}
	d := r.Diagnoses[0]
	if d.Anomaly != anomaly.PFCBackpressure || d.Cause != anomaly.ContendingFlows || d.Initial.Node != "s9" || d.Initial.Peer != "h2" || d.Victim != (diagnose.FlowView{Src: "h0", Dst: "h3"}) || r.Verdict != UnexpectedFault {
		t.Errorf("%v: %s; want PFC backpressure from s9 to h2, and FAULT", r.Verdict, d.Sentence())
	}
	for _, from := range []string{"h1", "h4", "h5", "h6", "h7"} {
		if !slices.ContainsFunc(d.Culprits, func(c diagnose.CulpritView) bool { return c.Src == from && c.Dst == "h2" }) {
			t.Errorf("culprits %v; want %s>h2 among them", d.Culprits, from)
		}
	}
}

// TestForkFindsTheDeadlock: a route sends packets along the long side of a
// ring.
func TestForkFindsTheDeadlock(t *testing.T) {
	c, err := hpcc.Read("hpcc/testdata/ring/config.txt")
	if err != nil {
		t.Fatal(err)
	}
	setup, err := hpcc.Build(c, hpcc.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	r := runScenario(t, FromHPCC(c, setup))
	if len(r.Diagnoses) == 0 {
		t.Fatalf("no diagnosis of %v", r.DiagnosisRequests)
	}
	d := r.Diagnoses[0]
	if d.Anomaly != anomaly.DeadlockInLoop || !d.Persistent || len(d.DeadlockCycle) != 3 || d.Fault == nil || d.Cause != anomaly.ContendingFlows {
		t.Errorf("%s; want a persistent deadlock cycle of three ports, and its wrong route", d.Sentence())
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/scenario"
)

// queryScenario runs a command line on a scenario and decodes its JSON.
func queryScenario[T any](t *testing.T, code int, args ...string) (v T) {
	t.Helper()
	race.LeaveToPlainRun(t)
	var out, errs bytes.Buffer
	if got := (&app{}).run(append(args, "--quiet", "-o", "json"), &out, &errs); got != code {
		t.Fatalf("weft %q exits with %d; want %d\n%s%s", args, got, code, &out, &errs)
	}
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		t.Fatalf("weft %q prints %s: %v", args, &out, err)
	}
	return v
}

// droppedPackets returns the packets that the simulator dropped in a scenario, by
// reason.
func droppedPackets(t *testing.T, file string) map[string]uint64 {
	t.Helper()
	s, err := scenario.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := scenario.Run(context.Background(), s, scenario.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	drops := map[string]uint64{}
	for _, d := range r.Run.Drops {
		drops[d.Reason] += d.Packets
	}
	return drops
}

func causes(list []api.Incident) (names []string) {
	for _, in := range list {
		if !slices.Contains(names, in.Cause) {
			names = append(names, in.Cause)
		}
	}
	slices.Sort(names)
	return names
}

// TestFlowsetsFindThreeFaults: of a scenario with three faults the reports of the
// switches give the faults, and the losses to the packet.
func TestFlowsetsFindThreeFaults(t *testing.T) {
	const file = "../../examples/flow-faults.yaml"
	list := queryScenario[flowList](t, exitFault, "flows", file, "--top", "100")
	for _, want := range []string{"blackhole", "loop"} {
		if !slices.Contains(causes(list.Incidents), want) {
			t.Errorf("incidents of causes %q; want %s among them", causes(list.Incidents), want)
		}
	}
	lost := uint64(0)
	for i := range list.Items {
		lost += list.Items[i].LostPackets
	}
	// Packets whose TTL expires in the loop are not seen to be lost.
	drops := droppedPackets(t, file)
	if want := drops["silent"] + drops["blackhole"]; lost != want || want == 0 {
		t.Errorf("%d packets lost by the reports; the simulator dropped %d", lost, want)
	}
	if len(list.Items) != 19 {
		t.Errorf("%d flows; want 19", len(list.Items))
	}
	largest := queryScenario[api.FlowDetail](t, exitFine, "flows", file, "--flow", list.Items[0].Flow.String())
	loops := func(p api.FlowPoint) bool { // the switches of the loop count packets many times
		return len(p.Path) == 4 && p.Path[2].Switch == "tor1" && p.Path[3].Switch == "leaf0" && p.Path[3].Packets > 10*p.Path[0].Packets
	}
	if !slices.ContainsFunc(largest.Series, loops) {
		t.Errorf("path of the largest flow by slot %+v; want the loop of tor1 and leaf0 in one", largest.Series)
	}
}

// TestTracesFindTheLinkAndTheLoop: mirrors alone locate the lossy link and the
// loop, and nearly every packet that the link dropped.
func TestTracesFindTheLinkAndTheLoop(t *testing.T) {
	const file = "../../examples/trace.yaml"
	list := queryScenario[traceList](t, exitFault, "trace", file, "--top", "1000", "--filter",
		"trace.drop && trace.last == leaf0", "--to", "5ms")
	if got := causes(list.Incidents); !slices.Contains(got, "loop") || !slices.Contains(got, "loss") {
		t.Errorf("incidents of causes %q; want loop and loss", got)
	}
	n, want := uint64(len(list.Items)), droppedPackets(t, file)["silent"]
	if want == 0 || n < want*9/10 || n > want*11/10 {
		t.Errorf("%d packets were seen last at leaf0; the simulator dropped %d after it", n, want)
	}
}

const threeFlows = `name: small
duration: 4ms
topology:
  generate: {kind: leaf-spine, leaves: 3, spines: 2, hosts: 2}
traffic:
  - {kind: persistent, pairs: [h0>h3, h1>h4, h2>h5], rate: 500Mb/s, start: 10us, stop: 3ms}
telemetry:
  - {kind: epoch}
  - {kind: mirror, lists: 2, protocol: off}
`

// TestDebugMarksAndCounters: marked packets are traced completely, whatever the
// sample is, and a custom counter counts them.
func TestDebugMarksAndCounters(t *testing.T) {
	file := filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(file, []byte(threeFlows), 0o600); err != nil {
		t.Fatal(err)
	}
	const marked = "infiniband && ip.dst in {h3, h4} && infiniband.bth.psn < 20"
	list := queryScenario[markList](t, exitFine, "debug", file, "--filter", marked, "--top", "1000")
	if len(list.Items) != 1 || list.Items[0].Traces != 40 || len(list.Traces) != 40 {
		t.Errorf("marks %+v and %d traces; want 20 packets of two flows", list.Items, len(list.Traces))
	}
	for i := range list.Traces {
		if one := &list.Traces[i]; len(one.Path) != 3 || !strings.Contains(one.Why, "debug") {
			t.Errorf("trace %+v; want a marked packet seen by three switches", one)
		}
	}
}

// TestProbesOfAScenario: of two flows one loses packets; the link between is
// measured.
func TestProbesOfAScenario(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lossy.yaml")
	if err := os.WriteFile(file, []byte(`duration: 4ms
topology:
  generate: {kind: leaf-spine, leaves: 2, spines: 1, hosts: 2}
traffic:
  - {kind: persistent, pairs: [h0>h2, h3>h1], rate: 1Gb/s, stop: 3ms, transport: udp}
faults:
  - {kind: silent-drop, port: leaf0>spine0, share: 30%, at: 1ms}
telemetry:
  - {kind: mirror, every: 50, lists: 2}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	list := queryScenario[api.Page[api.Probe]](t, exitFault, "probe", file, "--interval", "10us", "--flow", "h0>h2",
		"--flow", "h3>h1",
		"--link", "leaf1>spine0").Items
	if len(list) != 3 {
		t.Fatalf("%d probes; want those of two flows and a link", len(list))
	}
	if p := &list[0]; p.Outcome != "random" || p.LostAt == nil || p.LostAt.Node != "leaf0" {
		t.Errorf("flow h0>h2: %s at %+v; want random at leaf0", p.Outcome, p.LostAt)
	}
	if p := &list[1]; p.Outcome != "passed" {
		t.Errorf("flow h3>h1: %s; want passed", p.Outcome)
	}
	if p := &list[2]; p.Arrived != 20 || p.RTT == nil || p.RTT.MinNs < 2000 || p.RTT.MinNs > 2100 {
		t.Errorf("link: %d of 20 returned, %+v; want all, 2 µs", p.Arrived, p.RTT)
	}
	path := queryScenario[api.Page[api.Probe]](t, exitFine, "probe", file, "--flow", "h3>h1", "--path").Items
	if len(path) != 1 || len(path[0].Hops) != 3 {
		t.Errorf("path of h3>h1 %+v; want three hops", path)
	}
}

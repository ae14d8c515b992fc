package serve

import (
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/model"
)

// TestPlanFollowsTheFlows: lists of flowsets grow with controller.flows, the plan says
// how many slots fit, and all bounds are compared with memory.limit.
func TestPlanFollowsTheFlows(t *testing.T) {
	cfg, _ := fatTree(t)
	small, err := DryRun(*cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Controller.Flows = 100_000
	large, err := DryRun(*cfg)
	if err != nil {
		t.Fatal(err)
	}
	if n := small.Lists[0].Entries; n != 1024 {
		t.Errorf("lists of flowsets hold %d chunks by default; want 1,024", n)
	}
	s := large.Flowsets
	if s.Flows != 100_000 || s.Chunks < 2500 || s.Held < 2 || float64(large.Lists[0].Entries) < s.Held*float64(s.Chunks) || int(s.Buffer)/datagramSize < len(large.Switches)*s.Chunks {
		t.Errorf("%+v in lists of %d entries; want at least two slots, and one of all switches in the receive buffers", s, large.Lists[0].Entries)
	}
	more, buffer := large.Lists[0].Bytes-small.Lists[0].Bytes, large.Flowsets.Buffer-small.Flowsets.Buffer
	if more <= 0 || buffer <= 0 || large.MemorySum-small.MemorySum != model.Bytes(more)+buffer || large.MemoryLimit <= large.MemorySum {
		t.Errorf("lists take %d bytes more, the receive buffer %v; want the sum, %v before and %v now, to have both, and a limit above it, not %v",
			more, buffer, small.MemorySum, large.MemorySum, large.MemoryLimit)
	}
	lists := int64(0)
	for _, l := range large.Lists {
		lists += l.Bytes
	}
	for _, m := range large.Memory {
		if m.Setting == "controller.flows" && (m.Bytes < model.Bytes(lists)*99/100 || m.Bytes > model.Bytes(lists)*101/100) {
			t.Errorf("lists of %d bytes are %v of the memory", lists, m.Bytes)
		}
	}
	cfg.Memory.Limit = large.MemorySum - 1
	cfg.Controller.MaxFlows = 1 << 20
	if _, err := DryRun(*cfg); err == nil || !strings.Contains(err.Error(), "memory.limit") {
		t.Errorf("DryRun with a limit below the sum = %v; want an error", err)
	}
	cfg.Controller.Flows = 0
	if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), "controller.flows") {
		t.Errorf("Check with 0 flows = %v; want an error that names the setting", err)
	}
}

// TestPlanHasThePartitions: the controller gets the configured number, and the plan says
// what 0 is.
func TestPlanHasThePartitions(t *testing.T) {
	cfg, _ := fatTree(t)
	for configured, want := range map[int]int{0: flowwatch.DefaultPartitions(), 3: 3} {
		cfg.Controller.Partitions = configured
		f, err := readFabric(cfg)
		if err != nil {
			t.Fatal(err)
		}
		p, err := DryRun(*cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.controllerConfig(cfg, core.LastIDs{}).Flows.Partitions; got != configured || p.Partitions != want {
			t.Errorf("partitions %d: the controller gets %d, the plan has %d; want %d and %d", configured, got, p.Partitions, configured, want)
		}
	}
	for _, n := range []int{-1, flowwatch.MaxPartitions + 1} {
		cfg.Controller.Partitions = n
		if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), "controller.partitions") {
			t.Errorf("Check with %d partitions = %v; want an error that names the setting", n, err)
		}
	}
}

package serve

import (
	"testing"

	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/model"
)

// TestMaxFlowsFollowsTheMemory: where memory allows it, a million flows are followed.
func TestMaxFlowsFollowsTheMemory(t *testing.T) {
	cfg, f := fatTree(t)
	for _, tc := range []struct {
		set            int
		limit, machine model.Bytes
		want           int
	}{
		{0, 0, 0, leastFlows},
		{0, 0, 2 * model.GiB, leastFlows},
		{0, 0, 4 * model.GiB, 1 << 18},
		{0, 0, 64 * model.GiB, mostFlows},
		{5000, 0, 64 * model.GiB, 5000},
		{0, 3 * model.GiB, 64 * model.GiB, -1},
		{0, 64 * model.GiB, 0, mostFlows},
		{0, model.GiB, 0, leastFlows},
	} {
		cfg.Controller.MaxFlows, cfg.Memory.Limit, f.machine = tc.set, tc.limit, tc.machine
		got := f.maxFlows(cfg)
		if tc.want >= 0 && got != tc.want || tc.want < 0 && (got <= leastFlows || got >= mostFlows) {
			t.Errorf("max_flows %d, memory.limit %v, machine of %v: %d flows; want %d", tc.set, tc.limit, tc.machine, got, tc.want)
		}
		if _, err := memoryLimit(tc.limit, memoryShares(cfg, f)); tc.want < 0 && err != nil {
			t.Errorf("%d flows do not fit the limit that they were computed of: %v", got, err)
		}
		if n := f.controllerConfig(cfg, core.LastIDs{}).Flows.MaxFlows; n != got {
			t.Errorf("the analyses follow %d flows; want %d", n, got)
		}
	}
	if size := machineMemory(); size < 64*model.MiB {
		t.Errorf("memory of this machine = %v; want more", size)
	}
}

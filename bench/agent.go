package bench

import (
	"context"
	"fmt"
	"os"

	"github.com/weft-telemetry/weft/dataplane/ebpf"
)

var agentSuite = Suite{
	Name:  "agent",
	About: "count every flow in the kernel by eBPF, beside a hash map with an entry for every flow",
	Input: "TCP packets of 100,000 known IPv4 flows in random order by BPF_PROG_TEST_RUN; the kernel's own accounting of each program's time, less that of a program that does nothing",
	run:   compareAgent,
}

func compareAgent(ctx context.Context) ([]Result, error) {
	const name, peer, goal = "packet of a known flow", "eBPF hash map per flow", 2
	if os.Geteuid() != 0 {
		return []Result{{Name: name, Unit: "ns", Peer: peer, Goal: goal, Skipped: "needs root, to load eBPF programs"}}, nil
	}
	c, err := ebpf.MeasureCost(ctx, flowsetFlows, 10, 50_000)
	if err != nil {
		return nil, err
	}
	r := lowerIsBetter(name, c.Flowset-c.Nothing, "ns", peer, c.HashMap-c.Nothing, goal)
	r.Note = fmt.Sprintf("a program that does nothing takes %.0f ns", c.Nothing)
	return []Result{r}, nil
}

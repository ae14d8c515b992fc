package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/dataplane/ebpf"
)

var agentSuite = Suite{
	Name:  "agent",
	About: "count every flow in the kernel by eBPF, beside a hash map with an entry for every flow",
	Input: "TCP packets of 100,000 IPv4 flows in random order by BPF_PROG_TEST_RUN; the kernel's own accounting of each program's time, less that of a program that does nothing; " +
		"the CPU time of exporting and clearing a slot",
	run: compareAgent,
}

const (
	agentPeer = "eBPF hash map per flow"
	agentGoal = 2
	agentJobs = 3 // slots of a row
)

func compareAgent(ctx context.Context) ([]Result, error) {
	const name = "packet of a known flow"
	if os.Geteuid() != 0 {
		return []Result{skipped(name, "ns", agentPeer, agentGoal, "needs root, to load eBPF programs")}, nil
	}
	c, err := ebpf.MeasureCost(ctx, flowsetFlows, 10, 50_000)
	if err != nil {
		return nil, err
	}
	r := lowerIsBetter(name, c.Flowset-c.Nothing, "ns", agentPeer, c.HashMap-c.Nothing, agentGoal)
	r.Note = fmt.Sprintf("a program that does nothing takes %.0f ns", c.Nothing)
	results := []Result{r}
	for _, each := range []int{1, 3, 10} {
		r, err := compareAgentJob(ctx, each)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// compareAgentJob compares all of a slot's work, with the better of the hash maps. The flowset of
// the last slot is decoded: it must have the flows of the hash map.
func compareAgentJob(ctx context.Context, each int) (Result, error) {
	j, err := ebpf.MeasureJobs(ctx, flowsetFlows, each, agentJobs)
	if err != nil {
		return Result{}, err
	}
	set, err := assembleChunks(j.Chunks)
	if err != nil {
		return Result{}, err
	}
	var decoder flows.Decoder
	started := time.Now()
	d := decoder.SingleDecode(set)
	decoding := float64(time.Since(started)) / float64(flowsetFlows*each)
	if len(d.Records) != len(j.Records) {
		return Result{}, fmt.Errorf("the flowset has %d flows, the hash map %d", len(d.Records), len(j.Records))
	}
	for i := range d.Records {
		f := &d.Records[i]
		if want := j.Records[f.Key]; f.Packets != want.Packets || f.Bytes != want.Bytes {
			return Result{}, fmt.Errorf("flow %v has %d packets and %d bytes in the flowset, %+v in the hash map", f.Key, f.Packets, f.Bytes, want)
		}
	}
	peer, best := agentPeer, j.HashMap
	if j.CPUMap.Total() < best.Total() {
		peer, best = agentPeer+" and CPU", j.CPUMap
	}
	r := lowerIsBetter(fmt.Sprintf("slot, packets a flow: %d", each), j.Flowset.Total(), "ns", peer, best.Total(), agentGoal)
	r.Note = fmt.Sprintf("per packet, program + export: flowset %s, hash map %s, of each CPU %s; the collector decodes the flowset in %.0f ns",
		parts(j.Flowset), parts(j.HashMap), parts(j.CPUMap), decoding)
	return r, nil
}

func parts(j ebpf.Job) string { return fmt.Sprintf("%.0f + %.0f", j.Program, j.Export) }

// assembleChunks makes the flowset of its chunks.
func assembleChunks(chunks [][]byte) (*flows.Flowset, error) {
	a, err := flows.NewAssembler(flows.DefaultConfig())
	if err != nil {
		return nil, err
	}
	var out []*flows.Flowset
	for _, chunk := range chunks {
		if out, err = a.AddChunk(0, chunk, out); err != nil {
			return nil, err
		}
	}
	if len(out) != 1 {
		return nil, fmt.Errorf("%d flowsets assembled, want 1", len(out))
	}
	return out[0], nil
}

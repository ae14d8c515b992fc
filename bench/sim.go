package bench

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/weft-telemetry/weft/bench/ns3"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

var simSuite = Suite{
	Name:  "sim",
	About: "packet-hops per second of CPU, beside Debian's ns-3 3.37",
	Input: "fat-tree k=4, 100 Gb/s, 1 µs, 64 flows of 10 Gb/s, 1000 bytes of payload; ns-3 with UDP, Weft with RDMA, PFC, ECN, DCQCN and ECMP; then k=8 and k=16; then HPCC's fat.txt, 320 hosts, with 1000 flows of web search at 50 %",
	run: func(ctx context.Context) ([]Result, error) {
		if err := ns3.Available(); err != nil {
			return nil, err
		}
		const payload, stop = 1000, 2 * time.Millisecond
		peer, err := ns3.Run(ctx, peerConfig(payload, stop))
		if err != nil {
			return nil, err
		}
		theirs := float64(peer.PacketHops) / peer.CPU.Seconds() / 1e6
		ours, err := measureSim(ctx, 4, payload)
		if err != nil {
			return nil, err
		}
		results := []Result{more("packet-hops, telemetry off", ours.rate, "M/s", "ns-3 3.37", theirs, 100)}
		for _, k := range []int{8, 16} {
			bigger, err := measureSim(ctx, k, payload)
			if err != nil {
				return nil, err
			}
			results = append(results,
				more(fmt.Sprintf("packet-hops, k=%d", k), bigger.rate, "M/s", "Weft at k=4", ours.rate, 0.1),
				less(fmt.Sprintf("memory per flow, k=%d", k), bigger.perFlow, "KB", "Weft at k=4", ours.perFlow, 0.1))
		}
		files, err := measureHPCC(ctx)
		if err != nil {
			return nil, err
		}
		results = append(results, more("packet-hops, HPCC's files", files, "M/s", "HPCC's ns-3 fork (recorded)", forkRate, 10))
		return results, nil
	},
}

// simFigures is what one run of Weft's simulator gave.
type simFigures struct {
	rate    float64 // million packet-hops per second of CPU
	perFlow float64 // KB of live memory
}

// measureSim plays four paced flows from every host until the figure is steady.
func measureSim(ctx context.Context, k int, payload int32) (simFigures, error) {
	before := liveHeap()
	f, err := topo.FatTree(k, topo.DefaultLinks())
	if err != nil {
		return simFigures{}, err
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	if err != nil {
		return simFigures{}, err
	}
	cfg := sim.DefaultConfig()
	cfg.MTU = payload
	n, err := sim.New(routes, cfg)
	if err != nil {
		return simFigures{}, err
	}
	flows := simFlows(f)
	if err := n.AddFlows(flows); err != nil {
		return simFigures{}, err
	}
	n.Run(100 * engine.Microsecond) // the fabric fills
	hops, start := n.Counts.Hops, cpuTime()
	for cpuTime()-start < 2*time.Second {
		if err := ctx.Err(); err != nil {
			return simFigures{}, err
		}
		n.Run(n.Now() + 10*engine.Microsecond)
	}
	rate := float64(n.Counts.Hops-hops) / (cpuTime() - start).Seconds() / 1e6
	figures := simFigures{rate, float64(liveHeap()-before) / float64(len(flows)) / 1e3}
	runtime.KeepAlive(n)
	return figures, nil
}

// simFlows gives every host four flows of 10 Gb/s to hosts near and far.
func simFlows(f *topo.Fabric) (flows []traffic.Flow) {
	hosts := f.Hosts()
	for i, src := range hosts {
		for j := range 4 {
			flows = append(flows, traffic.Flow{
				Src: src, Dst: hosts[peerOf(i, j, len(hosts))], Stop: 1e15, Priority: 3,
				Rate: 10 * model.Gbps, Start: startOf(i, j),
			})
		}
	}
	return flows
}

func peerOf(i, j, hosts int) int { return (i + 1 + (2*j+1)*hosts/8) % hosts }

func startOf(i, j int) model.Time { return model.Time(100*j + i) }

// peerConfig is the same traffic for ns-3.
func peerConfig(payload model.Bytes, stop time.Duration) ns3.Config {
	c := ns3.Config{K: 4, Rate: 100 * model.Gbps, Delay: time.Microsecond, Payload: payload, Stop: stop}
	const hosts = 16
	for i := range hosts {
		for j := range 4 {
			c.Flows = append(c.Flows, ns3.Flow{
				Src: i, Dst: peerOf(i, j, hosts), Start: time.Duration(startOf(i, j)), Rate: 10 * model.Gbps,
				Bytes: model.Bytes(float64(10*model.Gbps) / 8 * stop.Seconds()),
			})
		}
	}
	return c
}

// cpuTime is what this process has used; beside other work it says more than
// the wall clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

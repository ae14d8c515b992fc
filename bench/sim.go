package bench

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/ns3"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

var simSuite = Suite{
	Name:  "sim",
	About: "packet-hops per second of CPU, compared with Debian's ns-3 3.37, and of wall time on two cores",
	Input: "fat-tree k=4, 100 Gb/s, 1 µs, 64 flows of 10 Gb/s, 1000 bytes of payload; ns-3 with UDP, Weft with RDMA, PFC, ECN, DCQCN and ECMP, without and with programs in every switch; then k=8, k=16 and k=32; then some of them on one core and on two; then HPCC's fat.txt, 320 hosts, with 1000 flows of web search at 50 %",
	run: func(ctx context.Context) ([]Result, error) {
		if err := ns3.Available(); err != nil {
			return nil, err
		}
		ours, results, err := compareNS3(ctx)
		if err != nil {
			return nil, err
		}
		for _, size := range []struct {
			k    int
			goal float64 // share of the rate at k=4
		}{{8, 0.5}, {16, 0.5}, {32, 0.25}} {
			k := size.k
			bigger, err := newSimRun(k, nil)
			if err != nil {
				return nil, err
			}
			if err := bigger.runFor(ctx, 2*time.Second); err != nil {
				return nil, err
			}
			results = append(results,
				higherIsBetter(fmt.Sprintf("packet-hops, k=%d", k), bigger.rate(), "M/s", "Weft at k=4", ours.rate(), size.goal),
				lowerIsBetter(fmt.Sprintf("memory per flow, k=%d", k), bigger.perFlow, "KB", "Weft at k=4",
					ours.perFlow, 0.1))
		}
		for _, size := range []struct {
			k        int
			programs programs
		}{{4, nil}, {8, nil}, {8, everyProgram}, {16, nil}} {
			cores, err := compareCores(ctx, size.k, size.programs)
			if err != nil {
				return nil, err
			}
			results = append(results, cores...)
		}
		files, err := measureHPCC(ctx)
		if err != nil {
			return nil, err
		}
		results = append(results, higherIsBetter("packet-hops, HPCC's files", files, "M/s",
			"HPCC's ns-3 fork (recorded)", forkRate, 15))
		return results, nil
	},
}

// simPayload is the payload of every packet of both sides.
const simPayload = 1000

// compareNS3 simulates the same flows in ns-3, in Weft, and in Weft with telemetry,
// in turn, so that other load on the machine slows all of them.
func compareNS3(ctx context.Context) (*simRun, []Result, error) {
	off, err := newSimRun(4, nil)
	if err != nil {
		return nil, nil, err
	}
	on, err := newSimRun(4, everyProgram)
	if err != nil {
		return nil, nil, err
	}
	var peer simRun
	for range 4 {
		r, err := ns3.Run(ctx, peerConfig(simPayload, 500*time.Microsecond))
		if err != nil {
			return nil, nil, err
		}
		peer.hops += int64(r.PacketHops)
		peer.cpu += r.CPU
		if err := off.runFor(ctx, 500*time.Millisecond); err != nil {
			return nil, nil, err
		}
		if err := on.runFor(ctx, 500*time.Millisecond); err != nil {
			return nil, nil, err
		}
	}
	return off, []Result{
		higherIsBetter("packet-hops, telemetry off", off.rate(), "M/s", "ns-3 3.37", peer.rate(), 120),
		higherIsBetter("packet-hops, telemetry on", on.rate(), "M/s", "ns-3 3.37", peer.rate(), 60),
	}, nil
}

// simRun is a simulation and its cost.
type simRun struct {
	net     *sim.Network
	hops    int64
	cpu     time.Duration
	perFlow float64 // KB of live memory
}

// newSimRun has four paced flows from every host of a fat-tree, already started,
// and programs in every switch unless they are nil.
func newSimRun(k int, programs programs) (*simRun, error) {
	before := liveHeap()
	f, err := topo.FatTree(k, topo.DefaultLinks())
	if err != nil {
		return nil, err
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	if err != nil {
		return nil, err
	}
	cfg := sim.DefaultConfig()
	cfg.MTU = simPayload
	n, err := sim.New(routes, cfg)
	if err != nil {
		return nil, err
	}
	if programs != nil {
		if err := programs.attach(n); err != nil {
			return nil, err
		}
	}
	flows := simFlows(f)
	if err := n.AddFlows(flows); err != nil {
		return nil, err
	}
	n.Run(100 * engine.Microsecond) // the fabric fills
	r := &simRun{net: n, perFlow: float64(liveHeap()-before) / float64(len(flows)) / 1e3}
	runtime.KeepAlive(n)
	return r, nil
}

// runFor continues for an amount of CPU time.
func (r *simRun) runFor(ctx context.Context, long time.Duration) error {
	hops, start := r.net.Counts.Hops, cpuTime()
	for cpuTime()-start < long {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.net.Run(r.net.Now() + 10*engine.Microsecond)
	}
	r.cpu += cpuTime() - start
	r.hops += r.net.Counts.Hops - hops
	return nil
}

// rate returns millions of packet-hops per second of CPU.
func (r *simRun) rate() float64 { return float64(r.hops) / r.cpu.Seconds() / 1e6 }

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

// peerConfig returns the same traffic for ns-3.
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

// cpuTime returns the CPU time that this process has used; beside other load it is
// more accurate than the wall clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

package bench

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

var topoSuite = Suite{
	Name:  "topo",
	About: "generate and route a fabric, and look up next hops",
	Input: "fat-trees of k=16 (1,024 hosts, 320 switches) and k=32 (8,192 hosts, 1,280 switches)",
	run: func(ctx context.Context) ([]Result, error) {
		results, err := compareRoutes(ctx)
		if err != nil {
			return nil, err
		}
		big, err := buildLarge(ctx)
		return append(results, big...), err
	},
}

// compareRoutes compares Routes with a straightforward implementation: a search per
// destination host and a slice of next hops per switch and host.
func compareRoutes(ctx context.Context) ([]Result, error) {
	f, err := topo.FatTree(16, topo.DefaultLinks())
	if err != nil {
		return nil, err
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		return nil, err
	}
	start := time.Now()
	plain := newObviousRoutes(f)
	obviousTime := time.Since(start).Seconds()
	start = time.Now()
	if _, err := topo.NewRoutes(f, topo.RouteConfig{}); err != nil {
		return nil, err
	}
	ourTime := time.Since(start).Seconds()

	keys := someFlows(f, 4096)
	sw := f.Switches()
	var sink model.PortID
	ns, err := alternateRounds(ctx, func(n int) {
		for i := range n {
			port, _ := routes.NextHop(sw[i%len(sw)], keys[i%len(keys)])
			sink += port
		}
	}, func(n int) {
		for i := range n {
			sink += plain.nextHop(sw[i%len(sw)], keys[i%len(keys)])
		}
	})
	runtime.KeepAlive(sink)
	if err != nil {
		return nil, err
	}
	return []Result{
		lowerIsBetter("route k=16", ourTime, "s", "a search per host", obviousTime, 3),
		lowerIsBetter("next hop k=16", ns[0], "ns", "maps of slices", ns[1], 1),
	}, nil
}

// buildLarge measures the largest fabric against the goals set for it.
func buildLarge(ctx context.Context) ([]Result, error) {
	before := liveHeap()
	start := time.Now()
	f, err := topo.FatTree(32, topo.DefaultLinks())
	if err != nil {
		return nil, err
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		return nil, err
	}
	took := time.Since(start).Seconds()
	heap := liveHeap() - before
	keys := someFlows(f, 1<<16)
	sw := f.Switches()
	var sink model.PortID
	ns, err := alternateRounds(ctx, func(n int) {
		for i := range n {
			port, _ := routes.NextHop(sw[i%len(sw)], keys[i%len(keys)])
			sink += port
		}
	})
	runtime.KeepAlive(sink)
	if err != nil {
		return nil, err
	}
	const goal = "goal for this size"
	return []Result{
		lowerIsBetter("generate and route k=32", took, "s", goal, 2, 1),
		lowerIsBetter("memory of k=32", float64(heap)/1e6, "MB", goal, 500, 1),
		lowerIsBetter("next hop k=32", ns[0], "ns", goal, 50, 1),
	}, nil
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// someFlows returns flows between hosts far apart in the list of hosts.
func someFlows(f *topo.Fabric, n int) []model.FlowKey {
	hosts := f.Hosts()
	keys := make([]model.FlowKey, n)
	for i := range keys {
		src, dst := f.Node(hosts[i*7919%len(hosts)]), f.Node(hosts[(i*104729+1)%len(hosts)])
		keys[i] = model.NewFlowKey(
			netip.AddrPortFrom(src.IPv4.Netip(), uint16(49152+i%16384)),
			netip.AddrPortFrom(dst.IPv4.Netip(), 4791), model.UDP,
		)
	}
	return keys
}

// obviousRoutes is a straightforward implementation: a breadth-first search from
// every host, and next hops in a map per switch.
type obviousRoutes struct {
	owner map[model.Addr]model.NodeID
	next  []map[model.NodeID][]model.PortID // by switch, then destination host
}

func newObviousRoutes(f *topo.Fabric) *obviousRoutes {
	r := &obviousRoutes{
		owner: map[model.Addr]model.NodeID{},
		next:  make([]map[model.NodeID][]model.PortID, len(f.Nodes())),
	}
	for i := range r.next {
		r.next[i] = map[model.NodeID][]model.PortID{}
	}
	for _, dst := range f.Hosts() {
		r.owner[f.Node(dst).IPv4] = dst
		dist := map[model.NodeID]int{dst: 0}
		for queue := []model.NodeID{dst}; len(queue) > 0; queue = queue[1:] {
			at := queue[0]
			for _, p := range f.Node(at).Ports {
				peer := p.Peer.Node
				if _, seen := dist[peer]; !seen && f.Node(peer).Role.IsSwitch() {
					dist[peer] = dist[at] + 1
					queue = append(queue, peer)
				}
			}
		}
		for at, d := range dist {
			for _, p := range f.Node(at).Ports {
				if pd, ok := dist[p.Peer.Node]; ok && pd == d-1 {
					r.next[at][dst] = append(r.next[at][dst], p.ID)
				}
			}
		}
	}
	return r
}

func (r *obviousRoutes) nextHop(at model.NodeID, key model.FlowKey) model.PortID {
	ports := r.next[at][r.owner[key.Dst]]
	if len(ports) == 0 {
		panic(fmt.Sprintf("bench: no route at %d for %v", at, key))
	}
	return ports[key.Hash(uint64(at))%uint64(len(ports))]
}

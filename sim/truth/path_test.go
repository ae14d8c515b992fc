package truth

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// udp is a paced flow of that many bytes that begins after a microsecond.
func udp(src, dst model.NodeID, rate model.Rate, size model.Bytes) traffic.Flow {
	return traffic.Flow{Src: src, Dst: dst, Rate: rate, Bytes: size, Transport: traffic.UDP, Priority: 3, Start: 1000}
}

func TestPathsAreTheRoutes(t *testing.T) {
	b := fatTree(t, sim.DefaultConfig(), All())
	b.add(incast(20_000)...)
	b.run(20 * time.Millisecond)
	routes, err := topo.NewRoutes(b.Fabric(), topo.RouteConfig{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for id := range 15 {
		key, spec := b.FlowKey(id)
		for _, reverse := range []bool{false, true} {
			from := spec.Src
			if reverse {
				key, from = b.BackKey(id), spec.Dst
			}
			route, err := routes.Path(key, from)
			if err != nil {
				t.Fatal(err)
			}
			var want []Hop
			for _, h := range route[1 : len(route)-1] {
				want = append(want, Hop{h.Node, h.In, h.Out})
			}
			got := b.r.Paths(id, reverse)
			if len(got) != 1 || !cmp.Equal(got[0].Hops, want) || got[0].Dropped != 0 {
				t.Errorf("flow %d, reverse %v: paths %+v; want only %+v", id, reverse, got, want)
				continue
			}
			if total := b.r.Flow(id, reverse); got[0].Delivered != total.Delivered || total.Delivered < 20 {
				t.Errorf("flow %d, reverse %v: %d packets on the path; want the %d delivered, 20 at least", id, reverse, got[0].Delivered, total.Delivered)
			}
		}
	}
}

func TestPathsShowARouteChange(t *testing.T) {
	b := ring(t, sim.DefaultConfig(), All())
	b.add(udp(0, 2, 10*model.Gbps, 1_000_000))
	const from, to = 100 * engine.Microsecond, 300 * engine.Microsecond
	b.inject(sim.Injection{At: from.Model(), For: (to - from).Duration(), Fault: sim.Reroute{Entries: []sim.Entry{
		{Switch: 4, To: b.just(2), Via: []model.NodeID{7}},
		{Switch: 7, To: b.just(2), Via: []model.NodeID{6}},
	}}})
	b.run(5 * time.Millisecond)
	paths := b.r.Paths(0, false)
	if len(paths) != 3 {
		t.Fatalf("paths %+v; want three", paths)
	}
	// The last is that of a packet in flight from s0 to s3 when both were
	// repaired: s3 sends it back.
	right, wrong, between := paths[0], paths[1], paths[2]
	for i, want := range []string{
		"[{4 1 2} {5 2 3} {6 2 1}]", "[{4 1 3} {7 3 2} {6 3 1}]", "[{4 1 3} {7 3 3} {4 3 2} {5 2 3} {6 2 1}]",
	} {
		if got := fmt.Sprint(paths[i].Hops); got != want {
			t.Errorf("path %d is %s; want %s", i, got, want)
		}
	}
	const slack = 2 * engine.Microsecond
	if right.First > 5*engine.Microsecond || right.Last < to || wrong.First < from || wrong.First > from+slack || wrong.Last > to || wrong.Last < to-slack {
		t.Errorf("used %v to %v and %v to %v; want all the time, and %v to %v", right.First, right.Last, wrong.First, wrong.Last, from, to)
	}
	if sum := right.Delivered + wrong.Delivered + between.Delivered; sum != b.r.Flow(0, false).Delivered || sum != 977 || wrong.Delivered < 200 || between.Delivered != 1 {
		t.Errorf("%d and %d packets; want 977 with the one between, 200 µs of 10 Gb/s on the second", right.Delivered, wrong.Delivered)
	}
}

func TestPathsOfALoop(t *testing.T) {
	b := dumbbell(t, 1, sim.DefaultConfig(), All())
	b.add(udp(0, 1, 10*model.Gbps, 10_000))
	b.inject(sim.Injection{Fault: sim.Reroute{Entries: []sim.Entry{{Switch: 3, To: b.just(1), Via: []model.NodeID{2}}}}})
	b.run(5 * time.Millisecond)
	paths := b.r.Paths(0, false)
	if len(paths) != 1 || paths[0].Dropped != 10 || paths[0].Delivered != 0 || len(paths[0].Hops) != 63 {
		t.Fatalf("paths %+v; want one of 63 hops, with 10 drops", paths)
	}
	if h := paths[0].Hops; h[0].Switch != 2 || h[1].Switch != 3 || h[62].Switch != 2 || h[1].In != h[1].Out {
		t.Errorf("hops %+v; want back and forth from 2 to 3", h)
	}
	if got := b.r.Flow(0, false); got.Dropped != 10 || got.Delivered != 0 {
		t.Errorf("flow %+v; want 10 drops", got)
	}
}

func TestPathsAreBounded(t *testing.T) {
	o := All()
	o.MaxPathHops = 3 // a root and two hops: one direction of one flow
	b := dumbbell(t, 2, sim.DefaultConfig(), o)
	late := udp(1, 3, 10*model.Gbps, 20_000)
	late.Start = 1_000_000
	b.add(udp(0, 2, 10*model.Gbps, 10_000), late)
	b.run(5 * time.Millisecond)
	if kept, none := b.r.Paths(0, false), b.r.Paths(1, false); len(kept) != 1 || kept[0].Delivered != 10 || none != nil {
		t.Errorf("paths %+v and %+v; want one with 10 packets, and none", kept, none)
	}
	if got := b.r.Unrecorded(); got != (Unrecorded{Paths: 20}) {
		t.Errorf("lost %+v; want 20 packets' paths", got)
	}
}

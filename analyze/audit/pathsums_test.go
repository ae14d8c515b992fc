package audit

import (
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// TestAddMapEqualsFlows compares the sums of a map's flows with those of its flows added one by
// one: of paths that are whole, that have gaps, and that begin at a switch.
func TestAddMapEqualsFlows(t *testing.T) {
	r := newRig(t, 6)
	routes, err := topo.NewRoutes(r.fabric, topo.RouteConfig{Seed: 6})
	if err != nil {
		t.Fatal(err)
	}
	together, apart := 0, 0
	got := newSlotSums(r.ports) // of all slots: it knows the paths of those before
	var works [2]paths.Workspace
	for n := range int64(50) {
		decoded := map[model.NodeID]*flows.Decoded{}
		for _, sw := range r.fabric.Switches() {
			decoded[sw] = &flows.Decoded{Switch: sw, Start: model.Time(n * int64(slot)), Length: slot}
		}
		for i := range 2 * len(r.flows) {
			f := r.flows[i%len(r.flows)]
			f.key.DstPort += uint16(i / len(r.flows)) // a second flow takes the path of the first
			in := r.fabric.Node(mustByAddr(r.fabric, f.key.Src)).Ports[0].Peer
			hops := f.hops
			if i%50 == 0 && len(hops) > 1 { // the first switch made the packets
				f.key.Src = r.fabric.Node(hops[0].Node).IPv4
				in, hops = r.fabric.Port(hops[0]).Peer, hops[1:]
			}
			for _, out := range hops {
				one := flows.Record{Key: f.key, Packets: 1 + r.rng.Uint64N(100), Bytes: r.rng.Uint64N(1000), In: in.Port, Out: out.Port, Grade: flows.Exact}
				in = r.fabric.Port(out).Peer
				switch r.rng.IntN(60) {
				case 0:
					continue // it is not in the report
				case 1:
					one.Grade = flows.Estimated
				case 2:
					one.In = 0
				}
				decoded[out.Node].Records = append(decoded[out.Node].Records, one)
			}
		}
		got.reset()
		want := newSlotSums(r.ports)
		for part := range works {
			m := paths.NewPart(paths.NewReports(n, slot), &works[part])
			for _, sw := range r.fabric.Switches() {
				d := *decoded[sw]
				d.Records = slices.DeleteFunc(slices.Clone(d.Records), func(r flows.Record) bool { return int(r.Key.SrcPort)%len(works) != part })
				m.AddFlowset(&d)
			}
			m.OrderPaths(r.ports, routes)
			got.addMap(m)
			for i := range m.Flows() {
				want.addFlow(m.Key(i), m.Sightings(i))
				if _, ok := m.PathNumber(i); ok {
					together++
				} else {
					apart++
				}
			}
		}
		got.endMaps()
		for p := range uint32(r.ports.Len()) {
			if got.sums[p] != want.sums[p] {
				t.Fatalf("port %v: %+v; want %+v", r.ports.Port(p), got.sums[p], want.sums[p])
			}
		}
		slices.Sort(got.touched)
		slices.Sort(want.touched)
		if !slices.Equal(got.touched, want.touched) {
			t.Fatalf("touched %v; want %v", got.touched, want.touched)
		}
	}
	if together == 0 || apart == 0 {
		t.Errorf("%d flows were added with others of their path, %d alone; the test needs both", together, apart)
	}
}

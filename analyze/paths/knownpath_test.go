package paths

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// TestNumbersOfPathsChangeNothing compares findings and paths with those of workspaces that give
// no numbers to paths, and of one that has room for few: of paths that are whole, that have gaps,
// that return, that routes do not intend, and under routes that change.
func TestNumbersOfPathsChangeNothing(t *testing.T) {
	numbered, findings := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		slots := rapid.IntRange(2, 6).Draw(rt, "slots")
		l := newLab(t, slots)
		hosts := l.fabric.Hosts()
		now, err := topo.NewRoutes(l.fabric, topo.RouteConfig{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		then, err := topo.NewRoutes(l.fabric, topo.RouteConfig{Seed: 1, Down: []int{rapid.IntRange(16, len(l.fabric.Links())-1).Draw(rt, "link down")}})
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(rt, "routes change") {
			if err := l.intent.Set(model.Time(slot)*2, then); err != nil {
				t.Fatal(err)
			}
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "traffic"), 1))
		oddIn := rapid.SampledFrom([]int{8, 100}).Draw(rt, "one odd record in")
		for i := range rapid.IntRange(1, 60).Draw(rt, "flows") {
			src, dst := hosts[rng.IntN(len(hosts))], hosts[rng.IntN(len(hosts))]
			if src == dst {
				continue
			}
			key := model.FlowKey{Src: l.fabric.Node(src).IPv4, Dst: l.fabric.Node(dst).IPv4, SrcPort: uint16(i), DstPort: 4791, Proto: model.UDP}
			for n := range slots {
				path, err := []*topo.Routes{now, then}[rng.IntN(2)].Path(key, src)
				if err != nil {
					continue
				}
				packets := 4 + rng.Uint64N(4)
				for _, h := range path[1 : len(path)-1] {
					r := flows.Record{Key: key, Packets: packets, In: h.In, Out: h.Out, Grade: flows.Exact}
					switch rng.IntN(4 * oddIn) {
					case 0:
						continue
					case 1:
						r.Out = 0
					case 2:
						r.Out = model.PortID(rng.IntN(6))
					case 3:
						r.Packets *= 9
					}
					l.slots[n][h.Node].Records = append(l.slots[n][h.Node].Records, r)
				}
			}
		}
		var works [3]Workspace
		works[1].paths.most, works[2].paths.most = -1, 3
		var maps [3]*Map
		var detectors [3]*Detector
		for i := range works {
			if detectors[i], err = NewDetector(DefaultConfig(l.intent)); err != nil {
				t.Fatal(err)
			}
		}
		for n, sets := range l.slots {
			var found [3][]Finding
			for i := range works {
				m := NewPart(NewReports(int64(n), slot), &works[i])
				for _, sw := range l.fabric.Switches() {
					set := sets[sw]
					set.MayContain = func(k model.FlowKey) bool {
						return slices.ContainsFunc(set.Records, func(r flows.Record) bool { return r.Key == k })
					}
					m.AddFlowset(set)
				}
				maps[i], found[i] = m, detectors[i].Observe(m)
			}
			findings += len(found[0])
			for i := range maps[1:] {
				if got, want := found[i], found[i+1]; !reflect.DeepEqual(got, want) {
					rt.Fatalf("slot %d: %+v; want %+v", n, got, want)
				}
				for flow := range maps[i].Flows() {
					got, want := maps[i].Path(flow, detectors[i].ports, now), maps[i+1].Path(flow, detectors[i+1].ports, now)
					if fmt.Sprint(got) != fmt.Sprint(want) || maps[i].shapes[flow] != maps[i+1].shapes[flow] {
						rt.Fatalf("slot %d: %+v, %v; want %+v, %v", n, got, maps[i].shapes[flow], want, maps[i+1].shapes[flow])
					}
					if _, ok := maps[i].PathNumber(flow); ok {
						numbered++
					}
				}
			}
		}
	})
	if numbered == 0 || findings == 0 {
		t.Errorf("%d flows with numbers of their paths, %d findings; the test needs both", numbered, findings)
	}
}

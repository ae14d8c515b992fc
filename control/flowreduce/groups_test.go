package flowreduce

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

// TestSumsByPathEqualSumsByFlow compares the counters of flows that are added up by path first
// with those of flows that are added one by one.
func TestSumsByPathEqualSumsByFlow(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	ports := paths.NewPorts(f)
	names := testNames(func(k *model.FlowKey) string { return fmt.Sprint(k.SrcPort % 3) })
	var reducers [2]*Reducer
	for i := range reducers {
		if reducers[i], err = New(Config{Keep: 10, Factor: 2}, names); err != nil {
			t.Fatal(err)
		}
		reducers[i].sums.groups.noPaths = i == 1
	}
	rng := rand.New(rand.NewPCG(1, 2))
	hosts := f.Hosts()
	var works [2]paths.Workspace
	var counters [2][]record.Counter
	numbered, others := 0, 0
	for n := range int64(8) {
		decoded := map[model.NodeID]*flows.Decoded{}
		for _, sw := range f.Switches() {
			decoded[sw] = &flows.Decoded{Switch: sw, Start: model.Time(n * int64(slotLength)), Length: slotLength}
		}
		for i := range 400 {
			src, dst := hosts[rng.IntN(4)], hosts[4+rng.IntN(4)]
			key := model.FlowKey{Src: f.Node(src).IPv4, Dst: f.Node(dst).IPv4, SrcPort: uint16(i), DstPort: 4791, Proto: model.UDP}
			path, err := routes.Path(key, src)
			if err != nil {
				t.Fatal(err)
			}
			if i%5 == 0 {
				key.Src = model.Addr4(uint32(i)) // several sources on one path
			}
			for _, h := range path[1 : len(path)-1] {
				if rng.IntN(40) > 0 {
					r := flows.Record{Key: key, Packets: 1 + rng.Uint64N(9), Bytes: rng.Uint64N(1000), In: h.In, Out: h.Out, Grade: flows.Exact}
					decoded[h.Node].Records = append(decoded[h.Node].Records, r)
				}
			}
		}
		reports := paths.NewReports(n, slotLength)
		maps := []*paths.Map{paths.NewPart(reports, &works[0]), paths.NewPart(reports, &works[1])}
		for i, m := range maps { // as two parts
			for k, sw := range f.Switches() {
				if d := decoded[sw]; k%2 == i {
					m.AddFlowset(d)
				}
			}
			m.OrderPaths(ports, routes)
			for k := range m.Flows() {
				if _, ok := m.PathNumber(k); ok {
					numbered++
				} else {
					others++
				}
			}
		}
		for i, r := range reducers {
			_, counters[i] = r.Reduce(begin.Add(time.Duration(n)*slotLength), maps, nil, counters[i])
		}
	}
	if d := gocmp.Diff(counters[1], counters[0]); d != "" || len(counters[0]) == 0 {
		t.Errorf("%d counters (- by flow, + by path):\n%s", len(counters[0]), d)
	}
	if numbered == 0 || others == 0 {
		t.Errorf("%d flows with a number of their path, %d without; the test needs both", numbered, others)
	}
}

package paths

import (
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

// TestJoinEqualsMap compares joined records with a map from flows to sightings: of
// switches that report once or several times, and flowsets with a flow once or twice.
func TestJoinEqualsMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewMap(0, slot)
		for range 2 { // the second time in the memory of the first
			m.Reset(NewReports(0, slot))
			want := map[model.FlowKey][]Sighting{}
			var order []model.FlowKey
			switches := rapid.IntRange(1, 9).Draw(t, "switches")
			for set := range rapid.IntRange(0, 12).Draw(t, "flowsets") {
				d := flows.Decoded{Switch: model.NodeID(set % switches), Length: slot}
				lost := rapid.Bool().Draw(t, "lost")
				if lost = lost && set < switches; lost {
					m.MarkLost(d.Switch, false)
				}
				lost = m.lost[family{d.Switch, false}]
				for _, n := range rapid.SliceOfN(rapid.IntRange(0, 80), 0, 100).Draw(t, "flows") {
					r := flows.Record{Key: model.FlowKey{Src: model.Addr4(7), SrcPort: uint16(n), Proto: model.TCP}, Packets: uint64(1 + n), Bytes: uint64(set), In: model.PortID(set), Out: 2, Grade: flows.Grade(n % 2)}
					d.Records = append(d.Records, r)
					list, known := want[r.Key]
					if !known {
						order = append(order, r.Key)
					}
					exact := r.Grade == flows.Exact && !lost
					if at := slices.IndexFunc(list, func(s Sighting) bool { return s.Switch == d.Switch }); at >= 0 {
						list[at].Packets += r.Packets
						list[at].Bytes += r.Bytes
						list[at].Exact = list[at].Exact && exact
						continue
					}
					want[r.Key] = append(list, Sighting{
						Packets: r.Packets, Bytes: r.Bytes, Switch: d.Switch, In: r.In, Out: r.Out, Exact: exact, rank: uint16(len(list)),
					})
				}
				m.AddFlowset(&d)
			}
			if m.Flows() != len(order) {
				t.Fatalf("%d flows; want %d", m.Flows(), len(order))
			}
			for i := range order {
				if *m.Key(i) != order[i] || !slices.Equal(m.Sightings(i), want[order[i]]) {
					t.Fatalf("flow %d: %v, %v; want %v, %v", i, *m.Key(i), m.Sightings(i), order[i], want[order[i]])
				}
			}
		}
	})
}

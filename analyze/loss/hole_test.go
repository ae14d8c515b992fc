package loss

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
)

// TestHolesAreInterruptions: drops of two flows to one host that one interruption
// explains are a black hole, with bounds of its length; what a full queue drops is none.
func TestHolesAreInterruptions(t *testing.T) {
	key := func(src, dst uint32) model.FlowKey {
		return model.FlowKey{Src: model.Addr4(src), Dst: model.Addr4(dst), SrcPort: 9, DstPort: 80, Proto: model.UDP}
	}
	// One packet each 250 µs in slots of 10 ms, of which some are dropped.
	slot := func(n uint32, dropped map[model.FlowKey]uint64, to map[model.FlowKey]model.PortID) (*flows.Decoded, []Drop) {
		in := &flows.Decoded{Switch: 7, Slot: n, Length: 10 * time.Millisecond}
		var drops []Drop
		for k, out := range to {
			in.Records = append(in.Records, flows.Record{Key: k, Packets: 40, Out: out, Grade: flows.Exact})
			if dropped[k] > 0 {
				drops = append(drops, Drop{k, 7, out, n, dropped[k], 40})
			}
		}
		return in, drops
	}
	a, b, other := key(1, 100), key(2, 100), key(1, 101)
	ports := map[model.FlowKey]model.PortID{a: 3, b: 4, other: 3, key(2, 101): 4}
	for name, tc := range map[string]struct {
		ports       map[model.FlowKey]model.PortID
		slots       []map[model.FlowKey]uint64
		least, most time.Duration // 0: no hole
	}{
		"in one slot":     {ports, []map[model.FlowKey]uint64{{a: 12, b: 13}}, 2926829, 3333333},
		"over two":        {ports, []map[model.FlowKey]uint64{{a: 6, b: 6}, {a: 6, b: 7}}, 2962962, 3291139},
		"one flow":        {ports, []map[model.FlowKey]uint64{{a: 12}}, 0, 0},
		"not as many":     {ports, []map[model.FlowKey]uint64{{a: 12, b: 20}}, 0, 0},
		"a full queue":    {ports, []map[model.FlowKey]uint64{{a: 12, b: 12, other: 5}}, 0, 0},
		"the last switch": {map[model.FlowKey]model.PortID{a: 3, b: 3}, []map[model.FlowKey]uint64{{a: 12, b: 12}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var h Holes
			var found []Hole
			for i, dropped := range append(tc.slots, nil) {
				found = append(found, h.Observe(slot(uint32(5+i), dropped, tc.ports))...)
			}
			if tc.least == 0 {
				if len(found) > 0 {
					t.Errorf("%+v; want no hole", found)
				}
				return
			}
			if len(found) != 1 || found[0].Slot != 5 || found[0].Dst != a.Dst || found[0].Least != tc.least || found[0].Most != tc.most {
				t.Errorf("%+v; want one from slot 5 to %v, of %v to %v", found, a.Dst, tc.least, tc.most)
			}
		})
	}
}

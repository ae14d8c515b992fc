package loss

import (
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
)

// TestInsideNamesDrops: a flow that lost some packets, one that lost all, one that lost
// none; and nothing is said of flows whose counts are not certain.
func TestInsideNamesDrops(t *testing.T) {
	key := func(n uint16) model.FlowKey {
		return model.FlowKey{Src: model.Addr4(0x0a000001), Dst: model.Addr4(0x0a000002), SrcPort: n, DstPort: 80, Proto: model.TCP}
	}
	record := func(n uint16, packets uint64, g flows.Grade) flows.Record {
		return flows.Record{Key: key(n), Packets: packets, Out: 3, Grade: g}
	}
	nothing := func(model.FlowKey) bool { return false }
	in := flows.Decoded{Switch: 7, Slot: 9, Records: []flows.Record{
		record(1, 10, flows.Exact), record(2, 4, flows.Exact), record(3, 5, flows.Exact), record(4, 5, flows.Exact),
	}}
	in.Records[3].Grade++
	sent := []flows.Record{record(1, 7, flows.Exact), record(3, 5, flows.Exact), record(4, 1, flows.Exact)}
	first := Drop{key(1), 7, 3, 9, 3, 10}
	for name, tc := range map[string]struct {
		out       flows.Decoded
		want      []Drop
		uncertain int
	}{
		"exact":                {flows.Decoded{Records: sent, MayContain: nothing}, []Drop{first, {key(2), 7, 3, 9, 4, 4}}, 1},
		"a flow may be hidden": {flows.Decoded{Records: sent}, []Drop{first}, 2},
		"packets not counted":  {flows.Decoded{Records: sent, MayContain: nothing, Missed: 1}, nil, 4},
	} {
		if got, uncertain := Inside(&in, &tc.out); !slices.Equal(got, tc.want) || uncertain != tc.uncertain {
			t.Errorf("%s: %+v, %d uncertain; want %+v, %d", name, got, uncertain, tc.want, tc.uncertain)
		}
	}
}

package provenance

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// TestFlowMeters: what a flow sent is what the switch of its host counted, not the sum
// over switches; flows in queues that nothing delayed are left out, except the victim.
func TestFlowMeters(t *testing.T) {
	f, err := topo.LeafSpine(2, 1, 1, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := f.ByName("leaf0")
	spine, _ := f.ByName("spine0")
	up, host := f.Node(leaf).PortsTo(spine)[0], model.PortID(1)
	if peer := f.Port(model.Port{Node: leaf, Port: host}).Peer.Node; f.Node(peer).Role.IsSwitch() {
		t.Fatal("port 1 of leaf0 does not lead to its host")
	}
	const ms = time.Millisecond
	congested := []epoch.CongestionEpisode{{Port: up, Priority: 3, First: 1_000_000, Last: 4_000_000, MaxBytes: 99}}
	flow := func(n int, e uint32, in, out model.PortID, packets uint32, first time.Duration) epoch.Flow {
		return epoch.Flow{
			Epoch: e, In: in, Out: out, Priority: 3, Key: key(n), Packets: packets, Bytes: 1000 * uint64(packets), First: first, Last: first + 100,
		}
	}
	reports := []*Report{
		{
			Header: epoch.Header{Switch: leaf, Snapshot: 5_000_000, EpochLength: ms}, Episodes: congested,
			Ports: []epoch.Port{{Port: up, Priority: 3, Sent: 1}, {Port: host, Priority: 3, Sent: 1}},
			Flows: []epoch.Flow{
				flow(1, 4, host, up, 10, 500), flow(1, 3, host, up, 20, 700), // the victim
				flow(2, 4, host, up, 50, 20), flow(3, 4, host, up, 40, 30),
				flow(4, 4, up, host, 90, 40), // not congested
			},
		},
		{
			Header: epoch.Header{Switch: spine, Snapshot: 5_000_000, EpochLength: ms},
			Ports:  []epoch.Port{{Port: 2, Priority: 3, Sent: 1}},
			Flows:  []epoch.Flow{flow(1, 4, 1, 2, 30, 100), flow(2, 4, 1, 2, 50, 10)},
		},
	}
	e := &Evidence{Reports: reports}
	g := Build(e, key(1), f)
	got, omitted := g.FlowMeters(e, f, 2)
	want := []FlowMeter{
		{
			Flow: key(1), Priority: 3, Switch: leaf, Outs: []model.Port{{Node: leaf, Port: up}, {Node: spine, Port: 2}},
			Intervals: []MeteredInterval{{3_000_700, 3_000_800, 20, 20_000}, {4_000_500, 4_000_600, 10, 10_000}},
		},
		{
			Flow: key(2), Priority: 3, Switch: leaf, Outs: []model.Port{{Node: leaf, Port: up}, {Node: spine, Port: 2}},
			Intervals: []MeteredInterval{{4_000_020, 4_000_120, 50, 50_000}},
		},
	}
	if diff := gocmp.Diff(want, got); diff != "" || omitted != 1 {
		t.Errorf("%d omitted, want 1; meters (-want +got):\n%s", omitted, diff)
	}
}

package proof

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/wire/roce"
)

// uneven is a fabric of two spines in which every flow of leaf0 takes the port that up says, with the
// packets that it says.
func uneven(t *testing.T, up func(flow int) (spine string, packets uint64)) *DeliveryCase {
	t.Helper()
	f, err := topo.LeafSpine(3, 2, 4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Unix(0, 0).UTC()
	c := &DeliveryCase{
		Fabric: scenario.FromTopology("uneven", &file.Document{Fabric: f, Seed: 1}),
		Incident: &api.IncidentDetail{
			Incident:     api.Incident{Cause: "imbalance", Location: "leaf0", Begin: begin, Updated: begin.Add(100 * time.Millisecond)},
			IncidentBody: api.IncidentBody{Nodes: []string{"leaf0"}},
		},
	}
	hosts := f.Hosts()
	add := func(i int, src, dst model.NodeID, leaf, spine, last string, packets uint64) {
		d := api.FlowDetail{}
		d.Flow.Flow = model.FlowKey{Src: f.Node(src).IPv4, Dst: f.Node(dst).IPv4, SrcPort: uint16(20000 + i), DstPort: roce.Port, Proto: model.UDP}
		d.Src, d.Dst, d.Slots = f.Node(src).Name, f.Node(dst).Name, 1
		d.Series = []api.FlowPoint{{
			Time: begin, SlotNs: int64(10 * time.Millisecond), Packets: packets, Bytes: 1000 * packets,
			Path: []api.FlowPointHop{{Switch: leaf, Packets: packets}, {Switch: spine, Packets: packets}, {Switch: last, Packets: packets}},
		}}
		c.Flows = append(c.Flows, d)
	}
	for i := range 64 {
		spine, packets := up(i)
		add(i, hosts[i%4], hosts[4+i%4], "leaf0", spine, "leaf1", packets)
		add(100+i, hosts[8+i%4], hosts[4+i%4], "leaf2", fmt.Sprintf("spine%d", i%2), "leaf1", 50)
	}
	c.Named = PlacesOf(c.Incident)
	return c
}

// One port for all flows is the hash.
func TestImbalanceIsProven(t *testing.T) {
	c := uneven(t, func(int) (string, uint64) { return "spine1", 50 })
	if !OfDelivery(&c.Incident.Incident) || !slices.Equal(c.Named, []Place{{Node: "leaf0"}}) {
		t.Fatalf("cause %s names %v; want leaf0", c.Incident.Cause, c.Named)
	}
	r, err := ProveDelivery(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != Proven || r.Recorded != 0.5 || r.Rebuilt.Harm != 0.5 || r.Rebuilt.Others != 0 || r.Without.Harm > 0.2 {
		t.Errorf("%s: %s; recorded %.2f, at others %.2f; want it proven, half of the packets beyond an even share", r.Verdict, r.Text, r.Recorded, r.Rebuilt.Others)
	}
	if r.Control == nil || r.Control.Gain != 0 || r.Control.Others == 0 {
		t.Errorf("control %+v; want another hash at leaf2, which changes nothing at leaf0", r.Control)
	}
	if r.Runs != 1+3*hashes {
		t.Errorf("%d simulations, want %d", r.Runs, 1+3*hashes)
	}
}

// A verdict about another switch is refuted.
func TestImbalanceElsewhereIsRefuted(t *testing.T) {
	c := uneven(t, func(int) (string, uint64) { return "spine1", 50 })
	c.Named = []Place{{Node: "leaf2"}}
	r, err := ProveDelivery(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != Refuted || r.Without.Gain != 0 {
		t.Errorf("%s: %s; want it refuted", r.Verdict, r.Text)
	}
}

// Two large flows on one port are no fault of the hash: any has them there half of the time.
func TestLargeFlowsAreNoHash(t *testing.T) {
	c := uneven(t, func(i int) (string, uint64) {
		if i < 2 {
			return "spine0", 5000
		}
		return fmt.Sprintf("spine%d", i%2), 10
	})
	r, err := ProveDelivery(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != Refuted || r.Rebuilt.Harm < 0.4 {
		t.Errorf("%s: %s; want it refuted", r.Verdict, r.Text)
	}
}

func TestImbalanceWithoutRecords(t *testing.T) {
	c := uneven(t, func(int) (string, uint64) { return "spine0", 10 })
	c.Flows = nil
	if _, err := ProveDelivery(t.Context(), c); !IsMissing(err) {
		t.Errorf("without flow records: %v; want what is missing", err)
	}
}

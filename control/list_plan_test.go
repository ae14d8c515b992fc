package control

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// TestListPlanIsOfSwitches: every switch has a list of flowsets, and no host has one.
func TestListPlanIsOfSwitches(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	plan := DefaultListPlan(f)
	if n := len(f.Switches()); plan.Flowsets.Count != n || plan.Epochs.First != dta.ListID(n+2) || plan.Memory(100).Lists() != n+4 {
		t.Errorf("plan %+v; want lists for %d switches, and one of each other kind", plan, n)
	}
	owned := map[dta.ListID]bool{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		list := plan.FlowsetList(n.ID)
		owner, ok := plan.FlowsetOwner(list)
		if ok != n.Role.IsSwitch() || ok && (owner != n.ID || owned[list]) || !ok && list != NoList {
			t.Errorf("node %d (%v) has list %d of switch %d, %v; want a list of its own for switches alone", n.ID, n.Role, list, owner, ok)
		}
		owned[list] = true
	}
	if _, ok := plan.FlowsetOwner(plan.Labels.First); ok {
		t.Error("a list of labels has an owner")
	}
}

// TestListPlanOfALargeFabric: labels and mirrors have several lists. A switch always
// uses the same list of labels, and all mirrors of a flow the one that inswitch/mirror
// chooses.
func TestListPlanOfALargeFabric(t *testing.T) {
	f, err := topo.FatTree(16, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	plan := DefaultListPlan(f)
	if plan.Labels.Count != 5 || plan.Mirrors.Count != 5 {
		t.Fatalf("%d lists of labels and %d of mirrors for %d switches; want 5 of each", plan.Labels.Count, plan.Mirrors.Count, len(f.Switches()))
	}
	used := map[dta.ListID]int{}
	for _, sw := range f.Switches() {
		used[plan.LabelList(sw)]++
	}
	for i := range plan.Labels.Count {
		if n := used[plan.Labels.First+dta.ListID(i)]; n != switchesPerList {
			t.Errorf("%d switches use list %d of labels; want %d", n, i, switchesPerList)
		}
	}
	hosts := f.Hosts()
	for i := range 100 {
		key := model.FlowKey{
			Src: f.Node(hosts[i]).IPv4, Dst: f.Node(hosts[i+50]).IPv4, SrcPort: uint16(i), DstPort: 4791, Proto: model.UDP,
		}
		m := mirror.Mirror{Switch: f.Switches()[i], Frame: udpFrame(&key)}
		if got, want := plan.MirrorList(&m), plan.Mirrors.First+dta.ListID(mirror.Shard(&key, 5)); got != want {
			t.Errorf("mirrors of %v go to list %d; want %d", key, got, want)
		}
		m.Frame = []byte("no packet")
		if got, want := plan.MirrorList(&m), plan.Mirrors.First+dta.ListID(uint32(m.Switch)%5); got != want {
			t.Errorf("mirrors of no flow of switch %d go to list %d; want %d", m.Switch, got, want)
		}
	}
}

// udpFrame is a packet of a flow.
func udpFrame(key *model.FlowKey) []byte {
	b := packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)
	ip := packet.IPv4{Length: 28, TTL: 63, Proto: model.UDP, Src: key.Src.V4(), Dst: key.Dst.V4()}
	ip.Checksum = ip.Sum()
	b = ip.AppendTo(b)
	return packet.UDP{SrcPort: key.SrcPort, DstPort: key.DstPort, Length: 8}.AppendTo(b)
}

// TestFlowsetListsFollowTheFlows: two slots fit at any number of flows, and the
// default is no smaller than the least.
func TestFlowsetListsFollowTheFlows(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	for _, flows := range []int{1, 1000, 10_000, 100_000, 1_000_000} {
		plan := DefaultListPlan(f)
		if err := plan.PlanFlowsets(flows); err != nil {
			t.Fatal(err)
		}
		n, err := ChunksPerSlot(flows)
		memory := plan.Memory(1472)
		if kept := memory.Classes[0].Capacity - memory.Batch; err != nil || kept < 2*n || kept+memory.Batch < minEntries {
			t.Errorf("a list holds %d chunks of slots of %d; want two slots", kept, n)
		}
		entries, bytes := plan.Sizes(plan.Flowsets, 1472)
		if entries != memory.Classes[0].Capacity || bytes < int64(20*entries*1474) || bytes > memory.Size() {
			t.Errorf("lists of %d entries and %d bytes; want those of %+v", entries, bytes, memory)
		}
	}
	plan := DefaultListPlan(f)
	if err := plan.PlanFlowsets(0); err == nil {
		t.Error("a plan for 0 flows is valid")
	}
}

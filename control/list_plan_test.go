package control

import (
	"testing"

	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
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

package control

import "testing"

func TestDefaultListPlan(t *testing.T) {
	plan := DefaultListPlan(5)
	if !plan.Flowsets.contains(4) || plan.Flowsets.contains(5) || !plan.Epochs.contains(7) {
		t.Errorf("plan %+v; want flowsets in 0 to 4, epochs in 7, diagnosis requests in 8", plan)
	}
}

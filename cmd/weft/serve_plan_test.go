package main

import (
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/model"
)

// TestPlanWarnsOfASmallBuffer: --check says what to set if the kernel grants less than
// the plan needs, and is silent otherwise.
func TestPlanWarnsOfASmallBuffer(t *testing.T) {
	for granted, want := range map[model.Bytes]bool{4 * model.MiB: true, 32 * model.MiB: false} {
		var b strings.Builder
		p := &serve.Plan{Flowsets: serve.PlannedSlots{Buffer: 32 * model.MiB, Granted: granted}}
		if err := printPlan(&b, "table", p); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "set net.core.rmem_max to 33554432"); got != want {
			t.Errorf("%v granted of 32MiB: warns %v, want %v:\n%s", granted, got, want, b.String())
		}
	}
}

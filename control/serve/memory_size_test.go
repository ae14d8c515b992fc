package serve

import (
	"runtime"
	"testing"

	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
)

// TestTrackedFlowTakesItsSize measures what is held of each flow between slots: all
// are on paths of five switches, the longest of a fat-tree, in two slots.
func TestTrackedFlowTakesItsSize(t *testing.T) {
	race.LeaveToPlainRun(t) // it changes sizes
	cfg, f := fatTree(t)
	s := &flooded{t: t, cfg: *cfg, fabric: f}
	const flows = 4000
	var keys []model.FlowKey
	for n := range flows {
		keys = append(keys, s.flow(n))
	}
	w, err := flowwatch.New(f.controllerConfig(cfg, core.LastIDs{}).Flows)
	if err != nil {
		t.Fatal(err)
	}
	now := s.now()
	before := heap()
	for range 2 {
		now = now.Add(cfg.Controller.Slot)
		for i, sw := range f.routes.Fabric().Switches()[:5] {
			h := s.flowsetHeader(sw, now, uint64(i), flows/2)
			for _, b := range flowsetChunks(t, h, keys) {
				if err := w.IngestReport(now, b); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	seen := 0
	for slot := range w.Flush(now) {
		for range slot.Flows() {
			seen++
		}
	}
	if seen < 2*flows*9/10 {
		t.Fatalf("%d flows in two slots; want about %d of each, or the test proves nothing", seen, flows)
	}
	each := (heap() - before) / flows
	// The last slot's map and the ports' loads are in the memory of decoding: 500 bytes
	// at each of five switches.
	if most := int64(trackedSize + 5*500); each > most || each < most/4 {
		t.Errorf("%d bytes for each flow; want about %d", each, most)
	}
	runtime.KeepAlive(w)
	runtime.KeepAlive(keys)
}

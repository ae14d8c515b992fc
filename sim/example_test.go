package sim_test

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// Eight hosts of a fat-tree send to one at the same time, with DCQCN and with
// HPCC: HPCC keeps the queue shorter, so fewer packets get an ECN mark.
func Example() {
	fabric, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		panic(err)
	}
	routes, err := topo.NewRoutes(fabric, topo.RouteConfig{Seed: 1})
	if err != nil {
		panic(err)
	}
	hosts := fabric.Hosts()
	var flows []traffic.Flow
	for _, h := range hosts[:8] {
		flows = append(flows, traffic.Flow{Src: h, Dst: hosts[15], Bytes: 4 * model.MB, Priority: 3})
	}
	for _, control := range []congestion.Params{congestion.PaperDCQCN(), congestion.DefaultHPCC()} {
		cfg := sim.DefaultConfig()
		cfg.Congestion, cfg.Window = control, true
		n, err := sim.New(routes, cfg)
		if err != nil {
			panic(err)
		}
		if err := n.AddFlows(flows); err != nil {
			panic(err)
		}
		n.Run(10 * engine.Millisecond)
		fmt.Printf("%s: %d flows finished, %d pauses, %d marked packets\n",
			control.Traits().Name, n.Finished, n.Counts.Pauses, n.Counts.Marked)
	}
	// Output:
	// dcqcn: 8 flows finished, 0 pauses, 339 marked packets
	// hpcc: 8 flows finished, 0 pauses, 42 marked packets
}

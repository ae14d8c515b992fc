package topo_test

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// A fabric is generated, routed and queried: the path of a flow, the port that a
// person names, and what Check finds.
func Example() {
	fabric, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		panic(err)
	}
	routes, err := topo.NewRoutes(fabric, topo.RouteConfig{Seed: 1})
	if err != nil {
		panic(err)
	}
	h0, _ := fabric.ByName("h0")
	h2, _ := fabric.ByName("h2")
	flow := model.FlowKey{
		Src: fabric.Node(h0).IPv4, Dst: fabric.Node(h2).IPv4,
		SrcPort: 49152, DstPort: 4791, Proto: model.UDP,
	}
	path, err := routes.Path(flow, h0)
	if err != nil {
		panic(err)
	}
	for _, hop := range path[:len(path)-1] {
		fmt.Println(fabric.PortName(model.Port{Node: hop.Node, Port: hop.Out}))
	}
	port, err := fabric.FindPort("tor6>leaf6")
	fmt.Println(fabric.PortRef(port), err)
	fmt.Println(len(topo.Check(routes)), "findings")
	// Output:
	// h0 eth1 → tor0
	// tor0 Ethernet12 → leaf1
	// leaf1 Ethernet4 → tor1
	// tor1 Ethernet0 → h2
	// tor6:Ethernet8 <nil>
	// 0 findings
}

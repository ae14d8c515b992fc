package symptom

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/pfc"
)

// TestCollector adds hand-made traces: a link in both directions under clocks that
// differ, PFC frames of both kinds, and equal-cost ports of which one is never
// used.
func TestCollector(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(topo.NewIntent(r))
	if err != nil {
		t.Fatal(err)
	}
	id := func(name string) model.NodeID { n, _ := f.ByName(name); return n }
	tor, leaf := id("tor0"), id("leaf0")
	up, down := f.Node(tor).PortsTo(leaf)[0], f.Node(leaf).PortsTo(tor)[0]
	key := func(from, to model.NodeID, port uint16) model.FlowKey {
		return model.FlowKey{Src: f.Node(from).IPv4, Dst: f.Node(to).IPv4, SrcPort: port, Proto: model.UDP}
	}
	const ahead = time.Second // leaf0's clock
	for i := range 40 {
		d := 2*time.Microsecond + time.Duration(i)
		k := key(0, 4, uint16(i))
		there := trace.Trace{ID: trace.ID{Key: k}, Hops: []trace.Hop{
			{Switch: tor, Out: up, TTL: 64, Depth: 1, To: k.Dst, Time: 100},
			{Switch: leaf, TTL: 63, Depth: 1, To: k.Dst, Time: model.Time(100 + ahead + d)},
		}}
		k = key(4, 0, uint16(i))
		back := trace.Trace{ID: trace.ID{Key: k}, Hops: []trace.Hop{
			{Switch: leaf, Out: down, TTL: 62, Depth: 1, To: k.Dst, Time: model.Time(500 + ahead)},
			{Switch: tor, TTL: 61, Depth: 1, To: k.Dst, Time: model.Time(500 + 3*d)},
		}}
		c.AddTrace(&there)
		c.AddTrace(&back)
	}
	links := c.Links()
	if len(links) != 1 || links[0] != (Link{
		Port: model.Port{Node: tor, Port: up}, RoundTrip: 8 * time.Microsecond,
		Packets: 40,
	}) {
		t.Errorf("%+v; want one of tor0 → leaf0, 8µs from 40 packets", links)
	}
	uneven := c.TakeImbalances()
	if len(uneven) != 1 || uneven[0].Switch != tor || uneven[0].Ratio != 2 {
		t.Errorf("%+v; want tor0 at twice the mean", uneven)
	}
	for i, frame := range []pfc.Frame{
		pfc.Pause(model.MAC{}, 3, 100), pfc.Resume(model.MAC{}, 3),
		pfc.Pause(model.MAC{}, 3, 1),
	} {
		c.AddTrace(&trace.Trace{Frame: frame.AppendTo(nil), Hops: []trace.Hop{{Switch: tor, In: 1, Time: model.Time(i)}}})
	}
	c.AddTrace(&trace.Trace{Frame: []byte("no PFC"), Hops: []trace.Hop{{Switch: tor, In: 2}}})
	if p := c.Pauses(); len(p) != 1 || p[0] != (Pauses{Port: model.Port{Node: tor, Port: 1}, Frames: 2, Last: 2}) {
		t.Errorf("%+v; want two pause frames at one port", p)
	}
	if m := c.Muxes(); len(m) != 0 {
		t.Errorf("muxes %+v in a fabric without any", m)
	}
}

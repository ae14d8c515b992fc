package sampled

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// TestOneRecordOfAFlow: of records that all switches of a path send, one is used; where some
// do not export, one of another stage.
func TestOneRecordOfAFlow(t *testing.T) {
	r := fatTree(t)
	f := r.Fabric()
	for i := range 64 {
		key := flowBetween(r, i%16, (i*7+5)%16, uint16(i))
		if key.Src == key.Dst {
			continue
		}
		src, _ := f.ByAddr(key.Src)
		path, err := r.Path(key, src)
		if err != nil {
			t.Fatal(err)
		}
		hops := path[1 : len(path)-1]
		for first := range hops { // the switches before it do not export
			e := NewExporters(topo.NewIntent(r))
			silent := map[model.NodeID]bool{}
			for _, h := range hops[:first] {
				silent[h.Node] = true
			}
			for _, sw := range f.Switches() {
				if !silent[sw] {
					e.Choose(sw, &key, 0)
				}
			}
			used := -1
			for k, h := range hops {
				if !silent[h.Node] && e.Choose(h.Node, &key, 0) {
					if used >= 0 {
						t.Errorf("%v: hops %d and %d are both used", key, used, k)
					}
					used = k
				}
			}
			if used != first {
				t.Errorf("%v: hop %d is used; want %d, the first that exports", key, used, first)
			}
		}
	}
	// A flow to the outside is taken where it begins.
	out := model.FlowKey{Src: f.Node(f.Hosts()[0]).IPv4, Dst: model.Addr4(0x08080808), Proto: model.TCP}
	first := f.Node(f.Hosts()[0]).Ports[0].Peer.Node
	for _, sw := range f.Switches() {
		if got := NewExporters(topo.NewIntent(r)).Choose(sw, &out, 0); got != (sw == first) {
			t.Errorf("record of %s of a flow to the outside is used: %v", f.Node(sw).Name, got)
		}
	}
	// A flow from outside is taken where it ends.
	e := NewExporters(topo.NewIntent(r))
	key := model.FlowKey{Src: model.Addr4(0x08080808), Dst: f.Node(f.Hosts()[0]).IPv4, Proto: model.TCP}
	tor := r.ExpectedLastHops(key.Dst)[0]
	for _, sw := range f.Switches() {
		if got := e.Choose(sw, &key, 0); got != (sw == tor) {
			t.Errorf("record of %s is used: %v", f.Node(sw).Name, got)
		}
	}
}

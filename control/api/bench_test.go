package api

import (
	"net/url"
	"testing"

	"github.com/weft-telemetry/weft/topo"
)

// BenchmarkAnswer measures a response without network and store, for the demo's
// fabric and for one with 1,344 nodes.
func BenchmarkAnswer(b *testing.B) {
	for _, size := range []struct {
		name string
		k    int
	}{{"k=4", 4}, {"k=16", 16}} {
		s, k := newServer(b)
		if size.k != 4 {
			f, err := topo.FatTree(size.k, topo.DefaultLinks())
			if err != nil {
				b.Fatal(err)
			}
			k.fabric, k.state = f, newState(f)
		}
		for _, path := range []string{
			"/topology", "/state", "/incidents", "/incidents/inc-0", "/diagnoses/d-0?format=svg", "/flows?filter=udp",
			"/flows/" + url.PathEscape(k.flow(1).String()), "/traces?limit=100", "/ports/heatmap?last=200s", "/health",
		} {
			b.Run(size.name+path[:min(len(path), 12)], func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if w := do(s.Handler(), "GET", Prefix+path, ""); w.Code != 200 && w.Code != 404 {
						b.Fatalf("%s = %d %s", path, w.Code, w.Body)
					}
				}
			})
		}
	}
}

// BenchmarkChanges measures one tick of the state feed.
func BenchmarkChanges(b *testing.B) {
	f, err := topo.FatTree(16, topo.DefaultLinks())
	if err != nil {
		b.Fatal(err)
	}
	k := &fake{fabric: f, state: newState(f)}
	feed := &stateFeed{live: k, hub: NewEventHub(1, 1)}
	c, _, _ := feed.subscribe("")
	for i := 0; b.Loop(); i++ {
		for j := range 100 {
			if j == 0 {
				k.change(j, int64(i))
			} else {
				k.state.Ports[j].QueueBytes = int64(i)
			}
		}
		feed.tick(epoch0)
		<-c.events
	}
}

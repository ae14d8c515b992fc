package api

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
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

// BenchmarkLargeFabric measures what a client of a large fabric receives, and how long
// the answer takes: the whole topology and state as plain and as compressed JSON, one
// pod, the sums, and the changes of 1 % of the ports. Every iteration has a new
// snapshot, so nothing of the state is cached.
func BenchmarkLargeFabric(b *testing.B) {
	for _, k := range []int{4, 16, 32} {
		s, live := newServer(b)
		f, err := topo.FatTree(k, topo.DefaultLinks())
		if err != nil {
			b.Fatal(err)
		}
		live.fabric, live.state = f, newState(f)
		random := rand.New(rand.NewPCG(1, 2))
		report := func(ports []PortState, share float64) {
			for i := range ports {
				if random.Float64() < share {
					p := &ports[i]
					p.LoadBps, p.QueueBytes, p.LatencyNs = random.Int64N(1e11), random.Int64N(1e5), random.Int64N(3000)
					p.LoadShare, p.AgeMs = float64(p.LoadBps)/1e11, float64(random.Int64N(20_000))/1000
				}
			}
		}
		report(live.state.Ports, 1)
		for _, q := range []struct{ name, path, accept string }{
			{"topology/plain", "/topology", ""},
			{"topology/gzip", "/topology", "gzip"},
			{"topology/pod", "/topology?pods=0", "gzip"},
			{"state/plain", "/state", ""},
			{"state/gzip", "/state", "gzip"},
			{"state/pod", "/state?pods=0", "gzip"},
			{"state/since", "/state?since=", "gzip"},
			{"overview", "/overview", "gzip"},
		} {
			b.Run(fmt.Sprintf("k=%d/%s", k, q.name), func(b *testing.B) {
				size := 0
				for b.Loop() {
					b.StopTimer()
					_, id := s.snapshots.newest()
					next := *live.state
					next.Ports = slices.Clone(next.Ports)
					report(next.Ports, .01)
					live.state = &next
					path := q.path
					if strings.HasSuffix(path, "since=") {
						path += id
					}
					b.StartTimer()
					w := do(s.Handler(), "GET", Prefix+path, "", "Accept-Encoding", q.accept)
					if w.Code != 200 {
						b.Fatalf("%s = %d %s", path, w.Code, w.Body)
					}
					size = w.Body.Len()
				}
				b.ReportMetric(float64(size), "B/answer")
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
	feed := &stateFeed{snapshots: &snapshots{live: k}, hub: NewEventHub(1, 1)}
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

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo"
)

// The quick search must find what looking at all pairs finds, in fabrics whose
// hosts differ: one is far away, one has a slow link, one has two links.
func TestLargestWindowIsTheLargestOfAllPairs(t *testing.T) {
	b := topo.NewBuilder("odd")
	link := func(rate model.Rate, delay time.Duration) topo.LinkSpec {
		return topo.LinkSpec{Rate: rate, Delay: delay}
	}
	var sw, hosts []model.NodeID
	for i := range 3 {
		sw = append(sw, b.AddNode(topo.NodeSpec{Name: fmt.Sprintf("s%d", i), Role: topo.Leaf}))
	}
	for i := range 7 {
		h := b.AddNode(topo.NodeSpec{Name: fmt.Sprintf("h%d", i), Role: topo.Host})
		hosts = append(hosts, h)
		l := link(100*model.Gbps, time.Microsecond)
		switch i {
		case 4:
			l.Delay = 30 * time.Microsecond
		case 5:
			l.Rate = 10 * model.Gbps
		case 6:
			b.Connect(h, sw[1], link(100*model.Gbps, 2*time.Microsecond))
		}
		b.Connect(h, sw[i%3], l)
	}
	b.Connect(sw[0], sw[1], link(400*model.Gbps, time.Microsecond))
	b.Connect(sw[1], sw[2], link(400*model.Gbps, 3*time.Microsecond))
	f, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	s := NewPathTable(routes, 1000, true)
	var window int64
	var rtt engine.Time
	for _, a := range hosts {
		for _, c := range hosts {
			if span, ok := s.Between(a, c); ok {
				window, rtt = max(window, span.Window()), max(rtt, span.RTT())
			} else if a != c {
				t.Errorf("no span from %d to %d; want one", a, c)
			}
		}
	}
	gotWindow, gotRTT := s.LargestWindow()
	if gotWindow != window || gotRTT != rtt {
		t.Errorf("Largest() = %d, %v; want %d, %v", gotWindow, gotRTT, window, rtt)
	}
	// From the far host to the third switch: 30, 3 and 1 µs twice. To the slow
	// host a payload takes 80 + 20 + 800 ns, to others 80 + 20 + 80, at ten times
	// the rate.
	if want := 68*engine.Microsecond + 900*engine.Nanosecond; rtt != want || window != 68_180*100/8 {
		t.Errorf("the longest round trip is %v, the largest window %d; want %v and %d", rtt, window, want, 68_180*100/8)
	}
}

// The 8,000 hosts of a fat-tree of k=32 take no longer than its edge switches.
func BenchmarkLargestWindow(b *testing.B) {
	f, err := topo.FatTree(32, topo.DefaultLinks())
	if err != nil {
		b.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		NewPathTable(routes, 1000, true).LargestWindow()
	}
}

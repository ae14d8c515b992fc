package loss

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/topo"
)

// TestUsualFlowletsAreNoCaseOfTheirOwn compares trackers with and without continueUsual, their
// state after every slot too: with losses, clocks that differ, lost reports, switches that never
// report, ports that are not known, and counters that are not exact.
func TestUsualFlowletsAreNoCaseOfTheirOwn(t *testing.T) {
	usual, others := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		l := newLab(t)
		hosts, switches := l.routes.Fabric().Hosts(), l.routes.Fabric().Switches()
		slots := rapid.IntRange(2, 12).Draw(rt, "slots")
		l.gaps = map[gap]bool{}
		for range rapid.IntRange(0, 2).Draw(rt, "lost reports") {
			l.gaps[gap{rapid.Int64Range(0, int64(slots)).Draw(rt, "slot"), rapid.SampledFrom(switches).Draw(rt, "switch")}] = true
		}
		clocks := rapid.SampledFrom([]int{0, 3}).Draw(rt, "skew up to")
		for _, sw := range switches {
			l.skew[sw] = time.Duration(rapid.IntRange(0, clocks).Draw(rt, "skew")) * time.Millisecond
			l.silent[sw] = rapid.IntRange(0, 60).Draw(rt, "silent") == 0
		}
		for port := range rapid.IntRange(1, 3).Draw(rt, "flows") {
			src := rapid.SampledFrom(hosts[:len(hosts)/2]).Draw(rt, "src")
			key := l.key(src, rapid.SampledFrom(hosts[len(hosts)/2:]).Draw(rt, "dst"), uint16(port))
			path := l.path(t, key)
			l.continuous(rt, key, path, slots, rapid.SampledFrom([]int{20, 1 << 30}).Draw(rt, "one lost in"))
			// In one slot it leaves a switch by another port.
			hop := rapid.SampledFrom([]topo.Hop{path[0], path[len(path)/2], path[len(path)-1]}).Draw(rt, "moved at")
			at := cell{rapid.Int64Range(0, 3).Draw(rt, "moved in") * rapid.Int64Range(0, 1).Draw(rt, "moves"), hop.Node, key}
			if r := l.counts[at]; r != nil {
				r.Out = 1 + r.Out%2 // of hosts, if it is the last switch
			}
		}
		oneIn := rapid.SampledFrom([]int64{1 << 40, 50}).Draw(rt, "one odd record in")
		for c, r := range l.counts {
			switch (int64(c.sw)*31 + c.slot*7 + int64(c.key.SrcPort)) % oneIn {
			case 1:
				r.Grade = 0
			case 2:
				r.Out = 0
			case 3:
				r.Out = 1
			}
		}
		var fast, slow *Tracker
		for _, p := range []**Tracker{&fast, &slow} {
			var err error
			if *p, err = NewTracker(DefaultConfig(topo.NewIntent(l.routes))); err != nil {
				rt.Fatal(err)
			}
		}
		slow.noUsual = true
		for _, m := range l.maps() {
			took, left := fast.countUsual(m)
			usual, others = usual+took, others+left
			got, want := fast.Observe(m), slow.Observe(m)
			if !reflect.DeepEqual(got, want) || fast.stats != slow.stats {
				rt.Fatalf("slot %d: %+v, %+v; want %+v, %+v", m.Slot, got, fast.stats, want, slow.stats)
			}
			if !slices.Equal(fast.flowlets, slow.flowlets) || !slices.Equal(fast.hops.items, slow.hops.items) || !reflect.DeepEqual(fast.deficits, slow.deficits) {
				rt.Fatalf("slot %d: hops %+v; want %+v", m.Slot, fast.hops.items, slow.hops.items)
			}
		}
		if got, want := fast.TakeLinks(), slow.TakeLinks(); !reflect.DeepEqual(got, want) {
			rt.Fatalf("links %+v; want %+v", got, want)
		}
	})
	if usual == 0 || others == 0 {
		t.Errorf("%d slots of flowlets were usual, %d not; the test needs both", usual, others)
	}
	t.Logf("%d slots of flowlets were usual, %d not", usual, others)
}

// countUsual counts the flowlets that go on in a map by continueUsual, and leaves them as they are.
func (t *Tracker) countUsual(m *paths.Map) (usual, others int) {
	before := slices.Clone(t.hops.items)
	defer copy(t.hops.items, before)
	for i := range m.Flows() {
		path := m.Path(i, t.ports, t.cfg.Intent.At(m.Start())).Hops
		n, known := t.flows.Find(m.Key(i), m.Hash(i))
		if known && t.continueUsual(&t.flowlets[n], m, i, path) {
			usual++
		} else {
			others++
		}
	}
	return usual, others
}

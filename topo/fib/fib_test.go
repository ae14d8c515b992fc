package fib_test

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/fib"
	"pgregory.net/rapid"
)

// fabric is a small fat-tree with its routes.
func fabric(t testing.TB) (*topo.Fabric, *topo.Routes) {
	t.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return f, r
}

func flow(f *topo.Fabric, src, dst string, port uint16) model.FlowKey {
	s, _ := f.ByName(src)
	d, _ := f.ByName(dst)
	return model.FlowKey{Src: f.Node(s).IPv4, Dst: f.Node(d).IPv4, SrcPort: port, DstPort: 4791, Proto: model.UDP}
}

func TestPrecedence(t *testing.T) {
	f, r := fabric(t)
	tor, _ := f.ByName("tor0") // ports 1, 2: hosts; 3, 4: leaves
	table := fib.New(r, tor)
	key, other := flow(f, "h0", "h1", 7), flow(f, "h0", "h1", 8)

	check := func(when string, k model.FlowKey, port model.PortID, verdict fib.Verdict) {
		t.Helper()
		if got, v := table.Lookup(k); got != port || v != verdict {
			t.Errorf("%s: Lookup(%v) = %d, %v; want %d, %v", when, k, got, v, port, verdict)
		}
	}
	set := func(err error) {
		t.Helper()
		if err != nil {
			t.Errorf("set: %v; want no error", err)
		}
	}
	check("intended", key, 2, fib.Forward)
	set(table.SetPrefix(netip.MustParsePrefix("10.0.0.0/16"), 3))
	check("short prefix", key, 3, fib.Forward)
	set(table.SetDest(key.Dst, 4))
	check("longest prefix", key, 4, fib.Forward)
	set(table.SetFlow(key, 1))
	check("flow", key, 1, fib.Forward)
	check("another flow", other, 4, fib.Forward)
	set(table.SetFlow(key))
	check("flow dropped", key, 0, fib.Drop)
	table.RemoveFlow(key)
	check("flow removed", key, 4, fib.Forward)
	set(table.SetDest(key.Dst))
	check("destination dropped", key, 0, fib.Drop)
	table.RemoveDest(key.Dst)
	check("destination removed", key, 3, fib.Forward)
	table.RemovePrefix(netip.MustParsePrefix("10.0.0.0/16"))
	check("all removed", key, 2, fib.Forward)

	set(table.SetFlow(key, 3))
	set(table.SetPrefix(netip.MustParsePrefix("::/0")))
	table.Reset()
	check("reset", key, 2, fib.Forward)

	stranger := key
	stranger.Dst = model.Addr4(0xc0000201)
	check("no route", stranger, 0, fib.NoRoute)
	toSelf := key
	toSelf.Dst = f.Node(tor).IPv4
	check("own address", toSelf, 0, fib.Forward)
}

func TestRemoveReportsWhatWasThere(t *testing.T) {
	f, r := fabric(t)
	table := fib.New(r, f.Switches()[0])
	key := flow(f, "h0", "h9", 7)
	if table.RemoveFlow(key) || table.RemoveDest(key.Dst) {
		t.Error("Remove of an entry that is not there = true; want false")
	}
	if err := table.SetFlow(key, 1); err != nil || !table.RemoveFlow(key) {
		t.Errorf("SetFlow, RemoveFlow: %v, or false; want nil, true", err)
	}
}

func TestBadPortsAreRefused(t *testing.T) {
	f, r := fabric(t)
	table := fib.New(r, f.Switches()[0])
	key := flow(f, "h0", "h9", 7)
	for _, port := range []model.PortID{0, 5} {
		if err := table.SetFlow(key, port); err == nil {
			t.Errorf("SetFlow(port %d) of a switch with ports 1 to 4 = nil; want an error", port)
		}
		if err := table.SetDest(key.Dst, port); err == nil {
			t.Errorf("SetDest(port %d) of a switch with ports 1 to 4 = nil; want an error", port)
		}
	}
	if err := table.SetPrefix(netip.Prefix{}, 1); err == nil {
		t.Error("SetPrefix(invalid) = nil; want an error")
	}
}

func TestSetRoutesKeepsEntries(t *testing.T) {
	f, r := fabric(t)
	tor, _ := f.ByName("tor0")
	table := fib.New(r, tor)
	key, stuck := flow(f, "h0", "h9", 7), flow(f, "h0", "h9", 8)
	old, _ := table.Lookup(key)
	if err := table.SetFlow(stuck, old); err != nil {
		t.Fatal(err)
	}
	// The operator takes the flow's link out of service.
	now, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1, Down: []int{f.Node(tor).Port(old).Link}})
	if err != nil {
		t.Fatal(err)
	}
	table.SetRoutes(now)
	if port, v := table.Lookup(key); port == old || v != fib.Forward {
		t.Errorf("Lookup(%v) after SetRoutes = %d, %v; want another port than %d", key, port, v, old)
	}
	if port, _ := table.Lookup(stuck); port != old {
		t.Errorf("Lookup(%v) after SetRoutes = %d; want the stale port %d", stuck, port, old)
	}
}

// TestTableNeverChangesRoutes makes random entries and compares every intended
// next hop before and after.
func TestTableNeverChangesRoutes(t *testing.T) {
	f, r := fabric(t)
	intended := func() (all [][]model.PortID) {
		for _, sw := range f.Switches() {
			for i := range f.Nodes() {
				all = append(all, append([]model.PortID{}, r.NextHops(sw, f.Nodes()[i].IPv4)...))
				all = append(all, append([]model.PortID{}, r.NextHops(sw, f.Nodes()[i].IPv6)...))
			}
		}
		return all
	}
	want := intended()
	rapid.Check(t, func(t *rapid.T) {
		sw := rapid.SampledFrom(f.Switches()).Draw(t, "switch")
		table := fib.New(r, sw)
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			ports := rapid.SliceOfN(rapid.Map(rapid.Uint16Range(1, 4), func(p uint16) model.PortID { return model.PortID(p) }), 0, 4).Draw(t, "ports")
			key := flow(f, "h0", "h1", rapid.Uint16().Draw(t, "port"))
			key.Dst = f.Nodes()[rapid.IntRange(0, len(f.Nodes())-1).Draw(t, "dst")].IPv4
			var err error
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0:
				err = table.SetFlow(key, ports...)
			case 1:
				err = table.SetDest(key.Dst, ports...)
			case 2:
				err = table.SetPrefix(netip.MustParsePrefix("10.0.0.0/8"), ports...)
			case 3:
				table.RemoveFlow(key)
			case 4:
				table.RemoveDest(key.Dst)
			}
			if err != nil {
				t.Fatalf("change: %v; want no error", err)
			}
			for i := range ports {
				ports[i] = 99 // the table must have its own copy
			}
			if port, v := table.Lookup(key); v == fib.Forward && port > 4 {
				t.Fatalf("Lookup(%v) = %d after the caller's slice changed; want 0 to 4", key, port)
			}
		}
	})
	if got := intended(); !reflect.DeepEqual(got, want) {
		t.Error("intended routes changed; want them as they were")
	}
}

func TestLookupAllocs(t *testing.T) {
	f, r := fabric(t)
	table := fib.New(r, f.Switches()[0])
	key := flow(f, "h0", "h9", 7)
	if n := testing.AllocsPerRun(100, func() { table.Lookup(key) }); n != 0 {
		t.Errorf("Lookup without entries allocates %v times; want 0", n)
	}
	if err := table.SetDest(flow(f, "h0", "h8", 7).Dst, 3, 4); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { table.Lookup(key) }); n != 0 {
		t.Errorf("Lookup with an entry allocates %v times; want 0", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	f, r := fabric(b)
	for name, entries := range map[string]int{"entries=0": 0, "entries=100": 100} {
		b.Run(name, func(b *testing.B) {
			table := fib.New(r, f.Switches()[0])
			for i := range entries {
				if err := table.SetFlow(flow(f, "h1", "h8", uint16(i)), 3); err != nil {
					b.Fatal(err)
				}
			}
			key := flow(f, "h0", "h9", 7)
			b.ReportAllocs()
			for b.Loop() {
				table.Lookup(key)
			}
		})
	}
}

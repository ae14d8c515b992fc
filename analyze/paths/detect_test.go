package paths

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

const slot = 10 * time.Millisecond

// lab is a fat-tree whose flows are counted by hand: walk sends packets of a
// flow along named switches.
type lab struct {
	t      *testing.T
	fabric *topo.Fabric
	intent *topo.Intent
	slots  []map[model.NodeID]*flows.Decoded
	silent []string // switches that do not report
	lost   []string // switches whose flowsets of slot 1 do not arrive

	clockError time.Duration
}

func newLab(t *testing.T, slots int) *lab {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, fabric: f, intent: topo.NewIntent(r)}
	for n := range slots {
		sets := map[model.NodeID]*flows.Decoded{}
		for _, sw := range f.Switches() {
			sets[sw] = &flows.Decoded{Switch: sw, Slot: uint32(n), Start: model.Time(n) * model.Time(slot), Length: slot}
		}
		l.slots = append(l.slots, sets)
	}
	return l
}

func (l *lab) node(name string) model.NodeID {
	id, ok := l.fabric.ByName(name)
	if !ok {
		l.t.Fatalf("no node %q in the fabric", name)
	}
	return id
}

func (l *lab) key(src, dst string, port uint16) model.FlowKey {
	addr := func(name string) netip.Addr { return l.fabric.Node(l.node(name)).IPv4.Netip() }
	return model.NewFlowKey(netip.AddrPortFrom(addr(src), port), netip.AddrPortFrom(addr(dst), 4791), model.UDP)
}

// walk counts packets of a flow in a slot at each node of a path such as
// "h0 tor0 leaf0 tor1 h2". Paths that end at a switch end there.
func (l *lab) walk(n int, key model.FlowKey, packets uint64, path string) {
	names := strings.Fields(path)
	for i, name := range names {
		sw := l.node(name)
		if l.fabric.Node(sw).Role == topo.Host {
			continue
		}
		r := flows.Record{Key: key, Packets: packets, Grade: flows.Exact}
		if i > 0 {
			r.In = l.fabric.Node(sw).PortsTo(l.node(names[i-1]))[0]
		}
		if i+1 < len(names) {
			r.Out = l.fabric.Node(sw).PortsTo(l.node(names[i+1]))[0]
		}
		d := l.slots[n][sw]
		if have := slices.IndexFunc(d.Records, func(r flows.Record) bool { return r.Key == key }); have >= 0 {
			d.Records[have].Packets += packets // the ports of the first packet stay
			continue
		}
		d.Records = append(d.Records, r)
	}
}

// observe returns the sentences of all findings.
func (l *lab) observe() (list []string) {
	cfg := DefaultConfig(l.intent)
	cfg.ClockError = l.clockError
	d, err := NewDetector(cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	for n, sets := range l.slots {
		m := NewMap(int64(n), slot)
		for _, set := range sets {
			if slices.Contains(l.silent, l.fabric.Node(set.Switch).Name) {
				continue
			}
			if n == 1 && slices.Contains(l.lost, l.fabric.Node(set.Switch).Name) {
				m.MarkLost(set.Switch, false)
				continue
			}
			set.MayContain = func(k model.FlowKey) bool {
				return slices.ContainsFunc(set.Records, func(r flows.Record) bool { return r.Key == k })
			}
			m.AddFlowset(set)
		}
		for _, f := range d.Observe(m) {
			s := f.Describe(l.fabric)
			if !f.Confirmed {
				s = "perhaps " + s
			}
			list = append(list, s)
		}
	}
	return list
}

func TestDetector(t *testing.T) {
	const near = "h0 tor0 leaf0 tor1 h2"
	const far = "h0 tor0 leaf0 spine0 leaf2 tor2 h4"
	for name, tc := range map[string]struct {
		run  func(l *lab)
		want []string
	}{
		"healthy": {func(l *lab) {
			for n := range 4 {
				l.walk(n, l.key("h0", "h2", 1), 10, near)
				l.walk(n, l.key("h0", "h4", 1), 10, far)
			}
		}, nil},
		"last packets are in flight": {func(l *lab) {
			l.walk(0, l.key("h0", "h4", 1), 10, far)
			l.walk(1, l.key("h0", "h4", 1), 4, "h0 tor0 leaf0 spine0")
			l.walk(2, l.key("h0", "h4", 1), 4, "leaf2 tor2 h4")
		}, nil},
		"a clock that is late": {func(l *lab) {
			// The ToR counts the last packets in slot 1, the leaf in slot 0.
			l.walk(0, l.key("h0", "h2", 1), 10, "leaf0 tor1 h2")
			l.walk(1, l.key("h0", "h2", 1), 10, "h0 tor0 leaf0")
			l.slots[1][l.node("leaf0")].Records = nil
		}, nil},
		"black hole for one flow of two": {func(l *lab) {
			for n := range 4 {
				l.walk(n, l.key("h0", "h4", 1), 10, far)
				if n < 2 {
					l.walk(n, l.key("h0", "h4", 2), 10, far)
				} else {
					l.walk(n, l.key("h0", "h4", 2), 10, "h0 tor0 leaf0 spine0")
					l.slots[n][l.node("leaf0")].Records[1].Out = l.slots[1][l.node("leaf0")].Records[1].Out
					l.slots[n][l.node("spine0")].Records[1].Out = l.slots[1][l.node("spine0")].Records[1].Out
				}
			}
		}, []string{
			"perhaps slot 2: black hole at spine0 Ethernet4 → leaf2, not received by leaf2: 1 of 2 flows",
			"slot 2: black hole at spine0 Ethernet4 → leaf2, not received by leaf2: 1 of 2 flows",
			"slot 3: black hole at spine0 Ethernet4 → leaf2, not received by leaf2: 1 of 2 flows",
		}},
		"a switch that has lost its route": {func(l *lab) {
			l.walk(0, l.key("h0", "h4", 1), 10, far)
			l.walk(1, l.key("h0", "h4", 1), 10, "h0 tor0")
			l.walk(2, l.key("h0", "h4", 1), 10, "h0 tor0")
		}, []string{
			"perhaps slot 1: black hole at tor0 cpu: 1 of 1 flow",
			"slot 1: black hole at tor0 cpu: 1 of 1 flow",
			"slot 2: black hole at tor0 cpu: 1 of 1 flow",
		}},
		"dead link": {func(l *lab) {
			l.walk(0, l.key("h0", "h4", 1), 10, far)
			for n := 1; n < 3; n++ {
				l.walk(n, l.key("h0", "h4", 1), 10, "h0 tor0 leaf0 spine0")
				l.slots[n][l.node("spine0")].Records[0].Out = l.slots[0][l.node("spine0")].Records[0].Out
			}
		}, []string{
			"perhaps slot 1: silent link at spine0 Ethernet4 → leaf2, not received by leaf2: 1 of 1 flow",
			"slot 1: silent link at spine0 Ethernet4 → leaf2, not received by leaf2: 1 of 1 flow",
			"slot 2: silent link at spine0 Ethernet4 → leaf2, not received by leaf2: 1 of 1 flow",
		}},
		"black hole seen by ToRs alone": {func(l *lab) {
			for _, sw := range l.fabric.Switches() {
				if l.fabric.Node(sw).Role != topo.ToR {
					l.silent = append(l.silent, l.fabric.Node(sw).Name)
				}
			}
			for n := range 3 {
				l.walk(n, l.key("h0", "h4", 1), 10, "h0 tor0 leaf0")
				l.walk(n, l.key("h0", "h4", 2), 10, far)
			}
		}, []string{
			"slot 0: black hole at tor0 Ethernet8 → leaf0: 1 of 2 flows",
			"slot 1: black hole at tor0 Ethernet8 → leaf0: 1 of 2 flows",
			"slot 2: black hole at tor0 Ethernet8 → leaf0: 1 of 2 flows",
		}},
		"a switch with a black hole, of which one report is lost": {func(l *lab) {
			l.lost = []string{"leaf2"}
			for n := range 4 {
				l.walk(n, l.key("h0", "h4", 1), 10, "h0 tor0 leaf0 spine0 leaf2")
				l.walk(n, l.key("h1", "h4", 1), 10, "h1 tor0 leaf0 spine0 leaf2 tor2 h4")
			}
		}, []string{
			"slot 2: black hole at leaf2 cpu: 1 of 1 flow",
			"slot 3: black hole at leaf2 cpu: 1 of 1 flow",
		}},
		"undecoded neighbour proves nothing": {func(l *lab) {
			l.silent = []string{"leaf2", "tor2"}
			for n := range 3 {
				l.walk(n, l.key("h0", "h4", 1), 10, "h0 tor0 leaf0 spine0")
			}
		}, nil},
		"loop of two after the first hop": {func(l *lab) {
			l.walk(1, l.key("h0", "h2", 1), 10, "h0 tor0 leaf0 tor1 leaf0")
			l.walk(1, l.key("h0", "h2", 1), 10, "leaf0 tor1 leaf0 tor1")
			l.walk(1, l.key("h0", "h2", 1), 10, "leaf0 tor1 leaf0 tor1")
		}, []string{
			"slot 1: loop leaf0 → tor1 → leaf0: 1 of 1 flow",
			"slot 1: wrong route at tor1 Ethernet8 → leaf0: 1 of 1 flow",
		}},
		"loop that starts after the slot's first packet": {func(l *lab) {
			key := l.key("h0", "h4", 1)
			l.walk(1, key, 2, far)
			l.walk(2, key, 1, far)
			l.walk(2, key, 1, "h0 tor0 leaf0 spine0 leaf2 tor2 leaf2")
			for range 30 {
				l.walk(2, key, 1, "leaf2 tor2")
			}
		}, []string{"perhaps slot 2: loop leaf2 → tor2 → leaf2: 1 of 1 flow"}},
		"a burst at the end of the slot, and a clock that is ahead": {func(l *lab) {
			key := l.key("h0", "h4", 1)
			l.walk(1, key, 1, far)
			l.walk(1, key, 20, "leaf0 spine0 leaf2 tor2 h4") // which tor0 counts in the next slot
		}, nil},
		"loop at the source's own switch": {func(l *lab) {
			key := l.key("h0", "h2", 1)
			l.walk(1, key, 10, "h0 tor0 leaf0 tor0")
			for range 5 {
				l.walk(1, key, 10, "tor0 leaf0")
			}
			l.slots[1][l.node("leaf0")].Records[0].Packets = 60
		}, []string{
			"slot 1: loop tor0 → leaf0 → tor0: 1 of 1 flow",
			"slot 1: wrong route at leaf0 Ethernet0 → tor0: 1 of 1 flow",
		}},
		"route change that closes a cycle on the map": {func(l *lab) {
			// Half of the slot tor0 → leaf0 → spine0 → leaf2, then by the
			// other spine: no packet comes back.
			key := l.key("h0", "h4", 1)
			l.walk(1, key, 10, far)
			l.walk(1, key, 10, "h0 tor0 leaf0 spine1 leaf2 tor2 h4")
		}, nil},
		"wrong route": {func(l *lab) {
			l.walk(0, l.key("h0", "h2", 1), 10, "h0 tor0 leaf0 spine0 leaf2 tor2 h4")
		}, []string{
			"slot 0: wrong route at tor2 Ethernet0 → h4: 1 of 1 flow",
			"slot 0: wrong route at leaf0 Ethernet8 → spine0: 1 of 1 flow",
			"slot 0: wrong route at leaf2 Ethernet0 → tor2: 1 of 1 flow",
			"slot 0: wrong route at spine0 Ethernet4 → leaf2: 1 of 1 flow",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 5)
			tc.run(l)
			if got := l.observe(); !slices.Equal(got, tc.want) {
				t.Errorf("found:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// Counters prove a fault in the slot it starts in, or in the next, if clocks are
// known to agree; they do not if clocks may differ by as much as the counters.
func TestClockErrorDecidesWhatCountersProve(t *testing.T) {
	const far = "h0 tor0 leaf0 spine0 leaf2 tor2 h4"
	loop := func(l *lab) { // 60 packets of 64 bytes more than entered: 0.3 µs at 100 Gb/s
		l.walk(0, l.key("h0", "h4", 1), 1, far)
		l.walk(1, l.key("h0", "h4", 1), 1, far)
		l.walk(1, l.key("h0", "h4", 1), 63, "leaf2 tor2")
	}
	hole := func(before, arrived uint64) func(l *lab) {
		return func(l *lab) {
			key := l.key("h0", "h4", 1)
			l.walk(0, key, before, far)
			l.walk(0, key, 10-before, "h0 tor0 leaf0 spine0")
			l.walk(1, key, arrived, far)
			l.walk(1, key, 10-arrived, "h0 tor0 leaf0 spine0")
			l.walk(2, key, 10, "h0 tor0 leaf0 spine0")
			l.slots[2][l.node("spine0")].Records[0].Out = l.slots[1][l.node("spine0")].Records[0].Out
		}
	}
	const (
		looping = "slot 1: loop leaf2 → tor2 → leaf2: 1 of 1 flow"
		dead    = "slot 2: silent link at spine0 Ethernet4 → leaf2, not received by leaf2: 1 of 1 flow"
	)
	for name, tc := range map[string]struct {
		clocks time.Duration
		run    func(l *lab)
		want   string
	}{
		"loop, clocks not known":            {0, loop, "perhaps " + looping},
		"loop, clocks agree":                {100 * time.Nanosecond, loop, looping},
		"loop, clocks differ by as much":    {time.Millisecond, loop, "perhaps " + looping},
		"hole, clocks not known":            {0, hole(10, 5), "perhaps " + dead},
		"hole, clocks agree":                {time.Microsecond, hole(10, 5), dead},
		"hole, all of the last slot passed": {time.Microsecond, hole(10, 10), "perhaps " + dead},
	} {
		l := newLab(t, 3)
		l.clockError = tc.clocks
		tc.run(l)
		if got := l.observe(); !slices.Equal(got, []string{tc.want}) {
			t.Errorf("%s: %q; want %q", name, got, tc.want)
		}
	}
}

package loss

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

const slot = 10 * time.Millisecond

// lab counts packets of flows that cross a fat-tree, as the switches' own
// clocks would, into decoded flowsets.
type lab struct {
	routes *topo.Routes
	skew   map[model.NodeID]time.Duration
	counts map[cell]*flows.Record
	slots  int64
	silent map[model.NodeID]bool // switches that do not report
	gaps   map[gap]bool          // slots that a switch does not report
}

type gap struct {
	slot int64
	sw   model.NodeID
}

type cell struct {
	slot int64
	sw   model.NodeID
	key  model.FlowKey
}

func newLab(t testing.TB) *lab {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &lab{routes: r, skew: map[model.NodeID]time.Duration{}, counts: map[cell]*flows.Record{}, silent: map[model.NodeID]bool{}}
}

func (l *lab) key(src, dst model.NodeID, port uint16) model.FlowKey {
	f := l.routes.Fabric()
	return model.NewFlowKey(netip.AddrPortFrom(f.Node(src).IPv4.Netip(), port), netip.AddrPortFrom(f.Node(dst).IPv4.Netip(), 4791), model.UDP)
}

// path is the switches of a flow's path.
func (l *lab) path(t testing.TB, key model.FlowKey) []topo.Hop {
	src, _ := l.routes.Fabric().ByAddr(key.Src)
	hops, err := l.routes.Path(key, src)
	if err != nil {
		t.Fatal(err)
	}
	return hops[1 : len(hops)-1]
}

// send counts a packet at every switch up to the one that loses it: after hop
// lost; len(path) or more: it arrives.
func (l *lab) send(path []topo.Hop, key model.FlowKey, at model.Time, delay time.Duration, lost int) {
	for i, h := range path {
		clock := at.Add(l.skew[h.Node])
		n := int64(clock) / int64(slot)
		c := cell{n, h.Node, key}
		if l.counts[c] == nil {
			l.counts[c] = &flows.Record{Key: key, In: h.In, Out: h.Out, Grade: flows.Exact}
		}
		l.counts[c].Packets++
		l.slots = max(l.slots, n+1)
		if i == lost {
			return
		}
		at = at.Add(delay)
	}
}

// maps returns the maps of all slots and two more.
func (l *lab) maps() (list []*paths.Map) {
	for n := int64(0); n < l.slots+2; n++ {
		m := paths.NewMap(n, slot)
		for _, sw := range l.routes.Fabric().Switches() {
			if l.silent[sw] || l.gaps[gap{n, sw}] {
				continue
			}
			d := &flows.Decoded{Switch: sw, Start: model.Time(n * int64(slot)), Length: slot}
			has := map[model.FlowKey]bool{}
			for c, r := range l.counts {
				if c.slot == n && c.sw == sw {
					d.Records = append(d.Records, *r)
					has[c.key] = true
				}
			}
			d.MayContain = func(k model.FlowKey) bool { return has[k] }
			m.AddFlowset(d)
		}
		list = append(list, m)
	}
	return list
}

func track(t testing.TB, l *lab) (*Tracker, []Event) {
	tr, err := NewTracker(DefaultConfig(topo.NewIntent(l.routes)))
	if err != nil {
		t.Fatal(err)
	}
	var events []Event
	for _, m := range l.maps() {
		events = append(events, tr.Observe(m)...)
	}
	return tr, events
}

// TestClaimLossMapIsExact sends flowlets with random gaps, delays, clocks and
// losses: what the tracker reports adds up to what was lost, flow by flow and
// segment by segment.
func TestClaimLossMapIsExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLab(t)
		hosts := l.routes.Fabric().Hosts()
		for _, sw := range l.routes.Fabric().Switches() {
			l.skew[sw] = time.Duration(rapid.IntRange(0, 1000).Draw(rt, "skew")) * time.Microsecond
		}
		type where struct {
			key  model.FlowKey
			from model.Port
		}
		want := map[where]uint64{}
		for n := range rapid.IntRange(1, 4).Draw(rt, "flows") {
			src := rapid.IntRange(0, 7).Draw(rt, "src")
			key := l.key(hosts[src], hosts[15-src], uint16(1000+n))
			path := l.path(t, key)
			at := model.Time(2 * slot)
			for range rapid.IntRange(1, 60).Draw(rt, "packets") {
				lost := len(path)
				if rapid.IntRange(0, 9).Draw(rt, "die") == 0 {
					lost = rapid.IntRange(0, len(path)-2).Draw(rt, "location")
					want[where{key, model.Port{Node: path[lost].Node, Port: path[lost].Out}}]++
				}
				l.send(path, key, at, time.Duration(rapid.IntRange(1, 500).Draw(rt, "delay"))*time.Microsecond, lost)
				at = at.Add(time.Duration(rapid.SampledFrom([]int{1, 50, 3000, 15000, 40000}).Draw(rt, "gap")) * time.Microsecond)
			}
		}
		tr, events := track(t, l)
		got := map[where]uint64{}
		for _, e := range events {
			if e.WholePath {
				rt.Fatalf("%s; want a location", e.Describe(l.routes.Fabric()))
			}
			got[where{e.Flow, e.From}] += e.Packets
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("losses found %v; want %v", got, want)
		}
		if s := tr.Stats(); s.Uncertain != 0 || s.Untracked != 0 {
			rt.Fatalf("stats %+v; want nothing uncertain", s)
		}
	})
}

func TestEarlyEventsComeWhileTheFlowGoesOn(t *testing.T) {
	l := newLab(t)
	hosts := l.routes.Fabric().Hosts()
	key := l.key(hosts[0], hosts[15], 7)
	path := l.path(t, key)
	// One packet a millisecond for 200 ms; everything from 50 to 80 ms is lost
	// after the second switch: more than one slot's packets, which could hide
	// as many lost ones after them.
	for ms := range 200 {
		lost := len(path)
		if ms >= 50 && ms < 80 {
			lost = 1
		}
		l.send(path, key, model.Time(ms)*model.Time(time.Millisecond), 10*time.Microsecond, lost)
	}
	_, events := track(t, l)
	if len(events) == 0 {
		t.Fatal("no event; want packets of slots 5 to 7")
	}
	e := events[0]
	if e.Packets != 10 || e.FoundSlot != 6 || e.Final || e.FirstSlot != 5 || e.From.Node != path[1].Node {
		t.Errorf("first event: %s; want 10 packets from slot 5 on after switch %d, found in slot 6", e.Describe(l.routes.Fabric()), path[1].Node)
	}
	var sum uint64
	for _, e := range events {
		sum += e.Packets
	}
	if sum != 30 {
		t.Errorf("%d packets lost in all events; want 30", sum)
	}
}

// TestLossOfAnEndlessFlowIsOfItsTime: a flow that never pauses loses a fifth of its
// packets from slot 100 on. However long it has run, the losses are dated when they
// were, and among what was sent then.
func TestLossOfAnEndlessFlowIsOfItsTime(t *testing.T) {
	const begin, slots, perSlot = 100, 400, 20
	l := newLab(t)
	hosts := l.routes.Fabric().Hosts()
	key := l.key(hosts[0], hosts[15], 7)
	path := l.path(t, key)
	var lost []int64 // the slot of each
	for n := range slots * perSlot {
		at := model.Time(n) * model.Time(slot/perSlot)
		end := len(path)
		if n >= begin*perSlot && n%5 == 2 {
			end, lost = 1, append(lost, int64(at)/int64(slot))
		}
		l.send(path, key, at, 10*time.Microsecond, end)
	}
	_, events := track(t, l)
	var sum uint64
	for i, e := range events {
		oldest := lost[sum]
		sum += e.Packets
		newest := lost[sum-1]
		if e.FirstSlot > oldest || e.LastSlot < newest || e.FirstSlot < oldest-1 || e.LastSlot > newest+1 {
			t.Errorf("%s; want slots %d to %d, or one more", e.Describe(l.routes.Fabric()), oldest, newest)
		}
		// An event comes when packets of later slots cannot hide it any longer.
		if most := uint64(e.FoundSlot-oldest+1) * perSlot; e.Sent < e.Packets || e.Sent > most+perSlot {
			t.Errorf("%s; want a part of what was sent since slot %d, %d", e.Describe(l.routes.Fabric()), oldest, most)
		}
		if i == 0 && e.FirstSlot != begin {
			t.Errorf("first event: %s; want slot %d", e.Describe(l.routes.Fabric()), begin)
		}
	}
	if sum != uint64(len(lost)) || len(events) < slots-begin-10 {
		t.Errorf("%d packets lost in %d events; want %d, almost every slot", sum, len(events), len(lost))
	}
}

func TestToRsAloneCountLossesWithoutPlace(t *testing.T) {
	l := newLab(t)
	f := l.routes.Fabric()
	for _, sw := range f.Switches() {
		l.silent[sw] = f.Node(sw).Role != topo.ToR
	}
	hosts := f.Hosts()
	key := l.key(hosts[0], hosts[15], 7)
	path := l.path(t, key)
	for n := range 20 {
		lost := len(path)
		if n%5 == 0 {
			lost = 2
		}
		l.send(path, key, model.Time(n)*model.Time(time.Millisecond), 10*time.Microsecond, lost)
	}
	_, events := track(t, l)
	var sum uint64
	for _, e := range events {
		sum += e.Packets
		if e.From.Node != path[0].Node || e.To.Node != path[4].Node {
			t.Errorf("%s; want between the two ToRs", e.Describe(f))
		}
	}
	if sum != 4 {
		t.Errorf("lost %d packets; want 4", sum)
	}
}

// TestGapsAreNoLosses: a report that never came, of any slot of a flow and any
// switch, the first ones too, makes nothing seem lost.
func TestGapsAreNoLosses(t *testing.T) {
	l := newLab(t)
	hosts := l.routes.Fabric().Hosts()
	key := l.key(hosts[0], hosts[15], 7)
	path := l.path(t, key)
	for ms := range 60 {
		l.send(path, key, model.Time(ms)*model.Time(time.Millisecond), 10*time.Microsecond, len(path))
	}
	for n := range int64(6) {
		for _, h := range path {
			l.gaps = map[gap]bool{{n, h.Node}: true}
			if _, events := track(t, l); len(events) != 0 {
				t.Errorf("slot %d of switch %d is missing, and %s; want no loss", n, h.Node, events[0].Describe(l.routes.Fabric()))
			}
		}
	}
}

// TestLossOfAMovedFlowHasNoPlace: a flow leaves its second switch by another port from
// slot 3 on, and what took that port is lost. Packets of slot 2 may have taken either, so
// no port is blamed for what is missing.
func TestLossOfAMovedFlowHasNoPlace(t *testing.T) {
	l := newLab(t)
	hosts := l.routes.Fabric().Hosts()
	key := l.key(hosts[0], hosts[15], 7)
	path := l.path(t, key)
	moved := slices.Clone(path)
	for _, p := range l.routes.NextHops(path[1].Node, key.Dst) {
		if p != path[1].Out {
			moved[1].Out = p
		}
	}
	if moved[1].Out == path[1].Out {
		t.Fatal("the second switch has one port only; want ECMP")
	}
	for ms := range 60 {
		at := model.Time(ms) * model.Time(time.Millisecond)
		switch {
		case ms < 25:
			l.send(path, key, at, 10*time.Microsecond, len(path))
		case ms < 50:
			l.send(moved, key, at, 10*time.Microsecond, 1)
		default:
			l.send(path, key, at, 10*time.Microsecond, len(path))
		}
	}
	_, events := track(t, l)
	var sum uint64
	for _, e := range events {
		sum += e.Packets
		if !e.WholePath {
			t.Errorf("%s; want no place", e.Describe(l.routes.Fabric()))
		}
	}
	if sum != 25 {
		t.Errorf("%d packets lost in all events; want 25", sum)
	}
}

func TestUnsureCountersGiveNoNumber(t *testing.T) {
	l := newLab(t)
	hosts := l.routes.Fabric().Hosts()
	key := l.key(hosts[0], hosts[15], 7)
	path := l.path(t, key)
	l.send(path, key, 0, time.Microsecond, 1)
	l.counts[cell{0, path[0].Node, key}].Grade = flows.Estimated
	tr, events := track(t, l)
	if len(events) != 0 || tr.Stats().Uncertain != 1 {
		t.Errorf("events %v, stats %+v; want none, and one flowlet uncertain", events, tr.Stats())
	}
}

func TestPatternDistinguishesABlackHoleFromRandomLoss(t *testing.T) {
	for name, tc := range map[string]struct {
		lose func(flow, packet int) bool
		want Pattern
	}{
		"none":                      {func(int, int) bool { return false }, NoLoss},
		"one in a dozen":            {func(f, p int) bool { return (f*40+p)%12 == 0 }, Scattered},
		"two of thirty flows, 5 ms": {func(f, p int) bool { return f < 2 && p >= 10 && p < 15 }, Selective},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			hosts := l.routes.Fabric().Hosts()
			var tor model.NodeID
			for n := range 30 {
				key := l.key(hosts[0], hosts[2], uint16(n))
				path := l.path(t, key)
				tor = path[0].Node
				for p := range 40 {
					lost := len(path)
					if tc.lose(n, p) {
						lost = 1
					}
					l.send(path, key, model.Time(p)*model.Time(time.Millisecond), time.Microsecond, lost)
				}
			}
			tr, _ := track(t, l)
			worst := tr.TakeLinks()[0]
			if worst.Pattern() != tc.want || worst.From.Node == tor && tc.want != NoLoss {
				t.Errorf("pattern %v on %+v with %d affected; want %v after the leaf", worst.Pattern(), worst.Segment, len(worst.Affected), tc.want)
			}
		})
	}
}

package coverage

import (
	"cmp"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/label"
)

var flow = model.NewFlowKey(netip.MustParseAddrPort("10.0.0.2:1"), netip.MustParseAddrPort("10.1.0.2:2"), model.UDP)

// export encodes labels, the oldest first.
func export(specific bool, items ...label.Item) []byte {
	o := label.Option{NextHeader: model.UDP, Num: uint8(len(items)), MaxHop: 5}
	if specific {
		o.Num += o.MaxHop
	}
	raw := o.AppendTo(nil)
	for _, it := range slices.Backward(items) {
		raw = it.AppendTo(raw)
	}
	e := label.Export{Key: flow}
	if _, err := e.Labels.Parse(raw); err != nil {
		panic(err)
	}
	return e.AppendTo(nil)
}

func newBoard(t testing.TB) (*PortStates, *topo.Fabric) {
	f, err := topo.Dumbbell(2, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig(f)
	cfg.History = 16
	b, err := NewPortStates(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b, f
}

// TestBoardKeepsTheNewestByLabelTime sends labels in any order, some of them
// hostile, and compares with a list of all that may be believed.
func TestBoardKeepsTheNewestByLabelTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b, f := newBoard(t)
		now := model.Time(10 * time.Second)
		believed := map[model.Port][]label.Item{}
		var want Stats
		for range rapid.IntRange(1, 200).Draw(rt, "labels") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(rt, "step")) * time.Millisecond)
			it := label.Item{
				Switch: model.NodeID(rapid.IntRange(3, 6).Draw(rt, "switch")), // 4 and 5 are switches, 6 is nothing
				Egress: model.PortID(rapid.IntRange(0, 4).Draw(rt, "port")),   // 1 to 3 are there
				Time:   now.Add(-time.Duration(rapid.SampledFrom([]int{-1e6, -20, -5, 0, 1, 3, 50, 900, 1100, 1e6}).Draw(rt, "age")) * time.Millisecond),
			}
			if err := b.IngestReport(now, export(false, it)); err != nil {
				rt.Fatal(err)
			}
			want.Labels++
			want.Exports++
			p := model.Port{Node: it.Switch, Port: it.Egress}
			node := f.HasNode(it.Switch) && it.Egress >= 1 && int(it.Egress) <= len(f.Node(it.Switch).Ports)
			have := believed[p]
			switch {
			case !node:
				want.Unknown++
			case it.Time > now.Add(10*time.Millisecond):
				want.Future++
			case it.Time < now.Add(-time.Second):
				want.Stale++
			case slices.ContainsFunc(have, func(x label.Item) bool { return x.Time == it.Time }):
				want.Repeated++
			default:
				if slices.ContainsFunc(have, func(x label.Item) bool { return x.Time > it.Time }) {
					want.Older++
				} else {
					want.Accepted++
				}
				have = append(have, it)
				slices.SortFunc(have, func(a, b label.Item) int { return cmp.Compare(a.Time, b.Time) })
				believed[p] = have[max(0, len(have)-16):]
			}
		}
		got := b.Stats()
		got.Bytes = 0
		if got != want {
			rt.Fatalf("stats %+v; want %+v", got, want)
		}
		for p, list := range believed {
			if s, _ := b.Newest(p); s.Item != list[len(list)-1] {
				rt.Fatalf("newest of %v is %+v; want %+v", p, s.Item, list[len(list)-1])
			}
			var series []label.Item
			for _, s := range b.Series(p, 0, now+1e12) {
				series = append(series, s.Item)
			}
			if !slices.Equal(series, list) {
				rt.Fatalf("series of %v is %v; want %v", p, series, list)
			}
		}
	})
}

func TestMalformedReportsAreCountedAndNamed(t *testing.T) {
	b, _ := newBoard(t)
	good := export(false, label.Item{Switch: 4, Egress: 1})
	for name, data := range map[string][]byte{"empty": nil, "cut": good[:len(good)-1], "longer": append(slices.Clone(good), 0)} {
		if err := b.IngestReport(0, data); err == nil {
			t.Errorf("%s: Add = nil; want an error", name)
		}
	}
	if s := b.Stats(); s.Malformed != 3 || s.Labels != 0 {
		t.Errorf("stats %+v; want 3 malformed and no label", s)
	}
}

func TestLinkLatencyNeedsNeighbours(t *testing.T) {
	b, f := newBoard(t)
	out := f.Node(4).PortsTo(5)[0]
	in := f.Node(5).PortsTo(4)[0]
	first := label.Item{Switch: 4, Ingress: 1, Egress: out, Time: 1000}
	second := label.Item{Switch: 5, Ingress: in, Egress: 1, Time: 5000, Latency: 2500}
	if err := b.IngestReport(6000, export(false, first, second)); err != nil {
		t.Fatal(err)
	}
	if s := b.Series(model.Port{Node: 5, Port: 1}, 0, 9999); len(s) != 1 || s[0].Link != 1500 {
		t.Errorf("series %+v; want 1.5µs on the link: 5000 - 2500 - 1000 ns", s)
	}
	if s := b.Series(model.Port{Node: 4, Port: out}, 0, 9999); len(s) != 1 || s[0].Link != NoLink {
		t.Errorf("series %+v; want no link before the first label", s)
	}
	second.Ingress++ // came by another port: a switch between did not label
	second.Time++
	if err := b.IngestReport(6001, export(false, first, second)); err != nil {
		t.Fatal(err)
	}
	if s := b.Series(model.Port{Node: 5, Port: 1}, 5001, 9999); len(s) != 1 || s[0].Link != NoLink {
		t.Errorf("series %+v; want no link latency between switches that are not neighbours", s)
	}
}

func TestCongestedAndHeat(t *testing.T) {
	b, _ := newBoard(t)
	for n := range 10 {
		deep := label.Item{Switch: 4, Egress: 1, Time: model.Time(n * 100), EnqueueDepth: model.Bytes(n * 1000), Latency: time.Duration(n)}
		flat := label.Item{Switch: 5, Egress: 2, Time: model.Time(n * 100), EnqueueDepth: 10}
		if err := b.IngestReport(5000, export(false, deep, flat)); err != nil {
			t.Fatal(err)
		}
	}
	got := b.CongestedPorts(200, 550, 1000)
	want := []Congestion{{Port: model.Port{Node: 4, Port: 1}, Depth: 5000, At: 500, Latency: 5, Samples: 4}}
	if !slices.Equal(got, want) {
		t.Errorf("Congested = %+v; want %+v", got, want)
	}
	h := b.Heatmap(0, 300, 4)
	if len(h.Ports) != 2 || !slices.Equal(h.Depth[0], []model.Bytes{2000, 5000, 8000, 9000}) {
		t.Errorf("Heat = %+v; want 2000 5000 8000 9000 in the first row", h)
	}
	if h := b.Heatmap(0, 300, 5); h.Depth[0][4] != NoDepth {
		t.Errorf("Heatmap = %+v; want no label in the last step", h)
	}
}

func TestCutCountsActivePortsOnce(t *testing.T) {
	b, _ := newBoard(t)
	p1, p2, p3 := model.Port{Node: 4, Port: 1}, model.Port{Node: 4, Port: 2}, model.Port{Node: 5, Port: 1}
	for n := range 3 {
		_ = b.IngestReport(100, export(false, label.Item{Switch: 4, Egress: 1, Time: model.Time(n)}, label.Item{Switch: 5, Egress: 1, Time: model.Time(n)}))
	}
	if w := b.EndWindow([]model.Port{p1, p2}); w != (Window{Labelled: 1, Active: 2}) || w.Coverage() != 0.5 {
		t.Errorf("Cut = %+v; want 1 of 2", w)
	}
	if w := b.EndWindow([]model.Port{p1}); w.Labelled != 0 {
		t.Errorf("second Cut = %+v; want a new window", w)
	}
	if got := b.SilentPorts([]model.Port{p1, p2, p3}, 1100, 500); !slices.Equal(got, []model.Port{p1, p2, p3}) {
		t.Errorf("SilentPorts = %v; want all three: two are old, one never reported", got)
	}
	if got := b.SilentPorts([]model.Port{p1, p2, p3}, 300, 500); !slices.Equal(got, []model.Port{p2}) {
		t.Errorf("Silent = %v; want %v", got, p2)
	}
}

func TestPathOfAFollowedFlow(t *testing.T) {
	b, _ := newBoard(t)
	_ = b.IngestReport(100, export(true, label.Item{Switch: 4, Egress: 1, Latency: 30, Time: 1}, label.Item{Switch: 5, Egress: 2, Latency: 70, Time: 2}))
	w, ok := b.FlowPath(flow)
	if !ok || len(w.Hops) != 2 || w.Hops[0].Switch != 4 || w.SwitchLatency() != 100 {
		t.Errorf("FlowPath = %+v, %v; want switches 4 and 5 and 100 ns in them", w, ok)
	}
	if got := b.FollowedFlows(); !slices.Equal(got, []model.FlowKey{flow}) {
		t.Errorf("Followed = %v; want %v", got, flow)
	}
}

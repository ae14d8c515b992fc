package slowslot_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/analyze/slowslot"
	"github.com/weft-telemetry/weft/topo"
)

// fast analyses slots with columns, in maps whose memory is used again.
type fast struct {
	intent  *topo.Intent
	ports   *paths.Ports
	maps    [3]*paths.Map
	reports [3]*paths.Reports
	paths   *paths.Detector
	loss    *loss.Tracker
	bursts  *load.BurstDetector
	balance *load.BalanceDetector
	sizes   *load.Sizes
}

func newFast(in *topo.Intent, l slowslot.Limits) *fast {
	lc, bc, uc := l.Configs(in)
	a := &fast{
		intent: in, ports: paths.NewPorts(in.At(0).Fabric()), paths: must(paths.NewDetector(paths.DefaultConfig(in))), loss: must(loss.NewTracker(lc)),
		bursts: must(load.NewBurstDetector(uc)), balance: must(load.NewBalanceDetector(bc)), sizes: load.NewSizes(l.Sizes),
	}
	var work paths.Workspace
	for i := range a.maps {
		a.reports[i] = paths.NewReports(0, slowslot.SlotLength)
		a.maps[i] = paths.NewPart(a.reports[i], &work)
	}
	return a
}

func (a *fast) observe(s int64, r slowslot.Report, window bool) (out slowslot.Result) {
	m := a.maps[s%3]
	a.reports[s%3].Reset(s, slowslot.SlotLength)
	m.Reset(a.reports[s%3])
	for _, d := range r.Lost {
		m.MarkLost(d.Switch, d.V6)
	}
	for _, d := range r.Sets {
		m.AddFlowset(d)
	}
	out.Findings, out.Losses = a.paths.Observe(m), a.loss.Observe(m)
	out.Stats = a.loss.Stats()
	out.Spikes, out.Rhythms = a.bursts.Observe(m)
	a.balance.Observe(m)
	a.sizes.Observe(m)
	for i := range m.Flows() {
		t := m.Path(i, a.ports, a.intent.At(m.Start()))
		f := slowslot.Record{Flow: m.Key(i).String()}
		for _, h := range t.Hops {
			f.Hops = append(f.Hops, slowslot.Hop{Switch: uint32(h.Switch), Packets: h.Packets, Bytes: h.Bytes, Exact: h.Exact})
		}
		for _, id := range t.Loop {
			f.Loop = append(f.Loop, uint32(id))
		}
		out.Flows = append(out.Flows, f)
	}
	if window {
		out.Links = slowslot.LinksOf(a.loss.TakeLinks())
		out.Imbalances, out.Sizes, out.Spread, out.Untracked = a.balance.TakeImbalances(), a.sizes.Top(50), a.sizes.Distribution(), a.sizes.Untracked
		a.sizes.Reset()
	}
	return out
}

// compare runs slots of a network and compares all results.
func compare(t interface{ Fatalf(string, ...any) }, n *slowslot.Network, slots int, l slowslot.Limits, seen covered) {
	slow, fast := slowslot.NewSlow(n.Intent, l), newFast(n.Intent, l)
	for s := range slots {
		r, window := n.Slot(s), s%5 == 4
		want, got := slow.Observe(int64(s), r, window), fast.observe(int64(s), r, window)
		if !reflect.DeepEqual(want, got) { // faster, but empty is not nil to it
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("slot %d: columns differ from maps (-maps +columns):\n%s", s, diff)
			}
		}
		seen.count(&got)
	}
}

// TestColumnsEqualMaps compares all results of random slots.
func TestColumnsEqualMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(3, 24).Draw(t, "slots")
		n := slowslot.NewNetwork(rapid.Uint64().Draw(t, "seed"), slots, rapid.IntRange(1, 80).Draw(t, "flows"),
			rapid.SampledFrom([]float64{0, 0.02, 0.1, 0.3}).Draw(t, "faults"))
		l := slowslot.Limits{Tracked: 1 << 20, Sizes: 1 << 20, Balance: 0}
		if rapid.Bool().Draw(t, "limited") {
			l = slowslot.Limits{Tracked: rapid.IntRange(1, 40).Draw(t, "tracked"), Sizes: rapid.IntRange(1, 40).Draw(t, "sizes"), Balance: rapid.IntRange(1, 60).Draw(t, "balance")}
		}
		compare(t, n, slots, l, covered{})
	})
}

// TestComparisonCoversAllResults compares slots of fixed seeds, which have every kind of
// result, and one run of more slots than a loss is dated by.
func TestComparisonCoversAllResults(t *testing.T) {
	seen := covered{}
	for seed := range uint64(24) {
		l := slowslot.Limits{Tracked: 1 << 20, Sizes: 1 << 20, Balance: 0}
		if seed%4 == 3 {
			l = slowslot.Limits{Tracked: 20, Sizes: 30, Balance: 40}
		}
		compare(t, slowslot.NewNetwork(seed, 20, 100, []float64{0.02, 0.1}[seed%2]), 20, l, seen)
	}
	compare(t, slowslot.NewNetwork(99, 150, 12, 0.02), 150, slowslot.Limits{Tracked: 1 << 20, Sizes: 1 << 20, Balance: 0}, seen)
	seen.check(t)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

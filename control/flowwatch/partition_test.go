package flowwatch

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/analyze/slowslot"
	"github.com/weft-telemetry/weft/model"
)

// partitioned are the analyses of a random network, in some partitions.
func partitioned(n *slowslot.Network, l slowslot.Limits, partitions int) *analyses {
	cfg := DefaultConfig(n.Intent)
	cfg.Loss, cfg.Balance, cfg.Bursts = l.Configs(n.Intent)
	cfg.MaxFlows, cfg.Partitions = l.Sizes, partitions
	a, err := newAnalyses(&cfg)
	if err != nil {
		panic(err)
	}
	a.workers = make([]paths.Scratch, 4)
	return a
}

// resultOf runs a slot and returns everything that the analyses say about it.
func (a *analyses) resultOf(slot int64, r slowslot.Report, window bool) (out slowslot.Result) {
	s := &Slot{Index: slot, Length: slowslot.SlotLength}
	var missing []flowsetSource
	for _, d := range r.Lost {
		key := uint8(model.KeyLen4)
		if d.V6 {
			key = model.KeyLen6
		}
		missing = append(missing, flowsetSource{d.Switch, d.Scope, key})
	}
	for _, d := range r.Sets {
		s.Decoded = append(s.Decoded, *d)
	}
	a.observe(s, missing)
	out.Findings, out.Losses, out.Spikes, out.Rhythms = s.Paths, s.Losses, s.Spikes, s.Rhythms
	for _, p := range a.parts {
		l := p.loss.Stats()
		out.Stats.Flowlets += l.Flowlets
		out.Stats.Uncertain += l.Uncertain
		out.Stats.Untracked += l.Untracked
		out.Stats.Restarted += l.Restarted
		out.Stats.Late += l.Late
	}
	for f := range s.Flows() {
		one := slowslot.Record{Flow: f.Key.String()}
		for _, h := range f.Hops {
			one.Hops = append(one.Hops, slowslot.Hop{Switch: uint32(h.Switch), Packets: h.Packets, Bytes: h.Bytes, Exact: h.Exact})
		}
		out.Flows = append(out.Flows, one)
	}
	if window {
		out.Links, out.Imbalances, out.Sizes = slowslot.LinksOf(a.takeLinks()), a.takeImbalances(), a.largestFlows(50)
		for _, p := range a.parts {
			out.Untracked += p.sizes.Untracked
		}
		a.resetSizes()
	}
	return out
}

// TestPartitionsChangeNoResult: one partition, or several at once, give the results of the
// slow analyses of all flows, also where limits are reached.
func TestPartitionsChangeNoResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(3, 20).Draw(t, "slots")
		n := slowslot.NewNetwork(rapid.Uint64().Draw(t, "seed"), slots, rapid.IntRange(1, 80).Draw(t, "flows"),
			rapid.SampledFrom([]float64{0, 0.02, 0.1, 0.3}).Draw(t, "faults"))
		l := slowslot.Limits{Tracked: 1 << 20, Sizes: 1 << 20}
		if rapid.Bool().Draw(t, "limited") {
			l = slowslot.Limits{
				Tracked: rapid.IntRange(1, 40).Draw(t, "tracked"), Sizes: rapid.IntRange(1, 40).Draw(t, "sizes"),
				Balance: rapid.IntRange(1, 60).Draw(t, "balance"),
			}
		}
		slow := slowslot.NewSlow(n.Intent, l)
		var all []*analyses
		for _, p := range []int{1, 2, 3, 8} {
			all = append(all, partitioned(n, l, p))
		}
		for s := range slots {
			r, window := n.Slot(s), s%5 == 4
			want := slow.Observe(int64(s), r, window)
			want.Spread = nil
			for i := range want.Flows {
				want.Flows[i].Loop = nil
			}
			for _, a := range all {
				got := a.resultOf(int64(s), r, window)
				if reflect.DeepEqual(want, got) { // faster, but empty is not nil to it
					continue
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("slot %d in %d partitions (-slow +partitions):\n%s", s, len(a.parts), diff)
				}
			}
		}
	})
}

// TestPanicOfAPartitionIsTheCallers: whoever analyses slots may recover from it.
func TestPanicOfAPartitionIsTheCallers(t *testing.T) {
	for _, workers := range []int{1, 4} {
		func() {
			defer func() {
				if p := recover(); fmt.Sprint(p) != "part 3" {
					t.Errorf("%d workers: recovered %v; want the panic of part 3", workers, p)
				}
			}()
			inParallel(workers, 8, func(_, i int) {
				if i == 3 {
					panic("part 3")
				}
			})
		}()
	}
}

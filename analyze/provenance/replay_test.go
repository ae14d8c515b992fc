package provenance

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// referenceReplay is the paper's Algorithm 1 as written: every packet checks
// every packet before it that was in the queue.
func referenceReplay(flows []flowLoad) []float64 {
	type packet struct {
		at   float64
		flow int
	}
	var seq []packet
	for f, s := range flows {
		for j := range s.packets {
			seq = append(seq, packet{float64(j) / float64(s.packets), f})
		}
	}
	slices.SortFunc(seq, func(a, b packet) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.flow, b.flow)) })
	counts := make([][]float64, len(flows))
	for i := range counts {
		counts[i] = make([]float64, len(flows))
	}
	for p, a := range seq {
		for q := max(0, p-flows[a.flow].depth); q < p; q++ {
			counts[a.flow][seq[q].flow]++
		}
	}
	out := make([]float64, len(flows))
	for i := range flows {
		for j := range flows {
			w := counts[i][j] / float64(flows[i].packets)
			out[j] += w
			out[i] -= w
		}
	}
	return out
}

func TestReplayEqualsTheReference(t *testing.T) {
	var r replayer
	rapid.Check(t, func(rt *rapid.T) {
		flows := make([]flowLoad, rapid.IntRange(1, 12).Draw(rt, "flows"))
		for i := range flows {
			flows[i] = flowLoad{rapid.IntRange(1, 60).Draw(rt, "packets"), rapid.IntRange(0, 100).Draw(rt, "depth")}
		}
		got, want := r.contributions(flows, nil), referenceReplay(flows)
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-9*(1+math.Abs(want[i])) {
				rt.Fatalf("contribute(%v) = %v; want %v", flows, got, want)
			}
		}
	})
}

func TestEqualFlowsContributeNothing(t *testing.T) {
	var r replayer
	sum := 0.0
	for _, w := range r.contributions([]flowLoad{{100, 50}, {100, 50}, {100, 50}, {100, 50}}, nil) {
		sum += w
		if math.Abs(w) > 1.5 {
			t.Errorf("one of four equal flows contributes %.2f packets; want about nothing", w)
		}
	}
	if math.Abs(sum) > 1e-9 {
		t.Errorf("contributions sum to %v; want 0: what one flow gives, another gets", sum)
	}
}

func TestBurstDelaysALargeFlow(t *testing.T) {
	var r replayer
	got := r.contributions([]flowLoad{{20, 80}, {400, 10}}, nil)
	if !(got[0] < 0 && got[1] > 0) {
		t.Errorf("contributions %v of a flow that waits for 80 packets and one that waits for 10; want victim and "+
			"contributor", got)
	}
}

func BenchmarkReplay(b *testing.B) {
	flows := make([]flowLoad, 100)
	for i := range flows {
		flows[i] = flowLoad{100, 150}
	}
	b.Run("weft", func(b *testing.B) {
		var r replayer
		var out []float64
		for b.Loop() {
			out = r.contributions(flows, out)
		}
	})
	b.Run("reference", func(b *testing.B) {
		for b.Loop() {
			referenceReplay(flows)
		}
	})
}

// TestCoarseReplay: a coarse replay gives about the result of an exact one, and no
// reported number makes it long.
func TestCoarseReplay(t *testing.T) {
	flows := []flowLoad{{maxReplayedPackets, 4000}, {maxReplayedPackets / 2, 1000}, {maxReplayedPackets / 4, 20000}}
	var r replayer
	exact := slices.Clone(r.contributions(flows, nil))
	each := coarsen(flows)
	for i, got := range r.contributions(flows, nil) {
		if got *= each; math.Abs(got-exact[i]) > 0.01*math.Abs(exact[i]) {
			t.Errorf("flow %d contributes %v by %v packets each; exactly %v", i, got, each, exact[i])
		}
	}
	forged := make([]flowLoad, 1000)
	for i := range forged {
		forged[i] = flowLoad{math.MaxUint32, maxReplayedPackets}
	}
	coarsen(forged)
	total := 0
	for _, s := range forged {
		total += s.packets
	}
	if total > maxReplayedPackets+len(forged) {
		t.Errorf("%d packets are replayed; want at most %d", total, maxReplayedPackets+len(forged))
	}
}

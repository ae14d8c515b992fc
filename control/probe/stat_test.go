package probe

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

// slowAtLeast adds up the binomial distribution with whole binomials.
func slowAtLeast(k, n int64, p float64) float64 {
	sum := 0.0
	for i := k; i <= n; i++ {
		b, _ := new(big.Float).SetInt(new(big.Int).Binomial(n, i)).Float64()
		sum += b * math.Pow(p, float64(i)) * math.Pow(1-p, float64(n-i))
	}
	return sum
}

func TestAtLeastEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 200).Draw(t, "n")
		k := rapid.Int64Range(0, n+1).Draw(t, "k")
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		got, want := atLeast(uint64(k), uint64(n), p), slowAtLeast(k, n, p)
		if math.Abs(got-want) > 1e-9 && math.Abs(got-want) > 1e-6*want {
			t.Fatalf("atLeast(%d, %d, %v) = %v; want %v", k, n, p, got, want)
		}
	})
}

// TestIntervalsHoldTheTruth: the definition of Clopper and Pearson's bounds, and
// that they hold the true share as often as they say.
func TestIntervalsHoldTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 150).Draw(t, "n")
		k := rapid.Uint64Range(0, n).Draw(t, "k")
		iv := intervalOf(k, n)
		if k == 0 && iv.Low != 0 || k == n && iv.High != 1 || iv.Low > iv.Share || iv.High < iv.Share {
			t.Fatalf("interval of %d of %d: %+v", k, n, iv)
		}
		if k > 0 && math.Abs(slowAtLeast(int64(k), int64(n), iv.Low)-0.025) > 1e-6 {
			t.Fatalf("interval of %d of %d: %+v; want a tail of 2.5 %% at the lower bound", k, n, iv)
		}
		if k < n && math.Abs(1-slowAtLeast(int64(k)+1, int64(n), iv.High)-0.025) > 1e-6 {
			t.Fatalf("interval of %d of %d: %+v; want a tail of 2.5 %% at the upper bound", k, n, iv)
		}
	})
	rng := rand.New(rand.NewPCG(1, 2))
	for _, p := range []float64{0.02, 0.3, 0.9} {
		missed := 0
		for range 300 {
			k := uint64(0)
			for range 60 {
				if rng.Float64() < p {
					k++
				}
			}
			if iv := intervalOf(k, 60); p < iv.Low || p > iv.High {
				missed++
			}
		}
		if missed > 27 {
			t.Errorf("share %v: %d of 300 intervals miss it; want at most 15 and some luck", p, missed)
		}
	}
}

// TestUpperGamma compares with tables of the chi-squared distribution, and with
// the exponential, which is one.
func TestUpperGamma(t *testing.T) {
	for _, tc := range []struct{ df, x, want float64 }{
		{1, 3.841, 0.05}, {1, 10.828, 0.001}, {2, 5.991, 0.05}, {5, 11.070, 0.05}, {10, 23.209, 0.01}, {13, 34.528, 0.001}, {30, 43.773, 0.05}, {10, 2.558, 0.99},
	} {
		if got := upperGamma(tc.df/2, tc.x/2); math.Abs(got-tc.want) > 0.002*tc.want {
			t.Errorf("Q(%v/2, %v/2) = %v; want %v", tc.df, tc.x, got, tc.want)
		}
	}
	for x := 0.01; x < 200; x *= 1.3 {
		if got, want := upperGamma(1, x), math.Exp(-x); math.Abs(got-want) > 1e-12*want {
			t.Errorf("Q(1, %v) = %v; want %v", x, got, want)
		}
	}
}

// TestVerdictsOnDrawnLoss draws what patterns lose and asks for the verdict: of
// 200, none is wrong.
func TestVerdictsOnDrawnLoss(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	flow := func(i int) model.FlowKey {
		return model.FlowKey{Src: model.Addr4(1), Dst: model.Addr4(2), SrcPort: uint16(i), Proto: model.UDP}
	}
	wrong := map[Kind]int{}
	for range 40 {
		for _, want := range []Kind{Passed, Persistent, Random, Blackhole, Selective} {
			patterns := make([]Pattern, 13)
			rate := 0.4 + 0.4*rng.Float64()
			for i := range patterns {
				p := map[Kind]float64{Passed: 0, Persistent: 1, Random: rate, Blackhole: float64((i + 1) % 2), Selective: rate * float64((i+1)%2)}[want]
				patterns[i] = Pattern{Flow: flow(i), Reached: 20}
				for range 20 {
					if rng.Float64() < p {
						patterns[i].Lost++
					}
				}
			}
			if v := Decide(patterns, 0.004, DefaultLevels()); v.Kind != want {
				wrong[want]++
			}
		}
	}
	for k, n := range wrong {
		t.Errorf("%v is called otherwise %d times of 40; want never", k, n)
	}
}

func TestVerdicts(t *testing.T) {
	a, b := model.Addr4(0x0a000001), model.Addr4(0x0a000002)
	key := func(src, dst model.Addr, port uint16) model.FlowKey {
		return model.FlowKey{Src: src, Dst: dst, SrcPort: port, DstPort: 80, Proto: model.TCP}
	}
	for name, tc := range map[string]struct {
		patterns []Pattern
		excused  float64
		kind     Kind
		scope    string
	}{
		"nothing came":        {[]Pattern{{Flow: key(a, b, 1)}}, 0.1, Unreached, "0 probes reached the injection point"},
		"mirrors are lost":    {[]Pattern{{Flow: key(a, b, 1), Reached: 50, Lost: 12}, {Flow: key(a, b, 2), Reached: 50, Lost: 9}}, 0.25, Passed, "at most 0.3 of packets are lost"},
		"one destination":     {[]Pattern{{Flow: key(a, b, 1), Reached: 20, Lost: 20}, {Flow: key(a, b, 2), Reached: 20, Lost: 20}, {Flow: key(a, a, 1), Reached: 20}}, 0.01, Blackhole, "packets to 10.0.0.2"},
		"one source":          {[]Pattern{{Flow: key(a, b, 1), Reached: 20, Lost: 20}, {Flow: key(a, a, 2), Reached: 20, Lost: 20}, {Flow: key(b, b, 1), Reached: 20}}, 0.01, Blackhole, "packets from 10.0.0.1"},
		"certain 5-tuples":    {[]Pattern{{Flow: key(a, b, 1), Reached: 20, Lost: 20}, {Flow: key(a, b, 2), Reached: 20}, {Flow: key(a, b, 3), Reached: 20, Lost: 20}}, 0.01, Blackhole, "certain 5-tuples: 2 of 3 tried"},
		"behind lost mirrors": {[]Pattern{{Flow: key(a, b, 1), Reached: 40, Lost: 40}, {Flow: key(a, b, 2), Reached: 40, Lost: 9}}, 0.25, Blackhole, "certain 5-tuples: 1 of 2 tried"},
		"a loop":              {[]Pattern{{Flow: key(a, b, 1), Reached: 20, Lost: 20, Looped: 20}, {Flow: key(a, a, 1), Reached: 20}}, 0.01, Looping, "packets to 10.0.0.2"},
	} {
		if v := Decide(tc.patterns, tc.excused, DefaultLevels()); v.Kind != tc.kind || v.Scope != tc.scope {
			t.Errorf("%s: %v, %s; want %v, %s", name, v.Kind, v.Scope, tc.kind, tc.scope)
		}
	}
}

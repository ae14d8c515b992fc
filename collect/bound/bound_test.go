package bound

import (
	"math"
	"testing"
)

// TestPaperExamples checks the numbers in the paper for its formulas.
func TestPaperExamples(t *testing.T) {
	key := math.Exp2(-32)
	path := math.Pow((1<<18+1)*key, 5)
	for _, tc := range []struct {
		name         string
		n            int
		match        float64
		empty, wrong float64
	}{
		{"key-write, N=1", 1, key, 0.0952, 1},
		{"key-write, N=2", 2, key, 0.033, 1.6e-11},
		{"key-write, N=4", 4, key, 0.012, 1},
		{"postcarding, N=2", 2, path, 0.033, 1e-22},
	} {
		got := KnownCopies(Load(0.1*float64(tc.n)), tc.n, tc.match)
		if got.Empty > tc.empty || got.Empty < 0.95*tc.empty || got.Wrong > tc.wrong {
			t.Errorf("%s: %+v; the paper has at most %g empty and %g wrong", tc.name, got, tc.empty, tc.wrong)
		}
	}
}

// TestKnownCopiesIsTheFormula computes the formulas as they are printed.
func TestKnownCopiesIsTheFormula(t *testing.T) {
	for _, alpha := range []float64{0.01, 0.1, 0.5, 2} {
		for n := 1; n <= 4; n++ {
			for _, q := range []float64{0.5, 1.0 / 16, 1.0 / 256} {
				N := float64(n)
				p := 1 - math.Exp(-alpha*N)
				want := math.Pow(p, N) * math.Pow(1-q, N)
				want += math.Pow(p, N) * (1 - math.Pow(1-q, N) - N*q*math.Pow(1-q, N-1))
				for j := 1.0; j < N; j++ {
					binomial := math.Gamma(N+1) / math.Gamma(j+1) / math.Gamma(N-j+1)
					want += binomial * math.Pow(p, j) * math.Exp(-alpha*N*(N-j)) * (1 - math.Pow(1-q, j))
				}
				got := KnownCopies(Load(alpha*N), n, q)
				if math.Abs(got.Empty-min(1, want)) > 1e-12 || math.Abs(got.Wrong-min(1, math.Pow(p, N)*N*q)) > 1e-12 {
					t.Errorf("KnownCopies(α=%v, N=%d, match=%v) = %+v; want %v empty", alpha, n, q, got, want)
				}
			}
		}
	}
}

func TestBoundsAreProbabilities(t *testing.T) {
	for _, l := range []Load{0, 1e-9, 0.1, 1, 10, 1e6} {
		for n := 1; n <= 4; n++ {
			for _, q := range []float64{0, math.Exp2(-64), math.Exp2(-32), 0.5, 1} {
				for name, b := range map[string]Bound{
					"Of": KnownCopies(l, n, q), "Unknown": UnknownCopies(l, n, q), "Consensus": WithConsensus(l, n, 2, q),
				} {
					if !(b.Empty >= 0 && b.Empty <= 1 && b.Wrong >= 0 && b.Wrong <= 1) {
						t.Errorf("%s(%v, %d, %v) = %+v; want probabilities", name, l, n, q, b)
					}
				}
				if WithConsensus(l, n, 1, q) != KnownCopies(l, n, q) {
					t.Errorf("a consensus of one is not plain at %v, %d, %v", l, n, q)
				}
			}
		}
	}
}

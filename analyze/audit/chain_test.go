package audit

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

// chainOf makes a chain of the counts at points; those at the first and last are witnesses.
func chainOf(points []int, values []float64) *chain {
	c := &chain{least: 0.007}
	for i, p := range points {
		c.add(p, 0, ratio{values[i], 0.0005, true}, Source{Port: model.Port{Node: model.NodeID(p)}}, p == atPrevious || p == atNext)
	}
	return c
}

func TestJudge(t *testing.T) {
	link, withRx, toHost := []int{atSender, atTx, atReceiver}, []int{atSender, atTx, atRx, atReceiver}, []int{atPrevious, atSender, atTx}
	whole := []int{atPrevious, atSender, atTx, atReceiver, atNext}
	for name, tc := range map[string]struct {
		points []int
		values []float64
		want   int // point; -1: none
		share  float64
	}{
		"all agree":                         {link, []float64{1, 1, 1}, -1, 0},
		"loss on the link":                  {link, []float64{1, 1, 0.9}, -1, 0},
		"loss in the sender":                {link, []float64{1, 0.98, 0.98}, -1, 0},
		"loss in both":                      {withRx, []float64{1, 0.98, 0.9, 0.9}, -1, 0},
		"sent too many":                     {link, []float64{1, 1.01, 1}, atTx, 0.01},
		"sent too few":                      {link, []float64{1, 0.99, 1}, atTx, -0.01},
		"nothing sent":                      {link, []float64{1, 0, 1}, atTx, -1},
		"sent too many, and loss":           {withRx, []float64{1, 1.05, 0.9, 0.9}, -1, 0}, // or the sender has too few
		"the same, with the switch before":  {[]int{atPrevious, atSender, atTx, atRx, atReceiver}, []float64{1, 1, 1.05, 0.9, 0.9}, atTx, 0.105},
		"sender has too few":                {link, []float64{1, 1.01, 1.01}, atSender, -0.0099},
		"sender has too many":               {whole, []float64{1, 1.01, 1, 1, 1}, atSender, 0.01},
		"receiver has too few":              {whole, []float64{1, 1, 1, 0.99, 1}, atReceiver, -0.01},
		"receiver has too many":             {link, []float64{1, 1, 1.01}, atReceiver, 0.01},
		"loss that the switch after has":    {whole, []float64{1, 1, 1, 0.99, 0.99}, -1, 0},
		"received too few":                  {withRx, []float64{1, 1, 0.97, 1}, atRx, -0.03},
		"to a host, sent too many":          {toHost, []float64{1, 1, 1.01}, atTx, 0.01},
		"to a host, sent too few or lost":   {toHost, []float64{1, 1, 0.99}, -1, 0},
		"two counts prove nothing":          {[]int{atSender, atTx}, []float64{1, 1.5}, -1, 0},
		"several are wrong":                 {withRx, []float64{1, 1.1, 1, 1.1}, -1, 0},
		"switch after counts more than all": {whole, []float64{1, 1, 1, 1, 1.05}, -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := chainOf(tc.points, tc.values)
			at, share, ok := c.judge()
			got := -1
			if ok {
				got = c.counts[at].point
			}
			if got != tc.want || math.Abs(share-tc.share) > 0.002 {
				t.Errorf("judge(%v) = point %d, share %.4f; want point %d, share %.4f", tc.values, got, share, tc.want, tc.share)
			}
		})
	}
}

// feasible is consistent by construction: it walks down the link, and keeps the most that may
// have passed each point.
func feasible(c *chain, without int) bool {
	passed := math.Inf(1)
	for p := atPrevious; p <= atNext; p++ {
		low, high := math.Inf(-1), passed
		for i := range c.counts {
			if k := &c.counts[i]; i != without && k.point == p {
				low, high = max(low, k.value-k.err), min(high, k.value+k.err)
			}
		}
		if low > high {
			return false
		}
		passed = high
	}
	return true
}

// TestConsistentEqualsReference compares pairs of counts with a walk along the link.
func TestConsistentEqualsReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		c := &chain{}
		for p := atPrevious; p <= atNext; p++ {
			for range rng.IntN(3) {
				c.add(p, 0, ratio{1 + 0.01*float64(rng.IntN(8)), 0.0042 + 0.001*float64(rng.IntN(3)), true}, Source{}, false)
			}
		}
		for without := -1; without < len(c.counts); without++ {
			if got, want := c.consistent(without), feasible(c, without); got != want {
				t.Fatalf("consistent(%+v, without %d) = %v, want %v", c.counts, without, got, want)
			}
		}
	}
}

// TestJudgeNamesNoOther: whatever is lost, a source that is right is not named while one is
// wrong, and none is named if all are right. Losses as large as the error are left out: no
// count distinguishes them.
func TestJudgeNamesNoOther(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	named := 0
	const cases = 20_000
	for range cases {
		wrong, size := rng.IntN(5), 0.015+0.05*rng.Float64() // point 4: none
		lossAt, loss := rng.IntN(4), 0.0
		if rng.IntN(2) == 0 {
			if loss = 0.2 * rng.Float64(); loss > size/4 && loss < 2*size+0.02 {
				continue
			}
		}
		if rng.IntN(2) == 0 {
			size = -size
		}
		values := make([]float64, 4)
		for i := range values {
			values[i] = 1 + 0.0004*(2*rng.Float64()-1)
			if i >= lossAt {
				values[i] -= loss
			}
			if i == wrong {
				values[i] *= 1 + size
			}
		}
		c := chainOf([]int{atSender, atTx, atRx, atReceiver}, values)
		at, share, ok := c.judge()
		if ok && (at != wrong || (share > 0) != (size > 0)) {
			t.Fatalf("judge(%v) = %d, %.4f; want %d, %.4f, or none", values, at, share, wrong, size)
		}
		if ok {
			named++
		}
	}
	if named < cases/4 {
		t.Errorf("%d of %d cases named a source, want at least a quarter", named, cases)
	}
}

package bench

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// roundWork is what a side does in a round, a number of times.
type roundWork struct {
	ready func() // runs untimed before each run; nil: nothing to prepare
	run   func() error
	ops   int // operations of a run
	times int // runs of a round
}

// runRound runs a round and returns its millions of operations per second.
func (l roundWork) runRound(clock func() time.Duration) (float64, error) {
	var took time.Duration
	for range l.times {
		if l.ready != nil {
			l.ready()
		}
		start := clock()
		if err := l.run(); err != nil {
			return 0, err
		}
		took += clock() - start
	}
	return float64(l.times*l.ops) * 1e3 / float64(max(took, 1)), nil
}

// pairedRounds runs the rounds of two sides in turn, A B B A A B …, and returns the
// rates of each. Rounds are short, so that disturbances affect neighbouring rounds
// of both; and each side runs as often after the other as after itself, since it
// finds the cache as the previous round left it.
func pairedRounds(ctx context.Context, rounds int, clock func() time.Duration, a, b roundWork) (ratesA,
	ratesB []float64, err error,
) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for round := range rounds + 1 {
		var rates [2]float64
		for turn := range 2 {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			i := (turn + round) % 2
			if rates[i], err = [2]roundWork{a, b}[i].runRound(clock); err != nil {
				return nil, nil, err
			}
		}
		if round > 0 { // the first round warms up
			ratesA, ratesB = append(ratesA, rates[0]), append(ratesB, rates[1])
		}
	}
	return ratesA, ratesB, nil
}

// comparePaired compares two sides by the rates of their rounds. The ratio is the
// median of the ratios of neighbouring rounds, not the ratio of the medians: a
// disturbance by other load then counts once and does not favour one side.
func comparePaired(name string, rates []float64, unit, peer string, peerRates []float64, goal float64) Result {
	ratios := make([]float64, len(rates))
	for i := range ratios {
		ratios[i] = rates[i] / peerRates[i]
	}
	slices.Sort(ratios)
	r := Result{
		Name: name, Value: median(rates), Unit: unit, Peer: peer, PeerValue: median(peerRates), Goal: goal,
		Ratio: ratios[len(ratios)/2], RatioLow: ratios[len(ratios)/4], RatioHigh: ratios[len(ratios)*3/4],
	}
	r.Pass = r.Ratio >= goal
	return r
}

func median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

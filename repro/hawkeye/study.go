package hawkeye

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/weft-telemetry/weft/repro/claim"
)

// study is many traces of some kinds, each scored with some methods under every
// variant of its lab.
type study struct {
	lab     lab
	sets    [][]kind // the kinds that the traces of a set have
	traces  int      // of each set
	load    float64  // 0: random
	methods []method
	// more is called with every scored run, from one goroutine at a time, in no
	// particular order.
	more func(set int, r *run, m method, list []diagnosis)
}

// single makes a set of each kind.
func single(kinds []kind) (sets [][]kind) {
	for _, k := range kinds {
		sets = append(sets, []kind{k})
	}
	return sets
}

// findings are the tallies of a study, by set, method and variant.
type findings [][][]tally

// run simulates all traces on all cores. The same seed gives the same findings.
func (s study) run(ctx context.Context, o claim.Options) (findings, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if o.Broken() {
		s.traces = 1
	}
	all := s.findings()
	total := len(s.sets) * s.traces
	var (
		workers    sync.WaitGroup
		mu         sync.Mutex // guards what follows
		next, done int
	)
	for range min(total, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= total {
					return
				}
				set := i % len(s.sets)
				if err := s.one(ctx, o, set, i/len(s.sets), all, &mu); err != nil {
					stop(fmt.Errorf("trace %d of %v: %w", i/len(s.sets), s.sets[set], err))
					return
				}
				mu.Lock()
				done++
				o.Report(float64(done)/float64(total), fmt.Sprintf("%d of %d traces", done, total))
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return all, context.Cause(ctx)
}

func (s study) findings() findings {
	all := make(findings, len(s.sets))
	for i := range all {
		all[i] = make([][]tally, len(s.methods))
		for j := range all[i] {
			all[i][j] = make([]tally, len(s.lab.thresholds)*len(s.lab.lengths))
		}
	}
	return all
}

// one scores one trace, unless that was done before an interruption.
func (s study) one(ctx context.Context, o claim.Options, set, number int, all findings, mu *sync.Mutex) error {
	if s.more != nil {
		o.Parts = nil // it needs the run
	}
	scores, err := claim.Once(o, fmt.Sprint(set, number), func() ([][]tally, error) {
		return s.simulate(ctx, o.Seed, set, number, mu)
	})
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	for j := range scores {
		for v, t := range scores[j] {
			all[set][j][v].add(t)
		}
	}
	return nil
}

// simulate simulates one trace and scores it, by method and variant.
func (s study) simulate(ctx context.Context, seed uint64, set, number int, mu *sync.Mutex) ([][]tally, error) {
	// What a trace is depends on the seed, its kinds and its number alone.
	id := uint64(number)
	for _, k := range s.sets[set] {
		id = id<<4 | uint64(k) + 1
	}
	r, err := s.lab.simulate(ctx, claim.Rand(seed, id).Uint64(), s.load, s.sets[set]...)
	if err != nil {
		return nil, err
	}
	scores := make([][]tally, len(s.methods))
	for j, m := range s.methods {
		for v := range len(s.lab.thresholds) * len(s.lab.lengths) {
			list, err := r.diagnose(m, v)
			if err != nil {
				return nil, err
			}
			scores[j] = append(scores[j], r.score(list))
			if s.more != nil {
				mu.Lock()
				s.more(set, r, m, list)
				mu.Unlock()
			}
		}
	}
	return scores, nil
}

package commodity

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/repro/claim"
)

// job is one simulation.
type job struct {
	kind  anomalyKind
	lasts time.Duration // the fault; drawn by the seed where it is 0
	after time.Duration
	seed  uint64
	views []view
}

// jobsOf returns seeds of all kinds. Seeds of claims are in no test and no file: they
// are drawn from the options' seed.
func jobsOf(o claim.Options, kinds []anomalyKind, seeds int, j job) (list []job) {
	for _, k := range kinds {
		for i := range seeds {
			j.kind, j.seed = k, claim.Rand(o.Seed, uint64(k)<<32|uint64(i)).Uint64()
			list = append(list, j)
		}
	}
	return list
}

// measure runs jobs on all cores and returns the score of every kind and view.
func (l lab) measure(ctx context.Context, o claim.Options, jobs []job) (map[anomalyKind]map[view]*score, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var (
		workers     sync.WaitGroup
		mu          sync.Mutex // guards what follows
		next, ended int
		scores      = map[anomalyKind]map[view]*score{}
	)
	work := func() {
		for {
			mu.Lock()
			i := next
			next++
			mu.Unlock()
			if i >= len(jobs) || ctx.Err() != nil {
				return
			}
			j := &jobs[i]
			r, err := l.simulate(ctx, j.seed, j.kind, j.duration(), j.after, j.views...)
			if err != nil {
				stop(fmt.Errorf("%v, seed %d: %w", j.kind, j.seed, err))
				return
			}
			mu.Lock()
			ended++
			o.Report(float64(ended)/float64(len(jobs)), j.kind.String())
			for _, v := range j.views {
				if scores[j.kind] == nil {
					scores[j.kind] = map[view]*score{}
				}
				if scores[j.kind][v] == nil {
					scores[j.kind][v] = &score{}
				}
				scores[j.kind][v].add(r.score(v))
			}
			mu.Unlock()
		}
	}
	for range min(len(jobs), runtime.GOMAXPROCS(0)) {
		workers.Go(work)
	}
	workers.Wait()
	return scores, context.Cause(ctx)
}

// duration returns how long the fault lasts: by default three to six intervals of
// 100 ms.
func (j *job) duration() time.Duration {
	if j.lasts > 0 {
		return j.lasts
	}
	return 310*ms + time.Duration(claim.Rand(j.seed, 1).Int64N(int64(290*ms)))
}

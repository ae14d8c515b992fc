package hawkeye

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
)

// sweepTiming is shorter than that of the paper's traces: buffers are up to twenty
// times as large, and links ten times as slow.
var sweepTiming = timing{warmUp: 300 * us, spread: 200 * us, burst: 700 * us, deadlock: 1200 * us}

// sweepLoad is the background load of every cell.
const sweepLoad = 0.05

// sweepCells returns all networks of the sweep.
func sweepCells() (cells []network) {
	for _, t := range []topology{leafSpine, fatTree(4), oversubscribed} {
		for _, rate := range []model.Rate{10 * model.Gbps, 25 * model.Gbps, 100 * model.Gbps, 400 * model.Gbps} {
			for _, delay := range []time.Duration{500 * time.Nanosecond, 2 * us, 10 * us} {
				for _, mtu := range []int32{1024, 4096} {
					for _, buffer := range []model.Bytes{4 * model.MB, 16 * model.MB, 64 * model.MB} {
						for _, c := range []control{dcqcn, hpcc, noControl} {
							cells = append(cells, network{t, rate, delay, mtu, buffer, c})
						}
					}
				}
			}
		}
	}
	return cells
}

// cellScore is the tally of one cell.
type cellScore struct {
	network
	tally
	traces, unnoticed int // traces without a request
}

// sweepRun is a sweep that runs.
type sweepRun struct {
	cells  []cellScore
	traces int // of each cell
	seed   uint64
	lab    lab

	mu         sync.Mutex // guards what follows, and the scores
	next, done int
}

// run simulates and scores all cells on all cores. The same seed gives the same
// scores.
func (s *sweepRun) run(ctx context.Context, o claim.Options) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for ctx.Err() == nil {
				s.mu.Lock()
				i := s.next
				s.next++
				s.mu.Unlock()
				if i >= len(s.cells)*s.traces {
					return
				}
				if err := s.one(ctx, o, i); err != nil {
					stop(err)
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// one simulates the i-th trace. A cell's traces have different anomalies; cells
// begin with different ones, in case there are fewer traces than anomalies.
func (s *sweepRun) one(ctx context.Context, o claim.Options, i int) error {
	c := &s.cells[i/s.traces]
	k := rows[(i/s.traces+2*(i%s.traces)+i%s.traces/3)%len(rows)]
	l := s.lab
	l.network = c.network
	t, err := claim.Once(o, fmt.Sprint(i), func() (tally, error) {
		r, err := l.simulate(ctx, claim.Rand(s.seed, uint64(i)).Uint64(), sweepLoad, k)
		if err != nil {
			return tally{}, err
		}
		list, err := r.diagnose(hawkeyeMethod, 0)
		return r.score(list), err
	})
	if err != nil {
		return fmt.Errorf("%v: %v: %w", c.network, k, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.add(t)
	if c.traces++; t.requests == 0 {
		c.unnoticed++
	}
	s.done++
	o.Report(float64(s.done)/float64(len(s.cells)*s.traces), fmt.Sprintf("%d of %d traces", s.done, len(s.cells)*s.traces))
	return nil
}

var sweep = claim.Claim{
	ID: "hawkeye-sweep", Where: "beyond the paper: section 4.1 has one fabric",
	Says:      "diagnosis depends on no rate, delay, packet size, buffer, topology or congestion control",
	Published: "not measured",
	Mutations: allMechanisms,
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		s := &sweepRun{traces: o.Pick(len(rows), 2), seed: o.Seed, lab: best(o)}
		s.lab.timing = sweepTiming
		cells := sweepCells()
		all := len(cells)
		if o.Quick {
			claim.Rand(o.Seed, 0).Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
			cells = cells[:24]
		}
		if o.Broken() {
			cells = slices.DeleteFunc(cells, func(n network) bool { return n.buffer > 4*model.MB })
		}
		for _, n := range cells {
			s.cells = append(s.cells, cellScore{network: n})
		}
		if err := s.run(ctx, o); err != nil {
			return claim.Result{}, err
		}
		return s.result(all), nil
	},
}

// result judges a sweep that has ended.
func (s *sweepRun) result(all int) claim.Result {
	worstPrecision, worstRecall, precision, recall, unnoticed := 1.0, 1.0, 0.0, 0.0, 0
	for i := range s.cells {
		c := &s.cells[i]
		worstPrecision, worstRecall = min(worstPrecision, c.precision()), min(worstRecall, c.recall())
		precision += c.precision() / float64(len(s.cells))
		recall += c.recall() / float64(len(s.cells))
		unnoticed += c.unnoticed
	}
	return claim.Result{
		Measured: fmt.Sprintf("worst cell precision %.3f, recall %.3f; mean %.4f, %.4f over %d cells", worstPrecision,
			worstRecall, precision, recall, len(s.cells)),
		Pass: worstPrecision >= 0.95 && worstRecall >= 0.95 && precision >= 0.995 && recall >= 0.995,
		Notes: []string{
			"10, 25, 100, 400 Gb/s × 0.5, 2, 10 µs × MTU 1, 4 KB × shared buffers of 4, 16, 64 MB, headroom apart × leaf-spine, " +
				"3-tier 1:1 and 1:4 × DCQCN, HPCC, none; sizes of bursts and times scale with the buffer, and the senders of " +
				"injected bursts ignore congestion control",
			scoring,
			fmt.Sprintf("%d of %d cells, %d traces in each; %d traces had no request: nothing was late enough", len(s.cells), all,
				s.traces, unnoticed),
			"passes when every cell has at least 0.95 and their means are at least 0.995; a cell without requests has 0",
		},
		Tables: []claim.Table{s.marginals(), s.worstCells()},
	}
}

// marginals returns the sums over all cells with a value of one dimension.
func (s *sweepRun) marginals() claim.Table {
	t := claim.Table{Title: "requests by dimension", Header: []string{"of the network", "cells", "requests", "precision", "recall"}}
	for _, of := range []func(*cellScore) string{
		func(c *cellScore) string { return c.topology.name },
		func(c *cellScore) string { return c.rate.String() },
		func(c *cellScore) string { return "links of " + model.FormatDuration(c.delay) },
		func(c *cellScore) string { return fmt.Sprintf("MTU %d", c.mtu) },
		func(c *cellScore) string { return "buffers of " + model.FormatBytes(c.buffer) },
		func(c *cellScore) string { return "congestion control: " + controlNames[c.control] },
	} {
		sums, cells, order := map[string]*tally{}, map[string]int{}, []string{}
		for i := range s.cells {
			name := of(&s.cells[i])
			if sums[name] == nil {
				sums[name], order = &tally{}, append(order, name)
			}
			sums[name].add(s.cells[i].tally)
			cells[name]++
		}
		slices.Sort(order)
		for _, name := range order {
			x := sums[name]
			t.Row(name, fmt.Sprint(cells[name]), fmt.Sprint(x.requests), fmt.Sprintf("%.3f", x.precision()), fmt.Sprintf("%.3f", x.recall()))
		}
	}
	return t
}

// worstCells returns the twelve cells with the least recall.
func (s *sweepRun) worstCells() claim.Table {
	t := claim.Table{Title: "worst cells", Header: []string{"network", "requests", "answered", "right", "precision", "recall"}}
	list := slices.Clone(s.cells)
	slices.SortStableFunc(list, func(a, b cellScore) int { return cmp.Compare(a.recall(), b.recall()) })
	for i := range list[:min(12, len(list))] {
		c := &list[i]
		t.Row(c.network.String(), fmt.Sprint(c.requests), fmt.Sprint(c.answered), fmt.Sprint(c.right),
			fmt.Sprintf("%.3f", c.precision()), fmt.Sprintf("%.3f", c.recall()))
	}
	return t
}

package sweep

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weft-telemetry/weft/scenario"
)

// Config is what a sweep runs.
type Config struct {
	// Scenario returns the scenario of a seed. Several goroutines call it.
	Scenario func(seed uint64) (*scenario.Scenario, error)
	Seeds    []uint64
	Settings string // of all runs, for the file
	Jobs     int    // runs at once
	CSV      string // file; empty: results are not kept
	// Progress, if not nil, is called after every run, and once at the beginning, with
	// the number of runs that are done.
	Progress func(done int)
}

// Result is the outcome of a sweep.
type Result struct {
	Settings string         `json:"settings,omitempty"`
	Seeds    []uint64       `json:"seeds"`
	Resumed  int            `json:"resumed"` // runs that the file already had
	Verdicts map[string]int `json:"verdicts"`
	Stats    []Stat         `json:"figures"`
	Rows     []Row          `json:"-"` // of the seeds, in order
}

// Check returns the first error of the configuration.
func (c *Config) Check() error {
	switch {
	case len(c.Seeds) == 0:
		return fmt.Errorf("sweep: no seeds, want one at least")
	case c.Jobs < 1:
		return fmt.Errorf("sweep: %d jobs, want 1 or more", c.Jobs)
	}
	return nil
}

// Run runs all seeds that the file does not have. Results are the same for any number
// of jobs.
func Run(ctx context.Context, c Config) (*Result, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	s := &sweep{Config: c, figures: scenario.FigureNames(), rows: map[uint64]Row{}}
	if c.CSV != "" {
		f, known, err := openFile(c.CSV, c.Settings, s.figures)
		if err != nil {
			return nil, err
		}
		defer f.close()
		s.file = f
		for _, row := range known {
			if slices.Contains(c.Seeds, row.Seed) {
				s.rows[row.Seed] = row
			}
		}
	}
	resumed := len(s.rows)
	s.report()
	if err := s.runAll(ctx); err != nil {
		return nil, err
	}
	r := s.result()
	r.Resumed = resumed
	return r, nil
}

// sweep is a sweep that runs.
type sweep struct {
	Config
	figures []string

	mu   sync.Mutex
	rows map[uint64]Row
	file *file // nil: none
	err  error // the first
}

func (s *sweep) report() {
	if s.Progress != nil {
		s.Progress(len(s.rows))
	}
}

// runAll runs the seeds that have no row.
func (s *sweep) runAll(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	seeds := make(chan uint64)
	var wg sync.WaitGroup
	for range s.Jobs {
		wg.Go(func() {
			for seed := range seeds {
				row, err := s.run(ctx, seed)
				s.mu.Lock()
				if err == nil && s.file != nil {
					err = s.file.add(&row)
				}
				if err == nil {
					s.rows[seed] = row
					s.report()
				} else if s.err == nil {
					s.err = fmt.Errorf("seed %d: %w", seed, err)
					stop()
				}
				s.mu.Unlock()
			}
		})
	}
	var left []uint64
	for _, seed := range s.Seeds {
		if _, known := s.rows[seed]; !known {
			left = append(left, seed)
		}
	}
	for _, seed := range left {
		select {
		case seeds <- seed:
		case <-ctx.Done():
		}
	}
	close(seeds)
	wg.Wait()
	if s.err == nil {
		s.err = ctx.Err()
	}
	return s.err
}

func (s *sweep) run(ctx context.Context, seed uint64) (Row, error) {
	one, err := s.Scenario(seed)
	if err != nil {
		return Row{}, err
	}
	one.Seed = seed
	r, err := scenario.Run(ctx, one, scenario.Options{Cores: max(1, runtime.GOMAXPROCS(0)/s.Jobs)}, nil)
	if err != nil {
		return Row{}, err
	}
	row := Row{Seed: seed, Verdict: string(r.Verdict)}
	for _, name := range s.figures {
		v, known := r.Figures[name]
		if !known {
			v = math.NaN()
		}
		row.Figures = append(row.Figures, v)
	}
	return row, nil
}

func (s *sweep) result() *Result {
	r := &Result{Settings: s.Settings, Seeds: s.Seeds, Verdicts: map[string]int{}, Stats: []Stat{}}
	for _, seed := range s.Seeds {
		r.Verdicts[s.rows[seed].Verdict]++
		r.Rows = append(r.Rows, s.rows[seed])
	}
	for i, name := range s.figures {
		var values []float64
		for _, seed := range s.Seeds {
			if v := s.rows[seed].Figures[i]; !math.IsNaN(v) {
				values = append(values, v)
			}
		}
		if len(values) > 0 {
			r.Stats = append(r.Stats, newStat(name, values))
		}
	}
	return r
}

// maxSeeds bounds a sweep.
const maxSeeds = 100_000

// ParseSeeds parses seeds such as 1..20 or 1,5,7..9.
func ParseSeeds(text string) (seeds []uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "..")
		a, err := strconv.ParseUint(first, 10, 64)
		b := a
		if err == nil && isRange {
			b, err = strconv.ParseUint(last, 10, 64)
		}
		if err != nil || b < a {
			return nil, fmt.Errorf("seeds %q, want numbers such as 1..20 or 1,5,7..9", text)
		}
		if b-a >= maxSeeds-uint64(len(seeds)) {
			return nil, fmt.Errorf("seeds %q, want at most %d", text, maxSeeds)
		}
		for seed := a; ; seed++ {
			if slices.Contains(seeds, seed) {
				return nil, fmt.Errorf("seeds %q have %d twice, want it once", text, seed)
			}
			if seeds = append(seeds, seed); seed == b {
				break
			}
		}
	}
	return seeds, nil
}

// formatFigure formats a figure so that it is read back the same; NaN is empty.
func formatFigure(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func parseFigure(text string) (float64, error) {
	if text == "" {
		return math.NaN(), nil
	}
	return strconv.ParseFloat(text, 64)
}

package sweep

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/scenario"
)

const tiny = `
name: tiny
duration: 2ms
topology: {generate: {kind: dumbbell, hosts: 2}}
fabric: {alpha: 1/8}
traffic: [{kind: poisson, sizes: hadoop, load: 40%}]
`

func tinySweep(t *testing.T, seeds ...uint64) Config {
	t.Helper()
	return Config{
		Seeds: seeds, Jobs: 2, Settings: "fabric.alpha=1/4", Scenario: func(uint64) (*scenario.Scenario, error) {
			text, err := scenario.Override([]byte(tiny), "fabric.alpha=1/4")
			if err != nil {
				return nil, err
			}
			return scenario.Parse("tiny.yaml", text)
		},
	}
}

// TestResumedSweepIsTheSame: a sweep that stopped goes on, and has the result of one that did not,
// with any number of jobs.
func TestResumedSweepIsTheSame(t *testing.T) {
	whole, err := Run(t.Context(), tinySweep(t, 1, 2, 3, 4, 5))
	if err != nil {
		t.Fatal(err)
	}
	c := tinySweep(t, 4, 2)
	c.CSV, c.Jobs = filepath.Join(t.TempDir(), "sweep.csv"), 1
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(c.CSV)
	if err != nil {
		t.Fatal(err)
	}
	// The last line was not written to its end, and another sweep is in the file.
	other := strings.ReplaceAll(string(data[strings.IndexByte(string(data), '\n')+1:]), "fabric.alpha=1/4", "other=1")
	if err := os.WriteFile(c.CSV, []byte(string(data)+other+"fabric.alpha=1/4,3,PA"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Seeds, c.Jobs = []uint64{1, 2, 3, 4, 5}, 3
	var done []int
	c.Progress = func(n int) { done = append(done, n) }
	got, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if got.Resumed != 2 || !slices.Equal(done, []int{2, 3, 4, 5}) {
		t.Errorf("resumed %d, progress %v; want 2, and from 2 to 5", got.Resumed, done)
	}
	got.Resumed, whole.Settings = 0, got.Settings
	clearUnknown(got.Rows)
	clearUnknown(whole.Rows)
	if !reflect.DeepEqual(got, whole) {
		t.Errorf("resumed:\n%+v\nat once:\n%+v", got, whole)
	}
	if i := slices.IndexFunc(got.Stats, func(s Stat) bool { return s.Figure == "flows" && s.Runs == 5 && s.HalfWidth > 0 }); i < 0 {
		t.Errorf("figures %+v; want flows of 5 runs, which differ", got.Stats)
	}
}

// clearUnknown replaces NaN, which differs from itself.
func clearUnknown(rows []Row) {
	for _, r := range rows {
		for i, v := range r.Figures {
			if math.IsNaN(v) {
				r.Figures[i] = math.Inf(-1)
			}
		}
	}
}

func TestSweepErrors(t *testing.T) {
	c := tinySweep(t, 1, 2, 3)
	broken := errors.New("broken")
	c.Scenario = func(seed uint64) (*scenario.Scenario, error) { return nil, broken }
	if _, err := Run(t.Context(), c); !errors.Is(err, broken) || !strings.Contains(err.Error(), "seed ") {
		t.Errorf("Run() = %v; want the error of a seed", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, tinySweep(t, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("Run() of an ended context = %v; want context.Canceled", err)
	}
	c = tinySweep(t, 1)
	c.CSV = filepath.Join(t.TempDir(), "other.csv")
	if err := os.WriteFile(c.CSV, []byte("name,value\na,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "is not a file of this version's sweeps") {
		t.Errorf("Run() into another table = %v; want an error", err)
	}
	if data, _ := os.ReadFile(c.CSV); string(data) != "name,value\na,1\n" {
		t.Errorf("the other table is now %q; want it unchanged", data)
	}
}

func TestParseSeeds(t *testing.T) {
	for text, want := range map[string][]uint64{"1..3": {1, 2, 3}, "5": {5}, "1,5,7..9": {1, 5, 7, 8, 9}} {
		if got, err := ParseSeeds(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("ParseSeeds(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1..", "3..1", "x", "1,1", "0..100000", "0..18446744073709551615", "1...3"} {
		if got, err := ParseSeeds(text); err == nil {
			t.Errorf("ParseSeeds(%q) = %v; want an error", text, got)
		}
	}
}

// TestStat compares with a published example: the interval of 1, 2, 3, 4, 5 is 3 ± 1.963.
func TestStat(t *testing.T) {
	s := newStat("x", []float64{5, 1, 4, 2, 3})
	if s.Mean != 3 || math.Abs(s.HalfWidth-1.963) > 0.001 || s.Min != 1 || s.Max != 5 || s.Runs != 5 {
		t.Errorf("%+v; want 3 ± 1.963, 1 to 5", s)
	}
	if s := newStat("x", []float64{7}); s.HalfWidth != 0 || s.Mean != 7 {
		t.Errorf("one value: %+v; want 7 without an interval", s)
	}
	for degrees, want := range map[int]float64{1: 12.706, 30: 2.042, 40: 2.021, 60: 2.000, 120: 1.980} {
		if got := quantile975(degrees); math.Abs(got-want) > 0.001 {
			t.Errorf("quantile975(%d) = %.4f; want %.3f", degrees, got, want)
		}
	}
}

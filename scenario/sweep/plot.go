package sweep

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/scenario"
)

// Plots draws every figure that is not the same in all runs, as SVG by its name: the
// mean with its 95 % confidence interval as a band, over what was varied. Of one
// result it is the mean of the first runs over their number.
func Plots(title, varied string, values []string, results []*Result) map[string]string {
	out := make(map[string]string)
	for i, name := range scenario.FigureNames() {
		if isConstant(results, i) {
			continue
		}
		c := plot.Chart{Title: title, YTitle: name, XTitle: varied, XNames: values}
		line := plot.Series{Name: "mean, 95 % confidence interval"}
		add := func(x float64, s Stat) {
			if s.Runs == 0 {
				return
			}
			line.X, line.Y = append(line.X, x), append(line.Y, s.Mean)
			line.Low, line.High = append(line.Low, s.Mean-s.HalfWidth), append(line.High, s.Mean+s.HalfWidth)
		}
		if len(results) > 1 {
			for k, r := range results {
				add(float64(k), statOf(name, i, r.Rows))
			}
		} else {
			c.XTitle, c.XNames = "runs", nil
			for n := 2; n <= len(results[0].Rows); n++ {
				add(float64(n), statOf(name, i, results[0].Rows[:n]))
			}
		}
		c.Series = []plot.Series{line}
		out[name] = c.SVG()
	}
	return out
}

// statOf sums up the i-th figure of runs that have it.
func statOf(name string, i int, rows []Row) Stat {
	var values []float64
	for _, r := range rows {
		if v := r.Figures[i]; !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return Stat{Figure: name}
	}
	return newStat(name, values)
}

// isConstant reports whether all runs that have the i-th figure have the same.
func isConstant(results []*Result, i int) bool {
	first := math.NaN()
	for _, r := range results {
		for _, row := range r.Rows {
			switch v := row.Figures[i]; {
			case math.IsNaN(v):
			case math.IsNaN(first):
				first = v
			case v != first:
				return false
			}
		}
	}
	return true
}

// WritePlots writes the plots of a sweep as FIGURE.svg into a folder, which it makes.
func WritePlots(dir, title, varied string, values []string, results []*Result) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("write plots: %w", err)
	}
	plots := Plots(title, varied, values, results)
	for _, name := range slices.Sorted(maps.Keys(plots)) {
		if err := os.WriteFile(filepath.Join(dir, name+".svg"), []byte(plots[name]), 0o666); err != nil {
			return fmt.Errorf("write plots: %w", err)
		}
	}
	return nil
}

package sweep

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/scenario"
)

// figure returns the place of a figure in a row.
func figure(t *testing.T, name string) int {
	t.Helper()
	for i, other := range scenario.FigureNames() {
		if other == name {
			return i
		}
	}
	t.Fatalf("no figure %s", name)
	return 0
}

// result makes a result of runs with the goodputs, and no other figure.
func result(t *testing.T, goodputs ...float64) *Result {
	at := figure(t, "goodput")
	r := &Result{}
	for i, v := range goodputs {
		row := Row{Seed: uint64(i), Figures: make([]float64, len(scenario.FigureNames()))}
		for k := range row.Figures {
			row.Figures[k] = math.NaN()
		}
		row.Figures[at], row.Figures[figure(t, "pauses")] = v, 3
		r.Rows = append(r.Rows, row)
	}
	return r
}

// elements counts the elements of a drawing that have a class.
func elements(t *testing.T, svg, class string) (n int) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatalf("the drawing is not XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok {
			for _, a := range e.Attr {
				if a.Name.Local == "class" && strings.HasPrefix(a.Value, class+" ") {
					n++
				}
			}
		}
	}
}

func TestPlots(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plots")
	results := []*Result{result(t, 1, 2, 3), result(t, 4, 4, 4), result(t, 2, 9, math.NaN())}
	if err := WritePlots(dir, "x", "fabric.alpha", []string{"1/8", "1/4", "<1/2>"}, results); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1 || names[0].Name() != "goodput.svg" {
		t.Fatalf("files %v, %v; want goodput.svg alone, as pauses are the same in all runs", names, err)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "goodput.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if dots, bands := elements(t, string(svg), "dot"), elements(t, string(svg), "band"); dots != 3 || bands != 1 || !strings.Contains(string(svg), "&lt;1/2&gt;") {
		t.Errorf("%d points, %d bands; want 3 with their names, and 1", dots, bands)
	}
	plots := Plots("x", "", nil, []*Result{result(t, 1, 2, 3, 5)})
	if dots := elements(t, plots["goodput"], "dot"); len(plots) != 1 || dots != 3 {
		t.Errorf("%d plots with %d points; want 1 with the means of 2, 3 and 4 runs", len(plots), dots)
	}
}

// TestParquetHasAllRuns: as many as the CSV file.
func TestParquetHasAllRuns(t *testing.T) {
	c := tinySweep(t, 1, 2)
	c.CSV = filepath.Join(t.TempDir(), "s.csv")
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	to := strings.TrimSuffix(c.CSV, ".csv") + ".parquet"
	if err := WriteParquet(t.Context(), c.CSV, to); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(to)
	if err != nil || len(data) < 8 || string(data[:4]) != "PAR1" || string(data[len(data)-4:]) != "PAR1" {
		t.Errorf("%s: %d bytes, %v; want a Parquet file", to, len(data), err)
	}
}

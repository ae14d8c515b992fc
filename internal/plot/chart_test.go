package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// wellFormed reads all of an SVG and counts its elements by class.
func wellFormed(t interface{ Fatalf(string, ...any) }, svg string) map[string]int {
	classes := make(map[string]int)
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return classes
		}
		if err != nil {
			t.Fatalf("SVG is not XML: %v\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok {
			for _, a := range e.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Fatalf("<%s %s=%q> is not a finite number", e.Name.Local, a.Name.Local, a.Value)
				}
				if a.Name.Local == "class" {
					class, _, _ := strings.Cut(a.Value, " ")
					classes[class]++
				}
			}
		}
	}
}

func TestChartDrawsEveryKind(t *testing.T) {
	for name, tc := range map[string]struct {
		chart Chart
		class string
		want  int
	}{
		"lines": {Chart{LogX: true, Series: []Series{
			{Name: "measured", X: []float64{1, 10, 100}, Y: []float64{1, 2, 3}},
			{Name: "published", X: []float64{1, 100}, Y: []float64{1, 3}, Dashed: true},
		}}, "dot", 5},
		"band": {Chart{XNames: []string{"1/8", "<1/4>"}, Series: []Series{
			{X: []float64{0, 1}, Y: []float64{2, 3}, Low: []float64{1, 2}, High: []float64{3, 9}},
			{X: []float64{0, 1}, Y: []float64{2, 3}},
		}}, "band", 1},
		"cdf":   {Chart{Series: []Series{{Name: "delay", Values: []float64{3, 1, 2}}}}, "line", 1},
		"bars":  {Chart{Groups: []string{"a & b", "<c>"}, Series: []Series{{Y: []float64{1, 2}}, {Y: []float64{3, 4}}}}, "bar", 4},
		"empty": {Chart{Title: "nothing"}, "empty", 1},
	} {
		if got := wellFormed(t, tc.chart.SVG())[tc.class]; got != tc.want {
			t.Errorf("%s: %d elements of class %q; want %d", name, got, tc.class, tc.want)
		}
	}
}

func TestChartOfAnythingIsDrawn(t *testing.T) {
	values := rapid.SliceOfN(anything, 0, 6)
	rapid.Check(t, func(t *rapid.T) {
		c := Chart{
			Title: rapid.String().Draw(t, "title"), LogX: rapid.Bool().Draw(t, "logx"), LogY: rapid.Bool().Draw(t, "logy"),
			Groups: rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "groups"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "series") {
			c.Series = append(c.Series, Series{
				Name: rapid.String().Draw(t, "name"), X: values.Draw(t, "x"), Y: values.Draw(t, "y"), Values: values.Draw(t, "values"),
			})
		}
		first := c.SVG()
		wellFormed(t, first)
		if again := c.SVG(); again != first {
			t.Fatalf("the same chart was drawn differently:\n%s\n%s", first, again)
		}
	})
}

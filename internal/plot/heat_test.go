package plot

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func TestHeat(t *testing.T) {
	h := Heat{
		Title: "queues <deep>", XTitle: "ms", X: []float64{0, 1, 2, 3, 4}, Rows: []string{"a>b", "c"},
		Values: [][]float64{{-1, 0, 1, 100}, {50, 99, -1, 0}}, Label: Plain.Label,
	}
	if got := strings.Join(h.Text(), "|"); got != " .:@|*@ ." {
		t.Errorf("Text = %q; want nothing, empty, a little and the most distinguished", got)
	}
	svg := h.SVG()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("SVG is no XML: %v", err)
		}
	}
	if n := strings.Count(svg, "<rect") - 1; n != 6 {
		t.Errorf("%d cells drawn; want the 6 that are known", n)
	}
	if (Heat{}).SVG() == "" || len((Heat{}).Text()) != 0 {
		t.Error("an empty map is not drawn as one")
	}
}

package main

import (
	"fmt"
	"html"
	"io"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// matrixMetric is what a cell of the delay matrix shows: its value, larger is worse, and
// its text.
type matrixMetric func(c *api.JobCell) (worse float64, text string)

var matrixMetrics = map[string]matrixMetric{
	"took": func(c *api.JobCell) (float64, string) {
		return float64(c.TookNs), model.FormatDuration(time.Duration(c.TookNs))
	},
	"wait": func(c *api.JobCell) (float64, string) {
		return float64(c.WaitNs), model.FormatDuration(time.Duration(c.WaitNs))
	},
	"rate": func(c *api.JobCell) (float64, string) {
		return -float64(c.RateBps), model.FormatRate(model.Rate(c.RateBps))
	},
}

// maxMatrixText bounds the ranks of a matrix that a terminal shows.
const maxMatrixText = 16

// matrix is the cells of a job by rank.
type matrix struct {
	at           map[[2]string]*api.JobCell
	least, worst float64
}

func newMatrix(d *api.JobDetail, cell matrixMetric) *matrix {
	m := &matrix{at: map[[2]string]*api.JobCell{}}
	for i := range d.Cells {
		c := &d.Cells[i]
		v, _ := cell(c)
		if i == 0 || v < m.least {
			m.least = v
		}
		if i == 0 || v > m.worst {
			m.worst = v
		}
		m.at[[2]string{c.Src, c.Dst}] = c
	}
	return m
}

// printMatrix prints the delay matrix: a row is a sender, a column a receiver.
func printMatrix(w io.Writer, d *api.JobDetail, metric string, cell matrixMetric) error {
	if len(d.Cells) == 0 {
		return nil
	}
	if len(d.Hosts) > maxMatrixText {
		fmt.Fprintf(w, "\nthe matrix of %d ranks is too wide for a terminal: --svg FILE draws it\n", len(d.Hosts))
		return nil
	}
	fmt.Fprintf(w, "\n%s, from row to column\n", metric)
	m := newMatrix(d, cell)
	var rows table
	head := []any{""}
	for _, h := range d.Hosts {
		head = append(head, h)
	}
	rows.row(head...)
	for _, src := range d.Hosts {
		row := []any{src}
		for _, dst := range d.Hosts {
			text := "."
			if c := m.at[[2]string{src, dst}]; c != nil {
				_, text = cell(c)
			}
			row = append(row, text)
		}
		rows.row(row...)
	}
	return rows.print(w)
}

// drawMatrix draws the delay matrix as SVG.
func drawMatrix(d *api.JobDetail, metric string, cell matrixMetric) string {
	const size, left, top = 22, 90, 110
	m := newMatrix(d, cell)
	wide, high := left+size*len(d.Hosts)+20, top+size*len(d.Hosts)+20
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11" fill="#444">`, wide, high)
	fmt.Fprintf(&b, `<text x="8" y="18">%s: %s, from row to column</text>`, html.EscapeString(d.Name), metric)
	for i, h := range d.Hosts {
		at := size*i + size/2
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-6, top+at+4, html.EscapeString(h))
		fmt.Fprintf(&b, `<text transform="translate(%d %d) rotate(-60)">%s</text>`, left+at, top-6, html.EscapeString(h))
	}
	for i, src := range d.Hosts {
		for k, dst := range d.Hosts {
			fill, title := "#f4f4f4", ""
			if c := m.at[[2]string{src, dst}]; c != nil {
				v, text := cell(c)
				share := 0.0
				if m.worst > m.least {
					share = (v - m.least) / (m.worst - m.least)
				}
				fill = fmt.Sprintf("hsl(%.0f 70%% 55%%)", 120*(1-share)) // from green to red
				title = fmt.Sprintf("<title>%s</title>", html.EscapeString(fmt.Sprintf("%s > %s: %s, %s", src, dst, text, strings.Join(c.Path, " > "))))
			}
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s">%s</rect>`, left+size*k, top+size*i, size-1, size-1, fill, title)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

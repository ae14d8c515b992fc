package intlabel

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
)

// point is one run of a sweep.
type point struct {
	x float64
	lab
	outcome
}

// sweep runs labs one after the other.
func sweep(ctx context.Context, o claim.Options, labs []lab, xs []float64) ([]point, error) {
	points := make([]point, len(labs))
	for i, l := range labs {
		o.Report(float64(i)/float64(len(labs)), fmt.Sprintf("%s, T = %v", l.name, l.interval))
		out, err := l.run(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s, T %v: %w", l.name, l.interval, err)
		}
		points[i] = point{xs[i], l, out}
	}
	return points, nil
}

// labsFor returns a lab for each strategy and value.
func labsFor(o claim.Options, all []strategy, values []float64, set func(l *lab, v float64)) (labs []lab,
	xs []float64,
) {
	for _, s := range all {
		for _, v := range values {
			l := newLab(s, o.Seed)
			set(&l, v)
			labs, xs = append(labs, l), append(xs, v)
		}
	}
	return removed(o, labs), xs
}

// pointsOf returns the points of one strategy.
func pointsOf(points []point, s strategy) (list []point) {
	for _, p := range points {
		if p.name == s.name {
			list = append(list, p)
		}
	}
	return list
}

// curveOf returns one strategy's curve.
func curveOf(points []point, s strategy, y func(point) float64) plot.Series {
	l := plot.Series{Name: s.name}
	for _, p := range pointsOf(points, s) {
		l.X, l.Y = append(l.X, p.x), append(l.Y, y(p))
	}
	return l
}

func chart(title, x, y string, points []point, value func(point) float64, all ...strategy) claim.Plot {
	c := plot.Chart{Title: title, XTitle: x, YTitle: y}
	for _, s := range all {
		c.Series = append(c.Series, curveOf(points, s, value))
	}
	return claim.Plot{Chart: c}
}

// table lists all results of the runs.
func table(title, x string, points []point) claim.Table {
	t := claim.Table{Title: title, Header: []string{
		"strategy", x, "packets", "lost", "coverage", "windows", "labels",
		"exported packets", "labels' share of bytes",
	}}
	for _, p := range points {
		t.Row(p.name, fmt.Sprintf("%.4g", p.x), fmt.Sprint(p.sent), percent(p.lost()), percent(p.coverage()),
			fmt.Sprint(len(p.windows)), fmt.Sprint(p.labels), fmt.Sprint(p.exports), percent(p.load.Share()))
	}
	return t
}

func millis(v float64) time.Duration { return time.Duration(v * float64(ms)) }

const setting = "the paper's Clos of 12 switches and 8 servers in the packet simulator; the first and the last server each send packets of 1 kB at 5 Mb/s to random others, with random gaps; coverage is labelled over active ports per 100 ms window, when labels arrive at the controller"

// coverageOverTime returns a run's coverage, window by window.
func coverageOverTime(p point) plot.Series {
	s := plot.Series{Name: fmt.Sprintf("T = %v", p.interval)}
	for i := range p.windows {
		s.X = append(s.X, float64(p.windows[i].To)/1e9)
		s.Y = append(s.Y, p.windows[i].Coverage())
	}
	return s
}

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
)

// Queue depth and pause timeline are one above the other and share margins and
// the time axis, so that an instant has the same position in both.
const (
	wide      = 1100.0
	wideLeft  = 64.0
	wideRight = 190.0
)

// columns is the resolution in time of both plots: about one pixel.
const columns = int(wide - wideLeft - wideRight)

// timeAxis sets and draws it.
func (p *chart) timeAxis(r *Run) {
	from, to := float64(r.start()), float64(r.End)
	p.X = plot.Linear(from, to, p.Left, p.Right)
	p.XAxis(plot.Axis{Title: "simulated time", Unit: plot.TimeUnit(to - from), Ticks: 10})
}

// plotQueues draws the depth of the deepest queues over time.
func plotQueues(r *Run, deepest []PortSummary) string {
	p := newChart(wide, 320, plot.Margins{Left: wideLeft, Top: 12, Right: wideRight, Bottom: 46}, "queue depth over time")
	var peak model.Bytes
	if len(deepest) > 0 {
		peak = deepest[0].PeakQueue
	}
	p.Y = plot.Linear(0, float64(peak)*1.05, p.Bottom, p.Top)
	p.timeAxis(r)
	p.YAxis(plot.Axis{Title: "queue depth", Unit: plot.BytesUnit(float64(peak)), Ticks: 6})
	if len(deepest) == 0 {
		p.Nothing("no sample has a queued packet")
		return p.End()
	}
	deepest = deepest[:min(len(deepest), plot.Colours)]
	p.Strips(120, func(from, to float64) string {
		return queueTitle(deepest, model.Time(from), model.Time(to))
	})
	for i := len(deepest) - 1; i >= 0; i-- { // the deepest on top
		p.Path(p.queueLine(r, deepest[i].series), plot.Attr{Class: "line thin " + plot.Colour(i)})
	}
	for i, port := range deepest {
		y := p.Top + 14 + 36*float64(i)
		p.LegendRow(p.Right+14, y, plot.Colour(i), plot.Clip(port.Name(), 22))
		p.Text(p.Right+32, y+14, "tick", "peak "+showBytes(port.PeakQueue))
	}
	return p.End()
}

func (p *chart) queueLine(r *Run, s *PortSeries) string {
	from, to := r.start(), r.End
	inside := s.Samples
	// Keep one sample before the first instant: the line enters from it.
	if n := firstSample(inside, from); n > 1 {
		inside = inside[n-1:]
	}
	var d []byte
	command := byte('M')
	for _, sample := range keepExtremes(inside, from, to, columns) {
		d = plot.PathTo(d, command, p.X.At(float64(sample.At)), p.Y.At(float64(sample.Queue)))
		command = 'L'
	}
	return string(d)
}

// firstSample returns the index of the first sample not before an instant.
func firstSample(samples []Sample, at model.Time) int {
	n, _ := slices.BinarySearchFunc(samples, at, func(s Sample, t model.Time) int { return cmp.Compare(s.At, t) })
	return n
}

// queueTitle names the largest sample of each port in an interval.
func queueTitle(ports []PortSummary, from, to model.Time) string {
	var b strings.Builder
	for _, p := range ports {
		samples := p.series.Samples
		peak := model.Bytes(-1)
		for n := firstSample(samples, from); n < len(samples) && samples[n].At < to; n++ {
			peak = max(peak, samples[n].Queue)
		}
		if peak >= 0 {
			fmt.Fprintf(&b, "\n%s: %s", p.Name(), showBytes(peak))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	u := plot.TimeUnit(float64(from))
	return fmt.Sprintf("around %s %s, largest sample", u.Label(float64((from+to)/2)), u.Name) + b.String()
}

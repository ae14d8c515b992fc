package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/model"
)

// Queue depth and pause timeline stand one above the other and share margins
// and the axis of time, so that an instant is at one place in both.
const (
	wide      = 1100.0
	wideLeft  = 64.0
	wideRight = 190.0
)

// columns is the resolution in time of both plots: about one pixel.
const columns = int(wide - wideLeft - wideRight)

// timeAxis sets and draws it.
func (p *plot) timeAxis(r *Run) {
	from, to := float64(r.start()), float64(r.End)
	p.x = linear(from, to, p.left, p.right)
	p.xAxis(axis{title: "simulated time", unit: timeUnit(to - from), ticks: 10})
}

// plotQueues draws the depth of the deepest queues over time.
func plotQueues(r *Run, deepest []PortSummary) string {
	p := newPlot(wide, 320, margins{wideLeft, 12, wideRight, 46}, "queue depth over time")
	var peak model.Bytes
	if len(deepest) > 0 {
		peak = deepest[0].PeakQueue
	}
	p.y = linear(0, float64(peak)*1.05, p.bottom, p.top)
	p.timeAxis(r)
	p.yAxis(axis{title: "queue depth", unit: bytesUnit(float64(peak)), ticks: 6})
	if len(deepest) == 0 {
		p.nothing("no queue was seen in any sample")
		return p.end()
	}
	deepest = deepest[:min(len(deepest), colours)]
	p.strips(120, func(from, to float64) string {
		return queueTitle(deepest, model.Time(from), model.Time(to))
	})
	for i := len(deepest) - 1; i >= 0; i-- { // the deepest on top
		p.path(p.queueLine(r, deepest[i].series), attr{class: "line thin " + colour(i)})
	}
	for i, port := range deepest {
		y := p.top + 14 + 36*float64(i)
		p.legendRow(p.right+14, y, colour(i), clip(port.Name(), 22))
		p.text(p.right+32, y+14, "tick", "peak "+showBytes(port.PeakQueue))
	}
	return p.end()
}

func (p *plot) queueLine(r *Run, s *PortSeries) string {
	from, to := r.start(), r.End
	inside := s.Samples
	// Keep one sample before the first instant: the line enters from it.
	if n := firstSample(inside, from); n > 1 {
		inside = inside[n-1:]
	}
	var d []byte
	command := byte('M')
	for _, sample := range extremes(inside, from, to, columns) {
		d = pathTo(d, command, p.x.at(float64(sample.At)), p.y.at(float64(sample.Queue)))
		command = 'L'
	}
	return string(d)
}

// firstSample is the index of the first sample not before an instant.
func firstSample(samples []Sample, at model.Time) int {
	n, _ := slices.BinarySearchFunc(samples, at, func(s Sample, t model.Time) int { return cmp.Compare(s.At, t) })
	return n
}

// queueTitle names the largest sample of each port in a stretch of time.
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
	u := timeUnit(float64(from))
	return fmt.Sprintf("around %s %s, largest sample", u.label(float64((from+to)/2)), u.name) + b.String()
}

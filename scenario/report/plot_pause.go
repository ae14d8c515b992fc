package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
)

const (
	// pauseRows is the number of queues in the timeline.
	pauseRows = 24
	// maxBars is the number of pauses that are drawn individually, with
	// tooltips; beyond it a row shows the paused share of each two pixels.
	maxBars = 1500
	rowStep = 17.0
	barSize = 11.0
	// countSize is the height of the graph of queues paused at once.
	countSize = 70.0
)

// pausePlot is the timeline and its omissions.
type pausePlot struct {
	svg     string
	shown   int
	queues  int
	merged  bool // bars show shares, not single pauses
	visible int  // pauses in the shown rows
}

// plotPauses draws how many queues were paused at once, and below it the pauses
// of the longest paused ones, in the order of their first pause: a pause that
// spreads reads from the top down.
func plotPauses(r *Run, queues []*pausedQueue) pausePlot {
	rows := slices.DeleteFunc(slices.Clone(queues), func(q *pausedQueue) bool { return q.total == 0 })
	out := pausePlot{queues: len(rows)}
	slices.SortStableFunc(rows, func(a, b *pausedQueue) int { return cmp.Compare(b.total, a.total) })
	all := rows
	rows = slices.Clone(rows[:min(len(rows), pauseRows)])
	slices.SortStableFunc(rows, func(a, b *pausedQueue) int { return cmp.Compare(a.spans[0].from, b.spans[0].from) })
	out.shown = len(rows)
	for _, q := range rows {
		out.visible += len(q.spans)
	}
	out.merged = out.visible > maxBars

	gap := 16.0
	height := 14 + countSize + gap + rowStep*float64(max(len(rows), 1)) + 46
	p := newChart(wide, height, plot.Margins{Left: wideLeft, Top: 14, Right: wideRight, Bottom: 46},
		"PFC pauses over time")
	p.timeAxis(r)
	if len(rows) == 0 {
		p.Nothing("no pause frames were received")
		out.svg = p.End()
		return out
	}
	p.pausedAtOnce(r, all)
	peers := make(map[model.Port]string, len(r.Ports))
	for _, s := range r.Ports {
		peers[model.Port{Node: s.ID, Port: s.Port}] = s.Peer
	}
	for i, q := range rows {
		y := p.Top + countSize + gap + rowStep*float64(i)
		peer := peers[model.Port{Node: q.id, Port: q.port}]
		p.pauseRow(r, q, y, peer, out.merged)
	}
	out.svg = p.End()
	return out
}

func (p *chart) pauseRow(r *Run, q *pausedQueue, y float64, peer string, merged bool) {
	name := portName(q.node, q.port, q.iface) + suffix(" → ", peer)
	sum := fmt.Sprintf("%s, priority %d\n%s, %s paused (%s of the time shown), longest %s\nfirst at %s",
		name, q.priority, countOf(len(q.spans), "pause"), showDuration(q.total), showPercent(r.shareOfRun(q)),
		showDuration(q.longest), showDuration(q.spans[0].from.Sub(0)))
	p.Rect(p.Left, y, p.Right-p.Left, barSize, plot.Attr{Class: "track", Title: sum})
	p.Text(p.Left-7, y+barSize-1.5, "tick end", showPercent(r.shareOfRun(q)))
	p.Text(p.Right+14, y+barSize-1.5, "legend", fmt.Sprintf("%s · prio %d", plot.Clip(name, 24), q.priority))
	if merged {
		p.pauseShares(r, q, y, sum)
		return
	}
	for _, s := range q.spans {
		a, b := p.X.At(float64(s.from)), p.X.At(float64(s.to))
		p.Rect(a, y, max(b-a, 0.8), barSize, plot.Attr{
			Class: "bar",
			Title: fmt.Sprintf("%s, priority %d\npaused %s from %s", name, q.priority,
				showDuration(s.length()), showDuration(s.from.Sub(0))),
		})
	}
}

// shareOfRun returns the paused share of the time that the plots show.
func (r *Run) shareOfRun(q *pausedQueue) float64 {
	return float64(q.total) / max(float64(r.End-r.start()), 1)
}

// pauseShares draws a row of merged pauses: runs of two-pixel columns with a
// similar paused share, one path per shade.
func (p *chart) pauseShares(r *Run, q *pausedQueue, y float64, title string) {
	const shades = 4
	cols := columnShares(q.spans, r.start(), r.End, columns/2)
	w := (p.Right - p.Left) / float64(len(cols))
	shade := func(i int) int {
		if i >= len(cols) || cols[i] == 0 {
			return -1
		}
		return min(int(cols[i]*shades), shades-1)
	}
	var paths [shades][]byte
	for i := 0; i < len(cols); {
		n, s := i+1, shade(i)
		for n < len(cols) && shade(n) == s {
			n++
		}
		if s >= 0 {
			long := plot.Num(float64(n-i) * w)
			paths[s] = plot.PathTo(paths[s], 'M', p.Left+float64(i)*w, y)
			paths[s] = fmt.Appendf(paths[s], "h%sv%sh-%sz", long, plot.Num(barSize), long)
		}
		i = n
	}
	for s, d := range paths {
		p.Path(string(d), plot.Attr{Class: fmt.Sprintf("bar b%d", s), Title: title})
	}
}

// pausedAtOnce draws the number of paused queues as an area above the rows.
func (p *chart) pausedAtOnce(r *Run, queues []*pausedQueue) {
	var spans []span
	for _, q := range queues {
		spans = append(spans, q.spans...)
	}
	counts := maximum(spans, r.start(), r.End, columns)
	peak := slices.Max(counts)
	base := p.Top + countSize
	p.Y = plot.Linear(0, float64(peak), base, p.Top)
	for _, v := range p.Y.Ticks(3) {
		if v == math.Trunc(v) {
			p.Line(p.Left, p.Y.At(v), p.Right, p.Y.At(v), "grid")
			p.Text(p.Left-7, p.Y.At(v)+4, "tick end", plot.Plain.Label(v))
		}
	}
	d := plot.PathTo(nil, 'M', p.Left, base)
	for i, n := range counts {
		if i > 0 && n == counts[i-1] {
			continue
		}
		x := p.Left + float64(i)*(p.Right-p.Left)/float64(columns)
		d = append(append(d, 'H'), plot.Num(x)...)
		d = append(append(d, 'V'), plot.Num(p.Y.At(float64(n)))...)
	}
	d = append(append(append(append(d, 'H'), plot.Num(p.Right)...), 'V'), plot.Num(base)...)
	p.Path(string(append(d, 'Z')), plot.Attr{Class: "area", Title: fmt.Sprintf("up to %s paused at once",
		countOf(peak, "queue"))})
	p.Text(p.Right+14, p.Top+10, "legend", "queues paused at once")
	p.Text(p.Right+14, p.Top+24, "tick", fmt.Sprintf("peak %d of %d ever paused", peak, len(queues)))
}

package attribution

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weft-telemetry/weft/model"
)

// Timeline is what an account rests on, for drawing: a row per queue.
type Timeline struct {
	From, To model.Time
	Rows     []TimelineRow
}

// TimelineRow is a queue over time.
type TimelineRow struct {
	Place     Place
	Reported  bool
	Paused    []Span
	Congested []Span
	Packet    []Span // while the packet was in it
}

// Span is an interval of time.
type Span struct{ From, To model.Time }

// Timeline returns the queues of an account: those of the packet's path in
// order, then those through which pauses came, then causes and deadlock cycles.
// It begins with the first cause and ends when the packet arrived or was found
// missing.
func (a *Account) Timeline(ev *Evidence, v *Victim) Timeline {
	t := Timeline{From: min(a.Since, v.Sent), To: v.Sent.Add(v.Took)}
	index := make(map[Queue]int, len(ev.Queues))
	for i := range ev.Queues {
		index[ev.Queues[i].Queue] = i
	}
	rows := map[Queue]int{}
	add := func(p Place) *TimelineRow {
		n, ok := rows[p.Queue]
		if !ok {
			n = len(t.Rows)
			rows[p.Queue] = n
			t.Rows = append(t.Rows, ev.row(p, index[p.Queue], t.From, t.To))
		}
		return &t.Rows[n]
	}
	for _, s := range a.Stays {
		if s.Queue >= 0 {
			r := add(s.Place)
			r.Packet = append(r.Packet, Span{s.From, s.Until})
		}
	}
	for i := range a.Terms {
		for _, p := range a.Terms[i].Via {
			add(p.Place)
		}
	}
	for i := range a.Terms {
		if p := a.Terms[i].Place; p != nil {
			add(*p)
		}
	}
	for i := range a.Deadlocks {
		for _, p := range a.Deadlocks[i].Cycle {
			add(p)
		}
		if p := a.Deadlocks[i].Trigger; p != nil {
			add(*p)
		}
	}
	return t
}

// row returns the intervals of a queue that lie in a span.
func (ev *Evidence) row(p Place, index int, from, to model.Time) TimelineRow {
	r := TimelineRow{Place: p}
	i, found := slices.BinarySearchFunc(ev.Devices, p.Port.Node, func(d Device, n model.NodeID) int { return int(d.Node) - int(n) })
	if !found || !ev.Devices[i].Reported {
		return r
	}
	r.Reported = true
	clip := func(list []Span, start, end model.Time, open bool) []Span {
		if open {
			end = openUntil(start, ev.Devices[i].Snapshot, to)
		}
		if start, end = max(start, from), min(end, to); start < end {
			list = append(list, Span{start, end})
		}
		return list
	}
	for _, p := range ev.Queues[index].Pauses {
		r.Paused = clip(r.Paused, p.From, p.To, p.Open)
	}
	for _, c := range ev.Queues[index].Congestions {
		r.Congested = clip(r.Congested, c.From, c.To, c.Open)
	}
	return r
}

// Legend explains the characters of a drawing.
const Legend = "█ paused  ░ congested  ▓ ▒ the same with the packet in it  * packet  ? no report"

// Draw returns the timeline as text, with the given number of columns:
//
//	leaf5 Ethernet4 → tor5   ···████▓▓▓▓▓··
//	tor5 Ethernet0 → h10     ░░░░░░░░░░░▒▒·
func (t *Timeline) Draw(names Names, columns int) string {
	if columns < 1 || t.To <= t.From {
		return ""
	}
	width := 0
	for i := range t.Rows {
		width = max(width, utf8.RuneCountInString(names.Link(t.Rows[i].Place.Port)))
	}
	var b strings.Builder
	for i := range t.Rows {
		name := names.Link(t.Rows[i].Place.Port)
		b.WriteString(name)
		b.WriteString(strings.Repeat(" ", width-utf8.RuneCountInString(name)+2))
		for c := range columns {
			b.WriteRune(t.Rows[i].mark(t.column(c, columns), t.column(c+1, columns)))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// column returns where a column starts.
func (t *Timeline) column(c, columns int) model.Time {
	return t.From.Add(time.Duration(float64(t.To.Sub(t.From)) * float64(c) / float64(columns)))
}

// mark returns the character of a column: what held for half of it, or in which
// the packet was.
func (r *TimelineRow) mark(from, to model.Time) rune {
	packet := slices.ContainsFunc(r.Packet, func(s Span) bool { return s.From < to && s.To > from })
	covered := func(list []Span) bool {
		sum := time.Duration(0)
		for _, s := range list {
			sum += max(0, min(s.To, to).Sub(max(s.From, from)))
		}
		return 2*sum >= to.Sub(from)
	}
	switch paused := covered(r.Paused); {
	case !r.Reported && packet:
		return '*'
	case !r.Reported:
		return '?'
	case paused && packet:
		return '▓'
	case paused:
		return '█'
	case covered(r.Congested) && packet:
		return '▒'
	case covered(r.Congested):
		return '░'
	case packet:
		return '*'
	}
	return '·'
}

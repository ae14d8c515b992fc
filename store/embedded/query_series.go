package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/recent"
)

// rollupSeries describes how to read steps of a series from its rollups.
type rollupSeries[T, S any] struct {
	kind store.Kind
	scan func(rows *sql.Rows) (begin int64, r recent.Row[S], err error)
	show func(begin int64, width time.Duration, r *recent.Row[S]) T
	// afterCursor is the condition for series after the cursor's within its step.
	afterCursor func(c store.Cursor) (sql string, args []any)
}

var portSeries = rollupSeries[record.PortSample, portSums]{
	kind: store.Ports,
	scan: func(rows *sql.Rows) (begin int64, r recent.Row[portSums], err error) {
		s := &r.Sums
		err = rows.Scan(&begin, &r.Name, &r.Port, &s.samples, &s.queue, &s.latency, &s.load, &s.paused, &s.queueMax)
		return begin, r, err
	},
	show: func(begin int64, _ time.Duration, r *recent.Row[portSums]) record.PortSample {
		s := &r.Sums
		w := float64(s.samples)
		return record.PortSample{
			Time: time.Unix(0, begin).UTC(), Node: r.Name, Port: r.Port, Samples: s.samples,
			Queue: model.Bytes(roundMean(s.queue / w)), Latency: time.Duration(roundMean(s.latency / w)), Load: model.Rate(roundMean(s.load / w)),
			Paused: s.paused / w, QueueMax: s.queueMax,
		}
	},
	afterCursor: func(c store.Cursor) (string, []any) {
		return fmt.Sprintf(`node > ? OR node = ? AND port > %d`, c.Port), []any{c.Name, c.Name}
	},
}

var counterSeries = rollupSeries[record.Counter, counterSums]{
	kind: store.Counters,
	scan: func(rows *sql.Rows) (begin int64, r recent.Row[counterSums], err error) {
		err = rows.Scan(&begin, &r.Name, &r.Sums.packets, &r.Sums.bytes, &r.Sums.flows)
		return begin, r, err
	},
	show: func(begin int64, width time.Duration, r *recent.Row[counterSums]) record.Counter {
		return record.Counter{
			Time: time.Unix(0, begin).UTC(), Period: width, Name: r.Name,
			Packets: r.Sums.packets, Bytes: r.Sums.bytes, Flows: r.Sums.flows,
		}
	},
	afterCursor: func(c store.Cursor) (string, []any) { return `name > ?`, []any{c.Name} },
}

// roundMean rounds an average to the nearest int64.
func roundMean(v float64) int64 {
	switch v = math.Round(v); {
	case v >= 1<<63:
		return math.MaxInt64
	case v <= -1<<63:
		return math.MinInt64
	}
	return int64(v)
}

// firstSteps is the number of steps in the first read of a query; each further read
// covers four times as many. The cost of a page of a long series then depends on
// its length, not on what is stored.
const firstSteps = 64

// stepWalk collects one page of steps.
type stepWalk[T, S any] struct {
	*Store
	of    *rollupSeries[T, S]
	asked record.Query
	from  store.Kind // the rollup
	width time.Duration
	where *conditions
	limit int
	page  record.Page[T]
	end   store.Cursor // at the last item
}

// querySeries answers a query with steps. Steps count from 1970, and one is in the
// range if its start is. Each step of a series is in a walk once, as complete as
// it was when its page was read. The newest come from memory, the others from
// the table.
func querySeries[T, S any](ctx context.Context, s *Store, t *rollupSeries[T, S],
	hot map[store.Kind]*recent.Steps[S], q record.Query,
) (record.Page[T], error) {
	step, width := store.StepWidth(q.Step)
	w := stepWalk[T, S]{
		Store: s, of: t, asked: q, from: rollupOf(t.kind, step), width: width, limit: s.pageLimit(q),
		where: filter(t.kind, record.Query{Node: q.Node, Port: q.Port, Name: q.Name}),
	}
	err := s.query(ctx, t.kind, q, func(ctx context.Context) error { return w.collect(ctx, hot[w.from].View()) })
	if err != nil {
		return record.Page[T]{}, err
	}
	return w.page, nil
}

func (w *stepWalk[T, S]) collect(ctx context.Context, hot *recent.StepsView[S]) error {
	first, last := w.bounds()
	var after *store.Cursor
	if w.asked.After != "" {
		c, err := store.Unseal(w.key, w.of.kind, w.asked)
		if err != nil {
			return err
		}
		after = &c
		last = min(last, c.Time)
		sql, args := w.of.afterCursor(c)
		w.where.and(fmt.Sprintf(`time < make_timestamp_ns(%d) OR %s`, c.Time, sql), args...)
	}
	for begin, rows := range hot.NewestFirst(w.asked.Node+w.asked.Name, w.width, first, last) { // a kind has only one of them
		for i := range rows {
			r := &rows[i]
			if w.asked.Port != 0 && r.Port != w.asked.Port || after != nil && begin == after.Time && r.Compare(recent.Series{Name: after.Name, Port: after.Port}) <= 0 {
				continue
			}
			if w.full() {
				return nil
			}
			w.addRow(begin, r)
		}
	}
	last = min(last, store.FloorStep(hot.Floor(), w.width))
	for window := int64(firstSteps); first <= last && w.page.Next == ""; window *= 4 {
		low := first
		if (uint64(last)-uint64(first))/uint64(w.width) >= uint64(window) {
			low = last - (window-1)*int64(w.width)
		}
		if err := w.readSteps(ctx, low, last); err != nil {
			return err
		}
		last = low - int64(w.width)
	}
	return nil
}

// full reports whether the page is full, and seals it then.
func (w *stepWalk[T, S]) full() bool {
	if len(w.page.Items) < w.limit {
		return false
	}
	w.page.Next = w.end.Seal(w.key, w.of.kind, w.asked)
	return true
}

func (w *stepWalk[T, S]) addRow(begin int64, r *recent.Row[S]) {
	w.page.Items = append(w.page.Items, w.of.show(begin, w.width, r))
	w.end = store.Cursor{Time: begin, Name: r.Name, Port: r.Port}
}

// bounds are the starts of the first and the last step that may be in the
// answer; there is none if the first is after the last. Both are near times of
// stored rows, so that a width more or less does not overflow int64.
func (w *stepWalk[T, S]) bounds() (first, last int64) {
	first, last = store.TimeRange(w.asked)
	e := w.boundsOfKind(w.from)
	if e == emptyBounds || first > last {
		return 1, 0
	}
	first = clamp(first)
	if begin := store.FloorStep(first, w.width); begin < first {
		first = begin + int64(w.width)
	}
	return max(first, store.FloorStep(e.oldest, w.width)), store.FloorStep(min(clamp(last), e.newest), w.width)
}

// readSteps adds the steps from low to high to the page, and ends it when it is
// full.
func (w *stepWalk[T, S]) readSteps(ctx context.Context, low, high int64) error {
	where := conditions{slices.Clone(w.where.all), w.where.args}
	where.between(low, high+int64(w.width)-1)
	r := rollups[w.from]
	query := fmt.Sprintf(`SELECT epoch_ns(time) - ((epoch_ns(time) %% %[1]d) + %[1]d) %% %[1]d AS step, %[2]s, %[3]s
		FROM %[4]s WHERE %[5]s GROUP BY ALL ORDER BY step DESC, %[2]s LIMIT %[6]d`,
		int64(w.width), r.key, r.merge, w.from, where.sql(), w.limit-len(w.page.Items)+1)
	return w.queryRows(ctx, query, where.args, func(rows *sql.Rows) error {
		if w.full() {
			return errEnough
		}
		begin, row, err := w.of.scan(rows)
		if err != nil {
			return err
		}
		w.addRow(begin, &row)
		return nil
	})
}

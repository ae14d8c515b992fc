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
)

// rolled is how steps of a series are read from its rollups.
type rolled[T any] struct {
	kind store.Kind
	scan func(rows *sql.Rows, width time.Duration, r *T) (store.Cursor, error)
	// behind is the condition for series that come after the cursor's within its step.
	behind func(c store.Cursor) (sql string, args []any)
}

var portSeries = rolled[record.PortSample]{
	kind: store.Ports,
	scan: func(rows *sql.Rows, _ time.Duration, r *record.PortSample) (store.Cursor, error) {
		var at int64
		var s portSums
		err := rows.Scan(&at, &r.Node, &r.Port, &s.samples, &s.queue, &s.latency, &s.load, &s.paused, &s.queueMax)
		w := float64(s.samples)
		r.Time, r.Samples = time.Unix(0, at).UTC(), s.samples
		r.Queue, r.Latency, r.Load = model.Bytes(whole(s.queue/w)), time.Duration(whole(s.latency/w)), model.Rate(whole(s.load/w))
		r.Paused, r.QueueMax = s.paused/w, s.queueMax
		return store.Cursor{Time: at, Name: r.Node, Port: r.Port}, err
	},
	behind: func(c store.Cursor) (string, []any) {
		return fmt.Sprintf(`node > ? OR node = ? AND port > %d`, c.Port), []any{c.Name, c.Name}
	},
}

var counterSeries = rolled[record.Counter]{
	kind: store.Counters,
	scan: func(rows *sql.Rows, width time.Duration, r *record.Counter) (store.Cursor, error) {
		var at int64
		err := rows.Scan(&at, &r.Name, &r.Packets, &r.Bytes, &r.Flows)
		r.Time, r.Period = time.Unix(0, at).UTC(), width
		return store.Cursor{Time: at, Name: r.Name}, err
	},
	behind: func(c store.Cursor) (string, []any) { return `name > ?`, []any{c.Name} },
}

// whole rounds a mean to the nearest int64.
func whole(v float64) int64 {
	switch v = math.Round(v); {
	case v >= 1<<63:
		return math.MaxInt64
	case v <= -1<<63:
		return math.MinInt64
	}
	return int64(v)
}

// firstSteps is how many steps a query looks through at first; each further look
// takes four times as many. A page of a long series then costs what it shows,
// not what is kept.
const firstSteps = 64

// stepWalk collects one page of steps.
type stepWalk[T any] struct {
	*Store
	of    *rolled[T]
	asked record.Query
	from  store.Kind // the rollup
	width time.Duration
	where *conditions
	limit int
	page  record.Page[T]
	end   store.Cursor // of the last item
}

// series answers a query with steps. Steps count from 1970, and one is in the
// range when its begin is. Each step of a series is in a walk once, as full as
// it was when its page was read.
func series[T any](ctx context.Context, s *Store, t *rolled[T], q record.Query) (record.Page[T], error) {
	step, width := store.Width(q.Step)
	w := stepWalk[T]{
		Store: s, of: t, asked: q, from: rollupOf(t.kind, step), width: width, limit: s.limit(q),
		where: filter(t.kind, record.Query{Node: q.Node, Port: q.Port, Name: q.Name}),
	}
	if err := s.query(ctx, t.kind, q, w.run); err != nil {
		return record.Page[T]{}, err
	}
	return w.page, nil
}

func (w *stepWalk[T]) run(ctx context.Context) error {
	first, last := w.bounds()
	if w.asked.After != "" {
		after, err := store.Unseal(w.key, w.of.kind, w.asked)
		if err != nil {
			return err
		}
		last = min(last, after.Time)
		sql, args := w.of.behind(after)
		w.where.and(fmt.Sprintf(`time < make_timestamp_ns(%d) OR %s`, after.Time, sql), args...)
	}
	for look := int64(firstSteps); first <= last && w.page.Next == ""; look *= 4 {
		low := first
		if (last-first)/int64(w.width) >= look {
			low = last - (look-1)*int64(w.width)
		}
		if err := w.look(ctx, low, last); err != nil {
			return err
		}
		last = low - int64(w.width)
	}
	return nil
}

// bounds are the begins of the first and the last step that may be in the
// answer; there is none where the first comes after the last. Both are near
// times of kept rows, so that a width more or less stays within int64.
func (w *stepWalk[T]) bounds() (first, last int64) {
	first, last = store.Range(w.asked)
	e := w.extent(w.from)
	if e == nowhere || first > last {
		return 1, 0
	}
	first = clamp(first)
	if begin := store.Floor(first, w.width); begin < first {
		first = begin + int64(w.width)
	}
	return max(first, store.Floor(e.oldest, w.width)), store.Floor(min(clamp(last), e.newest), w.width)
}

// look adds the steps from low to high to the page, and its end once it is full.
func (w *stepWalk[T]) look(ctx context.Context, low, high int64) error {
	where := conditions{slices.Clone(w.where.all), w.where.args}
	where.between(low, high+int64(w.width)-1)
	r := rollups[w.from]
	rows, err := w.db.QueryContext(ctx, fmt.Sprintf(`SELECT epoch_ns(time) - ((epoch_ns(time) %% %[1]d) + %[1]d) %% %[1]d AS step, %[2]s, %[3]s
		FROM %[4]s WHERE %[5]s GROUP BY ALL ORDER BY step DESC, %[2]s LIMIT %[6]d`,
		int64(w.width), r.key, r.merge, w.from, where.sql(), w.limit-len(w.page.Items)+1), where.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if len(w.page.Items) == w.limit {
			w.page.Next = w.end.Seal(w.key, w.of.kind, w.asked)
			return nil
		}
		var item T
		if w.end, err = w.of.scan(rows, w.width, &item); err != nil {
			return err
		}
		w.page.Items = append(w.page.Items, item)
	}
	return rows.Err()
}

package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
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

// series answers a query with steps. Steps count from 1970, and one is in the
// range when its begin is. Each step of a series is in a walk once, as full as
// it was when its page was read.
func series[T any](ctx context.Context, s *Store, t *rolled[T], q record.Query) (record.Page[T], error) {
	var out record.Page[T]
	err := s.query(ctx, t.kind, q, func(ctx context.Context) error {
		step, width := store.Width(q.Step)
		from := rollupOf(t.kind, step)
		key := rollups[from].key

		first, last := store.Range(q)
		if first > last {
			return nil
		}
		// Whole steps only: rows from the begin of the first to the end of the last.
		first, last = clamp(first), clamp(last)
		if begin := store.Floor(first, width); begin < first {
			first = begin + int64(width)
		}
		lastStep := store.Floor(last, width)
		var after store.Cursor
		if q.After != "" {
			var err error
			if after, err = store.Unseal(s.key, t.kind, q); err != nil {
				return err
			}
			lastStep = min(lastStep, after.Time)
		}
		where := filter(t.kind, record.Query{Node: q.Node, Port: q.Port, Name: q.Name})
		oldest, newest, err := s.extent(ctx, from, where)
		if err != nil || oldest == nil {
			return err
		}
		first = max(first, store.Floor(*oldest, width))
		lastStep = min(lastStep, store.Floor(*newest, width))
		limit := s.limit(q)
		for steps := int64(firstSteps); lastStep >= first; steps *= 4 {
			// Both ends are times of kept rows or near them, far from the ends of
			// int64; the width is at most a year.
			low := first
			if (lastStep-first)/int64(width) >= steps {
				low = lastStep - (steps-1)*int64(width)
			}
			done, err := s.steps(ctx, q, width, low, lastStep, func(w *conditions) string {
				w.all, w.args = append(w.all, where.all...), append(w.args, where.args...)
				if q.After != "" {
					sql, args := t.behind(after)
					w.and(fmt.Sprintf(`time < make_timestamp_ns(%d) OR %s`, after.Time, sql), args...)
				}
				return fmt.Sprintf(`SELECT epoch_ns(time) - ((epoch_ns(time) %% %[1]d) + %[1]d) %% %[1]d AS step, %[2]s, %[3]s FROM %[4]s
					WHERE %[5]s GROUP BY ALL ORDER BY step DESC, %[2]s LIMIT %[6]d`,
					int64(width), key, rollups[from].merge, from, w.sql(), limit-len(out.Items)+1)
			}, func(rows *sql.Rows) (bool, error) {
				var r T
				at, err := t.scan(rows, width, &r)
				if err != nil {
					return false, err
				}
				if len(out.Items) == limit {
					out.Next = after.Seal(s.key, t.kind, q)
					return true, nil
				}
				out.Items, after = append(out.Items, r), at
				return false, nil
			})
			if err != nil || done {
				return err
			}
			lastStep = low - int64(width)
		}
		return nil
	})
	if err != nil {
		return record.Page[T]{}, err
	}
	return out, nil
}

// steps runs one look through the steps from low to high.
func (s *Store) steps(ctx context.Context, q record.Query, width time.Duration, low, high int64,
	text func(*conditions) string, each func(*sql.Rows) (done bool, err error),
) (bool, error) {
	w := &conditions{}
	w.between(low, high+int64(width)-1)
	query := text(w)
	rows, err := s.db.QueryContext(ctx, query, w.args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		if done, err := each(rows); done || err != nil {
			return done, err
		}
	}
	return false, rows.Err()
}

// extent is the time of the oldest and the newest row of a rollup that the
// conditions keep, nil where there is none.
func (s *Store) extent(ctx context.Context, from store.Kind, where *conditions) (oldest, newest *int64, err error) {
	err = s.db.QueryRowContext(ctx, fmt.Sprintf(`SELECT epoch_ns(min(time)), epoch_ns(max(time)) FROM %s WHERE %s`, from, where.sql()),
		where.args...).Scan(&oldest, &newest)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil, nil
	}
	return oldest, newest, err
}

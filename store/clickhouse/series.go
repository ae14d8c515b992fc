package clickhouse

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// series are the sums of a rollup in steps.
type series[T any] struct {
	kind             store.Kind
	seconds, minutes store.Kind
	name             string // column
	keys, sums       string // grouped by, after step; selected
	scan             func(rows driver.Rows, r *T, step *int64, width time.Duration) (name string, port uint16, err error)
}

// querySeries answers a query with steps.
func querySeries[T any](ctx context.Context, s *Store, t *series[T], q record.Query, where conditions) (page record.Page[T], err error) {
	c, err := s.start(ctx, t.kind, q)
	if err != nil {
		return page, err
	}
	rollup, width := store.StepWidth(q.Step)
	table := t.seconds
	if rollup == store.Minute {
		table = t.minutes
	}
	first, last := store.TimeRange(q)
	if first > last {
		return page, nil
	}
	where.add("last_seq <= %s", number(c.Bound))
	where = append(where, s.visible(table)...)
	var steps conditions
	if first != math.MinInt64 {
		steps.add("begin >= %s", number(first))
	}
	if last != math.MaxInt64 {
		steps.add("begin <= %s", number(last))
	}
	if q.After != "" {
		after := fmt.Sprintf("%s > %s", t.name, quote(c.Name))
		if t.kind == store.Ports {
			after += fmt.Sprintf(" OR %s = %s AND port > %d", t.name, quote(c.Name), c.Port)
		}
		steps.add("begin < %[1]s OR begin = %[1]s AND (%[2]s)", number(c.Time), after)
	}
	limit := s.pageLimit(q.Limit)
	rows, err := s.conn.Query(ctx, fmt.Sprintf(`SELECT * FROM (SELECT %s AS begin, %s, %s FROM %s WHERE %s GROUP BY begin, %s) WHERE %s ORDER BY begin DESC, %s LIMIT %d`,
		floorStep("step", fmt.Sprint(int64(width))), t.keys, t.sums, table, where, t.keys, steps, t.keys, limit+1))
	if err != nil {
		return page, s.failed(ctx, t.kind, err)
	}
	defer rows.Close()
	end := store.Cursor{Bound: c.Bound}
	for rows.Next() {
		if len(page.Items) == limit {
			page.Next = end.Seal(s.key, t.kind, q)
			break
		}
		var r T
		name, port, err := t.scan(rows, &r, &end.Time, width)
		if err != nil {
			return record.Page[T]{}, s.failed(ctx, t.kind, err)
		}
		end.Name, end.Port = name, model.PortID(port)
		page.Items = append(page.Items, r)
	}
	if err := rows.Err(); err != nil {
		return record.Page[T]{}, s.failed(ctx, t.kind, err)
	}
	return page, nil
}

var portSeries = series[record.PortSample]{
	kind: store.Ports, seconds: store.PortSeconds, minutes: store.PortMinutes, name: "node", keys: "node, port",
	sums: `sum(weight), sum(queue_sum), max(deepest), sum(latency_sum), sum(load_sum), sum(paused_sum)`,
	scan: func(rows driver.Rows, r *record.PortSample, step *int64, _ time.Duration) (string, uint16, error) {
		var port uint16
		var samples, queue, latency, load, paused float64
		var deepest int64
		if err := rows.Scan(step, &r.Node, &port, &samples, &queue, &deepest, &latency, &load, &paused); err != nil {
			return "", 0, err
		}
		r.Time, r.Port, r.Samples, r.QueueMax = instant(*step), model.PortID(port), saturate(samples), model.Bytes(deepest)
		r.Queue, r.Latency, r.Load = model.Bytes(mean(queue, samples)), time.Duration(mean(latency, samples)), model.Rate(mean(load, samples))
		r.Paused = paused / samples
		return r.Node, port, nil
	},
}

// saturate converts a count that may be larger than any uint64.
func saturate(v float64) uint64 {
	if v >= math.MaxUint64 {
		return math.MaxUint64
	}
	return uint64(v)
}

// mean is the rounded mean, or the nearest number of 64 bits.
func mean(sum, n float64) int64 {
	switch v := math.Round(sum / n); {
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	default:
		return int64(v)
	}
}

var counterSeries = series[record.Counter]{
	kind: store.Counters, seconds: store.CounterSeconds, minutes: store.CounterMinutes, name: "name", keys: "name",
	sums: saturated("packet_sum") + `, ` + saturated("byte_sum") + `, max(flows_max)`,
	scan: func(rows driver.Rows, r *record.Counter, step *int64, width time.Duration) (string, uint16, error) {
		err := rows.Scan(step, &r.Name, &r.Packets, &r.Bytes, &r.Flows)
		r.Time, r.Period = instant(*step), width
		return r.Name, 0, err
	},
}

// Ports returns samples of ports, or their means in steps.
func (s *Store) Ports(ctx context.Context, q record.Query) (record.Page[record.PortSample], error) {
	var where conditions
	if q.Node != "" {
		where.add("node = %s", quote(q.Node))
	}
	if q.Port != 0 {
		where.add("port = %d", q.Port)
	}
	if q.Step > 0 {
		return querySeries(ctx, s, &portSeries, q, where)
	}
	return query(ctx, s, &portTable, string(store.Ports), q, where)
}

// Counters returns periods of counters, or their sums in steps.
func (s *Store) Counters(ctx context.Context, q record.Query) (record.Page[record.Counter], error) {
	var where conditions
	if q.Name != "" {
		where.add("name = %s", quote(q.Name))
	}
	if q.Step > 0 {
		return querySeries(ctx, s, &counterSeries, q, where)
	}
	return query(ctx, s, &counterTable, string(store.Counters), q, where)
}

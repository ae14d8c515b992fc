package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// conditions are joined by AND.
type conditions []string

func (c *conditions) add(format string, args ...any) { *c = append(*c, fmt.Sprintf(format, args...)) }

func (c conditions) String() string {
	if len(c) == 0 {
		return "1"
	}
	return "(" + strings.Join(c, ") AND (") + ")"
}

// number is an integer as SQL, also the least one.
func number(v int64) string {
	if v < 0 {
		return fmt.Sprintf("toInt64('%d')", v)
	}
	return strconv.FormatInt(v, 10)
}

// addRange adds a time range; false: it is empty.
func (c *conditions) addRange(q record.Query) bool {
	first, last := store.TimeRange(q)
	if first != math.MinInt64 {
		c.add("time >= %s", number(first))
	}
	if last != math.MaxInt64 {
		c.add("time <= %s", number(last))
	}
	return first <= last
}

// addFlow adds what a flow must have.
func (c *conditions) addFlow(q *record.Query) {
	if !q.Flow.IsZero() {
		c.add("flow = %s", quote(q.Flow.String()))
	}
	e := &q.Ends
	if e.Src != (model.Addr{}) {
		c.add("src = %s", quote(e.Src.String()))
	}
	if e.Dst != (model.Addr{}) {
		c.add("dst = %s", quote(e.Dst.String()))
	}
	if e.SrcPort != 0 {
		c.add("sport = %d", e.SrcPort)
	}
	if e.DstPort != 0 {
		c.add("dport = %d", e.DstPort)
	}
}

// query answers a query for records of a table.
func query[T any](ctx context.Context, s *Store, t *table[T], from string, q record.Query, where conditions) (page record.Page[T], err error) {
	c, err := s.start(ctx, t.kind, q)
	if err != nil {
		return page, err
	}
	// Incidents have a range of their own.
	if t.kind != store.Incidents && !where.addRange(q) {
		return page, nil
	}
	if q.After != "" {
		where.add("time < %[1]s OR time = %[1]s AND seq < %[2]s", number(c.Time), number(c.Seq))
	}
	where.add("seq <= %s", number(c.Bound))
	where = append(where, s.visible(t.kind)...)
	limit := s.pageLimit(q.Limit)
	rows, err := s.conn.Query(ctx, fmt.Sprintf(`SELECT time, seq, %s FROM %s WHERE %s ORDER BY time DESC, seq DESC LIMIT %d`, t.selected, from, where, limit+1))
	if err != nil {
		return page, s.failed(ctx, t.kind, err)
	}
	defer rows.Close()
	var last position
	for rows.Next() {
		if len(page.Items) == limit {
			page.Next = store.Cursor{Time: last.time, Seq: last.seq, Bound: c.Bound}.Seal(s.key, t.kind, q)
			break
		}
		var r T
		if err := t.scan(rows, &r, &last); err != nil {
			return record.Page[T]{}, s.failed(ctx, t.kind, err)
		}
		page.Items = append(page.Items, r)
	}
	if err := rows.Err(); err != nil {
		return record.Page[T]{}, s.failed(ctx, t.kind, err)
	}
	return page, nil
}

// failed returns why a query failed.
func (s *Store) failed(ctx context.Context, kind store.Kind, err error) error {
	switch {
	case s.closed.Load():
		return store.ErrClosed
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		err = errors.Join(ctx.Err(), err)
	}
	return fmt.Errorf("clickhouse: query of %s: %w", kind, err)
}

// ofNode selects records of flows to, from and through a node.
func ofNode(node string) string {
	n := quote(node)
	return fmt.Sprintf("src_host = %[1]s OR dst_host = %[1]s OR has(path, %[1]s)", n)
}

// besideNode selects losses before and after a node.
func besideNode(node string) string {
	return fmt.Sprintf("from_node = %[1]s OR to_node = %[1]s", quote(node))
}

// Flows returns slots of flows.
func (s *Store) Flows(ctx context.Context, q record.Query) (record.Page[record.FlowSlot], error) {
	var where conditions
	where.addFlow(&q)
	if q.Node != "" {
		where.add("%s", ofNode(q.Node))
	}
	return query(ctx, s, &flowTable, string(store.Flows), q, where)
}

// Losses returns losses of flows.
func (s *Store) Losses(ctx context.Context, q record.Query) (record.Page[record.Loss], error) {
	var where conditions
	where.addFlow(&q)
	if q.Node != "" {
		where.add("%s", besideNode(q.Node))
	}
	return query(ctx, s, &lossTable, string(store.Losses), q, where)
}

// Traces returns packets.
func (s *Store) Traces(ctx context.Context, q record.Query) (record.Page[record.Trace], error) {
	var where conditions
	where.addFlow(&q)
	if q.Node != "" {
		where.add("has(switches, %s)", quote(q.Node))
	}
	if id, err := strconv.ParseUint(q.Name, 10, 64); err == nil {
		where.add("id = %d", id)
	}
	if q.End != "" {
		where.add("end = %s", quote(q.End))
	}
	if q.Why != "" {
		where.add("why = %s", quote(q.Why))
	}
	if q.MinLatency > 0 {
		where.add("latency_ns >= %d", int64(q.MinLatency))
	}
	return query(ctx, s, &traceTable, string(store.Traces), q, where)
}

// Diagnoses returns verdicts about slow flows.
func (s *Store) Diagnoses(ctx context.Context, q record.Query) (record.Page[record.Diagnosis], error) {
	var where conditions
	where.addFlow(&q)
	if q.Node != "" {
		where.add("node = %s", quote(q.Node))
	}
	if q.Port != 0 {
		where.add("port = %d", q.Port)
	}
	if q.Name != "" {
		where.add("id = %s", quote(q.Name))
	}
	return query(ctx, s, &diagnosisTable, string(store.Diagnoses), q, where)
}

// incidentStates is the last state of every incident. Its seq is that of the first, so
// that an update does not move it within a walk.
func (s *Store) incidentStates(where conditions) string {
	where = append(where, s.visible(store.Incidents)...)
	return fmt.Sprintf(`(SELECT id, min(seq) AS first, argMax(time, seq) AS begin, argMax(updated, seq) AS updated_, argMax(ended, seq) AS ended_,
		argMax(open, seq) AS open_, argMax(cause, seq) AS cause_, argMax(severity, seq) AS severity_, argMax(location, seq) AS location_,
		argMax(summary, seq) AS summary_, argMax(body, seq) AS body_ FROM incidents WHERE %s GROUP BY id)`, where)
}

// Incidents returns the present states of incidents.
func (s *Store) Incidents(ctx context.Context, q record.Query) (page record.Page[record.Incident], err error) {
	var rows, where conditions
	if q.Name != "" {
		rows.add("id = %s", quote(q.Name))
	}
	first, last := store.TimeRange(q)
	if first > last {
		_, err := s.start(ctx, store.Incidents, q)
		return page, err
	}
	if first != math.MinInt64 {
		where.add("open = 1 OR ended >= %s", number(first))
	}
	if last != math.MaxInt64 {
		where.add("time <= %s", number(last))
	}
	if q.Node != "" {
		where.add("location = %s OR startsWith(location, %s)", quote(q.Node), quote(q.Node+":"))
	}
	from := fmt.Sprintf(`(SELECT id, first AS seq, begin AS time, updated_ AS updated, ended_ AS ended, open_ AS open, cause_ AS cause,
		severity_ AS severity, location_ AS location, summary_ AS summary, body_ AS body FROM %s)`, s.incidentStates(rows))
	return query(ctx, s, &incidentTable, from, q, where)
}

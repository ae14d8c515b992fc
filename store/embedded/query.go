package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/recent"
)

// Flows returns the flow records of slots.
func (s *Store) Flows(ctx context.Context, q record.Query) (record.Page[record.FlowSlot], error) {
	return queryPage(ctx, s, &flowTable, s.hot.Load().flows, q)
}

// Losses returns the losses of flows.
func (s *Store) Losses(ctx context.Context, q record.Query) (record.Page[record.Loss], error) {
	return queryPage(ctx, s, &lossTable, s.hot.Load().losses, q)
}

// Ports returns samples of ports or, with a Step, their averages.
func (s *Store) Ports(ctx context.Context, q record.Query) (record.Page[record.PortSample], error) {
	if q.Step > 0 {
		return querySeries(ctx, s, &portSeries, s.hot.Load().portSteps, q)
	}
	return queryPage(ctx, s, &portTable, s.hot.Load().ports, q)
}

// Traces returns packet traces.
func (s *Store) Traces(ctx context.Context, q record.Query) (record.Page[record.Trace], error) {
	return queryPage(ctx, s, &traceTable, s.hot.Load().traces, q)
}

// Counters returns periods of counters or, with a Step, their sums.
func (s *Store) Counters(ctx context.Context, q record.Query) (record.Page[record.Counter], error) {
	if q.Step > 0 {
		return querySeries(ctx, s, &counterSeries, s.hot.Load().counterSteps, q)
	}
	return queryPage(ctx, s, &counterTable, s.hot.Load().counters, q)
}

// Diagnoses returns verdicts.
func (s *Store) Diagnoses(ctx context.Context, q record.Query) (record.Page[record.Diagnosis], error) {
	return queryPage(ctx, s, &diagnosisTable, s.hot.Load().diagnoses, q)
}

// Incidents returns incidents that were active at some time of the range, ordered
// by their start.
func (s *Store) Incidents(ctx context.Context, q record.Query) (record.Page[record.Incident], error) {
	w := pageWalk[record.Incident]{Store: s, table: &incidentTable, asked: q, limit: s.pageLimit(q)}
	err := s.query(ctx, store.Incidents, q, func(ctx context.Context) error {
		before, err := w.startAt()
		if err != nil {
			return err
		}
		if all := s.ledger.now.Load(); all != nil {
			w.addFromMemory(s.ledger.newestFirst(*all, &q, before))
			return nil
		}
		return w.readRows(ctx, w.conditions(before))
	})
	if err != nil {
		return record.Page[record.Incident]{}, err
	}
	return w.page, nil
}

// queryPage answers a query with records. A walk over pages returns the records
// that existed at its first page, each once. The newest come from memory, the
// others from the table.
func queryPage[T any](ctx context.Context, s *Store, t *table[T], hot *recent.Set[T],
	q record.Query,
) (record.Page[T], error) {
	w := pageWalk[T]{Store: s, table: t, asked: q, limit: s.pageLimit(q)}
	err := s.query(ctx, t.kind, q, func(ctx context.Context) error { return w.collect(ctx, hot) })
	if err != nil {
		return record.Page[T]{}, err
	}
	return w.page, nil
}

// query is the common part of all queries: validation, time limit, error texts.
func (s *Store) query(ctx context.Context, kind store.Kind, q record.Query, do func(ctx context.Context) error) error {
	if err := store.CheckQuery(kind, q); err != nil {
		return err
	}
	leave, err := s.beginWork()
	if err != nil {
		return err
	}
	defer leave()
	if ctx.Err() != nil {
		return fmt.Errorf("query of %s: %w", kind, ctx.Err())
	}
	limited, cancel := context.WithTimeout(ctx, s.cfg.QueryTime)
	defer cancel()
	err = do(limited)
	switch {
	case err == nil || errors.Is(err, store.ErrQuery) || errors.Is(err, store.ErrBusy):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("query of %s: %w", kind, ctx.Err())
	case limited.Err() != nil:
		return fmt.Errorf("query of %s took longer than %v, narrow its time range: %w", kind, s.cfg.QueryTime, limited.Err())
	}
	return fmt.Errorf("query of %s in store %s: %w", kind, s.path, err)
}

// queryRows queries the tables when a reader is free.
func (s *Store) queryRows(ctx context.Context, query string, args []any, each func(*sql.Rows) error) error {
	select {
	case s.querySlots <- struct{}{}:
		defer func() { <-s.querySlots }()
	default:
		return fmt.Errorf("%w: %d queries are running or waiting", store.ErrBusy, cap(s.querySlots))
	}
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err == errEnough {
			return nil
		} else if err != nil {
			return err
		}
	}
	return rows.Err()
}

// errEnough stops reading rows.
var errEnough = errors.New("no more rows are needed")

func (s *Store) pageLimit(q record.Query) int {
	if q.Limit == 0 {
		return s.cfg.MaxPage
	}
	return min(q.Limit, s.cfg.MaxPage)
}

// conditions of a query. Numbers are in the SQL text, where DuckDB's planner sees
// them; text of the caller never is.
type conditions struct {
	all  []string
	args []any
}

func (c *conditions) and(sql string, args ...any) {
	c.all = append(c.all, sql)
	c.args = append(c.args, args...)
}

func (c *conditions) sql() string { return `(` + strings.Join(c.all, `) AND (`) + `)` }

// between keeps times from first to last.
func (c *conditions) between(first, last int64) {
	if first > last {
		c.and(`false`)
		return
	}
	c.and(fmt.Sprintf(`time >= make_timestamp_ns(%d)`, clamp(first)))
	c.and(fmt.Sprintf(`time <= make_timestamp_ns(%d)`, clamp(last)))
}

// clamp avoids the ends of int64, which are DuckDB's infinities. No record is
// there: store.CheckBatch.
func clamp(ns int64) int64 {
	const hour = int64(3600 * 1e9)
	return max(-1<<63+hour, min(ns, 1<<63-1-hour))
}

// filter turns a validated query into conditions.
func filter(kind store.Kind, q record.Query) *conditions {
	c := &conditions{}
	first, last := store.TimeRange(q)
	if kind == store.Incidents {
		// It was active in the range: it started before the end and did not end
		// before the start.
		c.between(min(clamp(-1<<63), last), last)
		if !q.From.IsZero() {
			c.and(fmt.Sprintf(`ended IS NULL OR ended >= make_timestamp_ns(%d)`, clamp(first)))
		}
		if first > last {
			c.and(`false`)
		}
	} else {
		c.between(first, last)
	}
	if q.Node != "" {
		switch kind {
		case store.Flows:
			c.and(`flow_id IN (SELECT id FROM flow_keys WHERE src_host = ? OR dst_host = ?) OR
				path_id IN (SELECT id FROM flow_paths WHERE list_contains(path, ?))`, q.Node, q.Node, q.Node)
		case store.Losses:
			c.and(`from_node = ? OR to_node = ?`, q.Node, q.Node)
		case store.Traces:
			c.and(`list_contains(list_transform(hops, lambda h: h.switch), ?)`, q.Node)
		case store.Incidents:
			c.and(`location = ? OR starts_with(location, ?)`, q.Node, q.Node+":")
		default:
			c.and(`node = ?`, q.Node)
		}
	}
	if q.Port != 0 {
		c.and(fmt.Sprintf(`port = %d`, q.Port))
	}
	if of := flowFilter(q); len(of.all) == 0 {
	} else if kind == store.Flows {
		c.and(`flow_id IN (SELECT id FROM flow_keys WHERE `+of.sql()+`)`, of.args...)
	} else {
		c.and(of.sql(), of.args...)
	}
	if q.End != "" {
		c.and(`"end" = ?`, q.End)
	}
	if q.Why != "" {
		c.and(`why = ?`, q.Why)
	}
	if q.MinLatency > 0 {
		c.and(fmt.Sprintf(`latency_ns >= %d`, q.MinLatency))
	}
	switch {
	case q.Name == "":
	case kind == store.Counters:
		c.and(`name = ?`, q.Name)
	case kind == store.Traces:
		c.and(`id = ?::UBIGINT`, q.Name)
	default:
		c.and(`id = ?`, q.Name)
	}
	return c
}

// flowFilter is the part about the flow of a record.
func flowFilter(q record.Query) *conditions {
	c := &conditions{}
	if !q.Flow.IsZero() {
		c.and(`flow = ?`, q.Flow.String())
	}
	c.endpoint(`src`, `sport`, q.Ends.Src, q.Ends.SrcPort)
	c.endpoint(`dst`, `dport`, q.Ends.Dst, q.Ends.DstPort)
	return c
}

// endpoint selects flows with an address and a port, either of which may be any.
// IPv4 addresses have another text form in an IPv6 flow.
func (c *conditions) endpoint(address, port string, a model.Addr, n uint16) {
	if a != (model.Addr{}) {
		c.and(address+` IN (?, ?)`, a.String(), `::ffff:`+a.String())
	}
	if n != 0 {
		c.and(fmt.Sprintf(`%s = %d`, port, n))
	}
}

package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// Flows returns what flows did in slots.
func (s *Store) Flows(ctx context.Context, q record.Query) (record.Page[record.FlowSlot], error) {
	return page(ctx, s, &flowTable, q)
}

// Losses returns what flows lost.
func (s *Store) Losses(ctx context.Context, q record.Query) (record.Page[record.Loss], error) {
	return page(ctx, s, &lossTable, q)
}

// Ports returns samples of ports or, with a Step, their means.
func (s *Store) Ports(ctx context.Context, q record.Query) (record.Page[record.PortSample], error) {
	if q.Step > 0 {
		return series(ctx, s, &portSeries, q)
	}
	return page(ctx, s, &portTable, q)
}

// Traces returns the ways of packets.
func (s *Store) Traces(ctx context.Context, q record.Query) (record.Page[record.Trace], error) {
	return page(ctx, s, &traceTable, q)
}

// Counters returns periods of counters or, with a Step, their sums.
func (s *Store) Counters(ctx context.Context, q record.Query) (record.Page[record.Counter], error) {
	if q.Step > 0 {
		return series(ctx, s, &counterSeries, q)
	}
	return page(ctx, s, &counterTable, q)
}

// Diagnoses returns verdicts.
func (s *Store) Diagnoses(ctx context.Context, q record.Query) (record.Page[record.Diagnosis], error) {
	return page(ctx, s, &diagnosisTable, q)
}

// Incidents returns incidents that went on at some time of the range, by their
// begin.
func (s *Store) Incidents(ctx context.Context, q record.Query) (record.Page[record.Incident], error) {
	return page(ctx, s, &incidentTable, q)
}

// page answers a query with records. A walk over pages sees the records that
// were there at its first page, each once.
func page[T any](ctx context.Context, s *Store, t *table[T], q record.Query) (record.Page[T], error) {
	var out record.Page[T]
	err := s.query(ctx, t.kind, q, func(ctx context.Context) error {
		where := filter(t.kind, q)
		from := store.Cursor{Bound: s.visible.Load()}
		if q.After != "" {
			var err error
			if from, err = store.Unseal(s.key, t.kind, q); err != nil {
				return err
			}
			where.and(fmt.Sprintf(`(time, seq) < (make_timestamp_ns(%d), %d)`, from.Time, from.Seq))
			where.and(fmt.Sprintf(`time <= make_timestamp_ns(%d)`, from.Time)) // so that DuckDB skips what is newer
		}
		where.and(fmt.Sprintf(`seq <= %d`, from.Bound))
		limit := s.limit(q)
		if found, err := s.narrow(ctx, t.kind, where, limit+1); err != nil || !found {
			return err
		}
		rows, err := s.db.QueryContext(ctx, fmt.Sprintf(`SELECT time, seq, %s FROM %s WHERE %s ORDER BY time DESC, seq DESC LIMIT %d`,
			t.columns, t.kind, where.sql(), limit+1), where.args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		var last place
		for bytes := 0; rows.Next(); {
			if len(out.Items) == limit || bytes >= int(s.cfg.MaxAnswer) {
				end := store.Cursor{Time: last.time.UnixNano(), Seq: last.seq, Bound: from.Bound}
				out.Next = end.Seal(s.key, t.kind, q)
				return nil
			}
			var r T
			if err := t.scan(rows, &r, &last); err != nil {
				return err
			}
			bytes += t.size(&r)
			out.Items = append(out.Items, r)
		}
		return rows.Err()
	})
	if err != nil {
		return record.Page[T]{}, err
	}
	return out, nil
}

// narrow finds the time of the n-th newest record and has the conditions leave
// out what is older. DuckDB finds it from the times alone in a few milliseconds,
// while it would unpack every column of a long table to sort by time and number
// (weft bench store). Records that leave between the two questions are the
// oldest, so none is lost in the middle; incidents do not leave in this order,
// and are few.
func (s *Store) narrow(ctx context.Context, kind store.Kind, where *conditions, n int) (found bool, err error) {
	if kind == store.Incidents {
		return true, nil
	}
	var oldest *int64
	query := fmt.Sprintf(`SELECT epoch_ns(min(time)) FROM (SELECT time FROM %s WHERE %s ORDER BY time DESC LIMIT %d)`, kind, where.sql(), n)
	if err := s.db.QueryRowContext(ctx, query, where.args...).Scan(&oldest); err != nil || oldest == nil {
		return false, err
	}
	where.and(fmt.Sprintf(`time >= make_timestamp_ns(%d)`, *oldest))
	return true, nil
}

// query does what all queries have in common: checks, time, words of errors.
func (s *Store) query(ctx context.Context, kind store.Kind, q record.Query, do func(ctx context.Context) error) error {
	if err := store.CheckQuery(kind, q); err != nil {
		return err
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	limited, cancel := context.WithTimeout(ctx, s.cfg.QueryTime)
	defer cancel()
	err = do(limited)
	switch {
	case err == nil || errors.Is(err, store.ErrQuery):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("query of %s: %w", kind, ctx.Err())
	case limited.Err() != nil:
		return fmt.Errorf("query of %s took longer than %v, narrow its time range: %w", kind, s.cfg.QueryTime, limited.Err())
	}
	return fmt.Errorf("query of %s in store %s: %w", kind, s.path, err)
}

func (s *Store) limit(q record.Query) int {
	if q.Limit == 0 {
		return s.cfg.MaxPage
	}
	return min(q.Limit, s.cfg.MaxPage)
}

// conditions of a query. Numbers stand in the text, where DuckDB's planner sees
// them; text of the caller never does.
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

// clamp keeps away from the ends of int64, which are DuckDB's infinities. No
// record lies there: store.CheckBatch.
func clamp(ns int64) int64 {
	const hour = int64(3600 * 1e9)
	return max(-1<<63+hour, min(ns, 1<<63-1-hour))
}

// filter turns a query that was checked into conditions.
func filter(kind store.Kind, q record.Query) *conditions {
	c := &conditions{}
	first, last := store.Range(q)
	if kind == store.Incidents {
		// It went on in the range: it began before the end and did not end before
		// the begin.
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
			c.and(`src_host = ? OR dst_host = ? OR list_contains(path, ?)`, q.Node, q.Node, q.Node)
		case store.Losses:
			c.and(`from_node = ? OR to_node = ?`, q.Node, q.Node)
		case store.Traces:
			c.and(`list_contains(list_transform(hops, lambda h: h.switch), ?)`, q.Node)
		case store.Incidents:
			c.and(`place = ? OR starts_with(place, ?)`, q.Node, q.Node+":")
		default:
			c.and(`node = ?`, q.Node)
		}
	}
	if q.Port != 0 {
		c.and(fmt.Sprintf(`port = %d`, q.Port))
	}
	if !q.Flow.IsZero() {
		c.and(`flow = ?`, q.Flow.String())
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

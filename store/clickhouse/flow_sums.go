package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// flowOrders compare flows; sql is the same order by the server, of sums and lost packets.
var flowOrders = map[record.FlowSort]struct {
	compare func(a, b *record.FlowSum) int
	sql     string
}{
	record.ByBytes:    {func(a, b *record.FlowSum) int { return cmp.Compare(a.Bytes, b.Bytes) }, "all_bytes"},
	record.ByPackets:  {func(a, b *record.FlowSum) int { return cmp.Compare(a.Packets, b.Packets) }, "all_packets"},
	record.ByDuration: {func(a, b *record.FlowSum) int { return cmp.Compare(a.Duration(), b.Duration()) }, "end - begin"},
	record.ByNewest:   {func(a, b *record.FlowSum) int { return a.Last.Compare(b.Last) }, "end"},
	record.ByLost:     {func(a, b *record.FlowSum) int { return cmp.Compare(a.Lost, b.Lost) }, "lost"},
	record.ByLostShare: {
		func(a, b *record.FlowSum) int { return cmp.Compare(a.LostShare(), b.LostShare()) },
		"if(all_packets = 0, 0., least(1., toFloat64(lost) / toFloat64(all_packets)))",
	},
	record.ByRate: {
		func(a, b *record.FlowSum) int { return cmp.Compare(a.Rate(), b.Rate()) },
		"if(end <= begin, 0., toFloat64(all_bytes) * 8e9 / toFloat64(end - begin))",
	},
}

// flowRange is the slots and losses that a question about flows reads.
type flowRange struct {
	*Store
	bound          int64
	flows, losses  conditions
	empty          bool
	query          record.Query
	lost           map[string]uint64 // packets by flow
	filter         *record.FlowFilter
	exact          bool // flows has only what matches the filter
	partial        bool
	oldest, newest time.Time
}

func (s *Store) flowRange(q record.Query, bound int64, filter *record.FlowFilter) *flowRange {
	f := &flowRange{Store: s, bound: bound, query: q, filter: filter}
	f.empty = !f.flows.addRange(q)
	var mayMatch string
	if mayMatch, f.exact = s.candidates(filter.Where); mayMatch != everything {
		f.flows.add("%s", mayMatch)
	}
	f.exact = f.exact && (filter.Where != nil || filter.Match == nil)
	f.losses.addRange(q)
	if q.Node != "" {
		f.flows.add("%s", ofNode(q.Node))
		f.losses.add("%s", besideNode(q.Node))
	}
	for _, c := range []*conditions{&f.flows, &f.losses} {
		c.add("seq <= %s", number(bound))
	}
	f.flows = append(f.flows, s.visible(store.Flows)...)
	f.losses = append(f.losses, s.visible(store.Losses)...)
	return f
}

// lostPackets selects the lost packets of each flow that lost some.
func (f *flowRange) lostPackets() string {
	return fmt.Sprintf(`SELECT flow, %s AS lost FROM losses WHERE %s GROUP BY flow`, saturated("packets"), f.losses)
}

// readLosses reads the losses of each flow.
func (f *flowRange) readLosses(ctx context.Context) error {
	f.lost = map[string]uint64{}
	rows, err := f.conn.Query(ctx, f.lostPackets())
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var flow string
		var n uint64
		if err := rows.Scan(&flow, &n); err != nil {
			return err
		}
		f.lost[flow] = n
	}
	return rows.Err()
}

// readCoverage reads whether slots of the range are partial, and what slots there are.
func (f *flowRange) readCoverage(ctx context.Context) error {
	var partial uint8
	inRange := conditions{"partial = 1", "seq <= " + number(f.bound)}
	inRange.addRange(f.query)
	inRange = append(inRange, f.visible(store.Flows)...)
	if !f.empty {
		if err := f.conn.QueryRow(ctx, fmt.Sprintf(`SELECT max(partial) FROM flows WHERE %s`, inRange)).Scan(&partial); err != nil {
			return err
		}
	}
	f.partial = partial != 0
	var n uint64
	var oldest, newest int64
	err := f.conn.QueryRow(ctx, fmt.Sprintf(`SELECT count(), min(time), max(time) FROM flows WHERE %s`, f.visible(store.Flows))).Scan(&n, &oldest, &newest)
	if n > 0 {
		f.oldest, f.newest = instant(oldest), instant(newest)
	}
	return err
}

// sumColumns are the sums of a flow, and sumNames their names.
const sumNames = `flow, src_host, dst_host, begin, end, slots, all_packets, all_bytes, all_exact, all_samples, last_path, switches, hops, paths`

var sumColumns = `flow, src_host, dst_host, min(time) AS begin, max(time + slot_ns) AS end, count() AS slots, ` +
	saturated("packets") + ` AS all_packets, ` + saturated("bytes") + ` AS all_bytes, min(exact) AS all_exact, ` + saturated("samples") + ` AS all_samples, argMax(path, time) AS last_path,
	groupUniqArrayArray(path) AS switches, max(length(path)) AS hops, uniqExact(arrayStringConcat(path, '\x00')) AS paths`

// sums reads flows; order is SQL, or empty.
func (f *flowRange) sums(ctx context.Context, order string, skip, limit int) (list []record.FlowSum, err error) {
	if f.empty {
		return nil, nil
	}
	sql := fmt.Sprintf(`SELECT %s FROM flows WHERE %s GROUP BY flow, src_host, dst_host`, sumColumns, f.flows)
	if strings.Contains(order, "lost") {
		sql = fmt.Sprintf(`SELECT %s FROM (%s) AS sums ANY LEFT JOIN (%s) AS lost_packets USING flow`, sumNames, sql, f.lostPackets())
	}
	if order != "" {
		// Of flows with equal sums the order must not change from page to page.
		sql += fmt.Sprintf(` ORDER BY %s DESC, flow, src_host, dst_host`, order)
	}
	rows, err := f.conn.Query(ctx, fmt.Sprintf(`%s LIMIT %d, %d`, sql, skip, limit))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r record.FlowSum
		var flow string
		var begin, end int64
		var exact uint8
		var hops, paths uint64
		if err := rows.Scan(&flow, &r.Src, &r.Dst, &begin, &end, &r.Slots, &r.Packets, &r.Bytes, &exact, &r.Samples, &r.Path, &r.Switches, &hops, &paths); err != nil {
			return nil, err
		}
		r.First, r.Last, r.Exact, r.Hops, r.Paths, r.Lost = instant(begin), instant(end), exact != 0, int(hops), int(paths), f.lost[flow]
		if err := parseFlow(&r.Flow, flow); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// matching reads all flows that match the filter.
func (f *flowRange) matching(ctx context.Context) ([]record.FlowSum, error) {
	list, err := f.sums(ctx, "", 0, f.cfg.MaxFlows+1)
	if err != nil {
		return nil, err
	}
	if len(list) > f.cfg.MaxFlows {
		return nil, fmt.Errorf("%w: more than %d flows; ask for a shorter range", store.ErrQuery, f.cfg.MaxFlows)
	}
	if !f.exact && f.filter.Match != nil {
		list = slices.DeleteFunc(list, func(r record.FlowSum) bool { return !f.filter.Match(&r) })
	}
	return list, nil
}

// totals are computed by the server, for all flows.
func (f *flowRange) totals(ctx context.Context) (t record.FlowTotals, err error) {
	t.FlowsKnown = true
	if f.empty {
		return t, nil
	}
	err = f.conn.QueryRow(ctx, fmt.Sprintf(`SELECT uniqExact(flow, src_host, dst_host), count(), %s, %s FROM flows WHERE %s`,
		saturated("packets"), saturated("bytes"), f.flows)).Scan(&t.Flows, &t.Slots, &t.Packets, &t.Bytes)
	if err != nil || len(f.lost) == 0 {
		return t, err
	}
	// A loss counts for every flow of its key.
	rows, err := f.conn.Query(ctx, fmt.Sprintf(`SELECT flow, uniqExact(src_host, dst_host) FROM flows WHERE %s AND flow %s (SELECT flow FROM losses WHERE %s) GROUP BY flow`,
		f.flows, f.in(), f.losses))
	if err != nil {
		return t, err
	}
	defer rows.Close()
	for rows.Next() {
		var flow string
		var n uint64
		if err := rows.Scan(&flow, &n); err != nil {
			return t, err
		}
		for range n {
			t.Lost = capped(t.Lost, f.lost[flow])
		}
	}
	return t, rows.Err()
}

func addTotals(t *record.FlowTotals, r *record.FlowSum) {
	t.Flows++
	t.Slots += r.Slots
	t.Packets, t.Bytes, t.Lost = capped(t.Packets, r.Packets), capped(t.Bytes, r.Bytes), capped(t.Lost, r.Lost)
}

func capped(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// FlowSums returns flows of a range in the order of a sum, and the totals of all that
// match. The server adds up the slots of each flow. It also orders them, if the filter is about keys and
// hosts of flows; other filters need all flows here.
func (s *Store) FlowSums(ctx context.Context, q record.FlowSumQuery) (a record.FlowSums, err error) {
	order, known := flowOrders[q.Sort]
	if !known {
		return a, fmt.Errorf("query of %s: %w: order %q is not supported", store.Flows, store.ErrQuery, q.Sort)
	}
	asked := record.Query{From: q.From, To: q.To, Node: q.Node, Limit: q.Limit, After: q.After}
	sealed := asked
	sealed.Name = fmt.Sprintf("sums %s %s", q.Sort, q.Filter.Text)
	c, err := s.startSums(ctx, asked, sealed)
	if err != nil {
		return a, err
	}
	f := s.flowRange(asked, c.Bound, &q.Filter)
	skip, limit := int(c.Seq), s.pageLimit(q.Limit)
	if err = f.readLosses(ctx); err == nil {
		if f.exact {
			if a.Items, err = f.sums(ctx, order.sql, skip, limit+1); err == nil {
				a.Totals, err = f.totals(ctx)
			}
		} else {
			a.Items, err = f.matching(ctx)
			a.Totals.FlowsKnown = true
			for i := range a.Items {
				addTotals(&a.Totals, &a.Items[i])
			}
			slices.SortFunc(a.Items, func(x, y record.FlowSum) int {
				return cmp.Or(order.compare(&y, &x), x.Flow.Compare(y.Flow), cmp.Compare(x.Src, y.Src), cmp.Compare(x.Dst, y.Dst))
			})
			a.Items = a.Items[min(skip, len(a.Items)):]
		}
	}
	if err == nil {
		err = f.readCoverage(ctx)
	}
	if err != nil {
		return record.FlowSums{}, s.failed(ctx, store.Flows, err)
	}
	if len(a.Items) > limit {
		a.Items = a.Items[:limit]
		a.Next = store.Cursor{Seq: int64(skip + limit), Bound: c.Bound}.Seal(s.key, store.Flows, sealed)
	}
	a.Partial, a.KeptFrom, a.KeptTo = f.partial, f.oldest, f.newest
	return a, nil
}

// startSums checks a query of sums and returns its cursor.
func (s *Store) startSums(ctx context.Context, asked, sealed record.Query) (c store.Cursor, err error) {
	first := asked
	first.After = ""
	if c, err = s.start(ctx, store.Flows, first); err != nil || asked.After == "" {
		return c, err
	}
	return store.Unseal(s.key, store.Flows, sealed)
}

package embedded

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// FlowSums returns flows of a range in the order of a sum, and the totals of all that
// match. Memory has the sums of the newest seconds; of a longer range every row is read. The
// order is that of the sums, however many flows there are.
func (s *Store) FlowSums(ctx context.Context, q record.FlowSumQuery) (a record.FlowSums, err error) {
	if _, known := flowOrders[q.Sort]; !known {
		return a, fmt.Errorf("query of %s: %w: order %q is not supported", store.Flows, store.ErrQuery, q.Sort)
	}
	// What the seal of a page covers.
	asked := record.Query{
		From: q.From, To: q.To, Node: q.Node, Limit: q.Limit, After: q.After,
	}
	sealed := asked
	sealed.Name = fmt.Sprintf("sums %s %s", q.Sort, q.Filter.Text)
	err = s.query(ctx, store.Flows, asked, func(ctx context.Context) error {
		committed, view := s.committedSeq.Load(), s.hot.Load().seconds.view() // in this order: the view has what is committed
		w := flowWalk{Store: s, query: asked, filter: &q.Filter, bound: max(committed, view.seq), merge: s.flowsNumberedTwice.Load(), byText: true}
		skip := 0
		if q.After != "" {
			c, err := store.Unseal(s.key, store.Flows, sealed)
			if err != nil {
				return err
			}
			w.bound, skip, w.byText = c.Bound, int(c.Seq), c.Name == orderByText
		}
		next := func(limit int) string {
			c := store.Cursor{Seq: int64(skip + limit), Bound: w.bound}
			if w.byText {
				c.Name = orderByText
			}
			return c.Seal(s.key, store.Flows, sealed)
		}
		limit := s.pageLimit(asked)
		if w.byText { // the order in memory
			t, err := w.newTally(ctx, view)
			if err != nil {
				return err
			}
			if t != nil {
				t.sum(q.Sort)
				page, more := t.page(skip, limit)
				a.Items, a.Totals, a.Partial = t.details(page), t.totals(), t.partial
				a.KeptFrom, a.KeptTo = s.flowBounds()
				if more {
					a.Next = next(limit)
				}
				return nil
			}
			w.byText = q.After != ""
		}
		ranks, totals, err := w.rank(ctx, q.Sort, skip, limit+1)
		if err != nil {
			return err
		}
		if len(ranks) > limit {
			ranks = ranks[:limit]
			a.Next = next(limit)
		}
		a.Totals = totals
		if a.Items, err = w.details(ctx, ranks); err != nil {
			return err
		}
		a.Partial, a.KeptFrom, a.KeptTo, err = w.coverage(ctx)
		return err
	})
	return a, err
}

// orderByText marks pages of a walk that began in memory: flows with equal sums are in
// the order of their texts, otherwise of their numbers.
const orderByText = "text"

// flowOrders are the expressions that flows are ordered by, of the columns of a flow.
var flowOrders = map[record.FlowSort]struct {
	sql   string
	paths bool // needs flow_paths
}{
	record.ByBytes: {`bytes`, false}, record.ByPackets: {`packets`, false}, record.ByLost: {`lost`, false},
	record.ByLostShare: {shareSQL, false}, record.ByRate: {rateSQL, true}, record.ByDuration: {flowNanos, true},
	record.ByNewest: {`end_ns`, true},
}

// flowWalk is one query of the sums of flows.
type flowWalk struct {
	*Store
	query  record.Query // range and node
	filter *record.FlowFilter
	bound  int64 // the highest sequence number that counts
	merge  bool  // flow_keys may have a flow twice
	byText bool  // flows with equal sums are in the order of their texts
}

// flowRank is a flow in the order asked for.
type flowRank struct {
	place, flow int64 // flow is the lowest number of the flow
	lost        uint64
}

// rank returns the flows from place skip on, and the totals.
func (w *flowWalk) rank(ctx context.Context, sort record.FlowSort, skip, limit int) ([]flowRank, record.FlowTotals, error) {
	// Flows with losses come first, are few, and are found by their losses: their sums
	// are enough if there are as many as asked for. Without a filter, the other totals
	// need no sums by flow.
	all := impliesLoss(w.filter.Where)
	if sort == record.ByLost && (all || w.filter.Where == nil && w.query.Node == "") {
		ranks, totals, err := w.rankOf(ctx, sort, skip, limit, true)
		if err != nil || all {
			return ranks, totals, err
		}
		if len(ranks) == limit && ranks[limit-1].lost > 0 {
			lost := totals.Lost
			totals, err = w.rowTotals(ctx)
			totals.Lost = lost
			return ranks, totals, err
		}
	}
	return w.rankOf(ctx, sort, skip, limit, false)
}

// rankOf is rank of all flows, or of those with losses.
func (w *flowWalk) rankOf(ctx context.Context, sort record.FlowSort, skip, limit int, lossy bool) (ranks []flowRank, totals record.FlowTotals, err error) {
	b := &flowSQL{s: w.Store, ctx: ctx, jobs: w.filter.Jobs}
	order := flowOrders[sort]
	b.usesPaths = order.paths
	with, err := w.matching(b, order.sql, lossy)
	if err != nil {
		return nil, totals, err
	}
	from, ties := `m`, `cid`
	if w.byText {
		from, ties = `(SELECT m.*, k.flow, k.src_host, k.dst_host FROM m JOIN flow_keys k ON k.id = m.cid)`, `flow, src_host, dst_host`
	}
	query := with + fmt.Sprintf(`
SELECT row_number() OVER (ORDER BY rank DESC, %[1]s), cid, %[2]s, 0::UBIGINT, 0::UBIGINT, 0::UBIGINT FROM (
	SELECT * FROM %[3]s ORDER BY rank DESC, %[1]s LIMIT %[4]d OFFSET %[5]d)
UNION ALL SELECT -1, count(*), %[6]s, %[7]s, %[8]s, %[9]s FROM m`,
		ties, uint64SQL(`lost`), from, limit, skip, sumOf(`lost`), sumOf(`slots`), sumOf(`packets`), sumOf(`bytes`))
	err = w.queryRows(ctx, query, b.args, func(rows *sql.Rows) error {
		var r flowRank
		var slots, packets, bytes uint64
		if err := rows.Scan(&r.place, &r.flow, &r.lost, &slots, &packets, &bytes); err != nil {
			return err
		}
		if r.place < 0 {
			totals = record.FlowTotals{Flows: uint64(r.flow), FlowsKnown: true, Slots: slots, Packets: packets, Bytes: bytes, Lost: r.lost}
		} else {
			ranks = append(ranks, r)
		}
		return nil
	})
	slices.SortFunc(ranks, func(a, b flowRank) int { return cmp.Compare(a.place, b.place) })
	return ranks, totals, err
}

// sumOf is the sum of a column, 0 without rows.
func sumOf(column string) string { return uint64SQL(`coalesce(sum(` + column + `), 0)`) }

// matching is the statement's beginning: m has the matching flows, with their lowest
// number cid, the value of rank, and their sums.
//
// Rows are added up by number first; only then by flow, if a flow may have several.
func (w *flowWalk) matching(b *flowSQL, rank string, lossy bool) (string, error) {
	var early, late []string
	for _, c := range conjuncts(w.filter.Where) {
		part, err := b.condition(c)
		if err != nil {
			return "", err
		}
		if onlyKeys(c) {
			early = append(early, `(`+part+`)`)
		} else {
			late = append(late, `(`+part+`)`)
		}
	}
	losses := w.lossRows(b)
	if lossy {
		early = append(early, `flow IN (SELECT flow FROM losses WHERE `+losses+`)`)
	}
	rows := w.flowRows(b)
	if len(early) > 0 {
		rows += ` AND flow_id IN (SELECT id FROM flow_keys WHERE ` + strings.Join(early, ` AND `) + `)`
	}
	columns := `sum(packets) AS packets, sum(bytes) AS bytes, count(*) AS slots`
	merged := `sum(packets) AS packets, sum(bytes) AS bytes, sum(slots) AS slots`
	from := `flow_rows`
	if b.usesPaths {
		columns += `, epoch_ns(min(time))::HUGEINT AS first_ns, max(epoch_ns(time)::HUGEINT + slot_ns) AS end_ns,
			bool_and(exact) AS exact, max(hops) AS hops, list(DISTINCT shape) AS shapes`
		merged += `, min(first_ns) AS first_ns, max(end_ns) AS end_ns, bool_and(exact) AS exact, max(hops) AS hops, flatten(list(shapes)) AS shapes`
		paths := `SELECT id, slot_ns, exact, len(path) AS hops, min(id) OVER (PARTITION BY path) AS shape`
		for i, test := range b.pathTests {
			paths += fmt.Sprintf(`, %s AS test%d`, test, i)
			columns += fmt.Sprintf(`, bool_or(test%d) AS test%d`, i, i)
			merged += fmt.Sprintf(`, bool_or(test%d) AS test%d`, i, i)
		}
		from = `flow_rows JOIN (` + paths + ` FROM flow_paths) p ON p.id = path_id`
	}
	with := `WITH r AS (SELECT flow_id, ` + columns + ` FROM ` + from + ` WHERE ` + rows + ` GROUP BY flow_id)`
	flows := `(SELECT flow_id AS cid, * EXCLUDE (flow_id) FROM r)`
	lossFlows := `SELECT id AS cid, lost FROM x JOIN flow_keys USING (flow)`
	if w.merge {
		ids := canonicalIDs
		if lossy {
			ids += ` WHERE flow IN (SELECT flow FROM losses WHERE ` + losses + `)`
		}
		with += `, c AS MATERIALIZED (` + ids + `)`
		flows = `(SELECT cid, ` + merged + ` FROM r JOIN c ON c.id = flow_id GROUP BY cid)`
		lossFlows = `SELECT DISTINCT cid, lost FROM x JOIN flow_keys k USING (flow) JOIN c ON c.id = k.id`
	}
	with += `, x AS (SELECT flow, sum(packets) AS lost FROM losses WHERE ` + losses + ` GROUP BY flow), l AS (` + lossFlows + `)`
	source := `SELECT f.*, coalesce(l.lost, 0) AS lost`
	tables := flows + ` f LEFT JOIN l USING (cid)`
	if len(late) > 0 && b.usesKeys {
		source += `, src, dst, sport, dport, proto, src_host, dst_host`
		tables += ` JOIN flow_keys k ON k.id = f.cid`
	}
	where := ``
	if len(late) > 0 {
		where = ` WHERE ` + strings.Join(late, ` AND `)
	}
	return with + `, m AS MATERIALIZED (SELECT cid, ` + rank + ` AS rank, packets, bytes, slots, lost FROM (` +
		source + ` FROM ` + tables + `)` + where + `)`, nil
}

// canonicalIDs is the lowest number of each flow with the same hosts. To compare 128
// bits of hashes costs a third of comparing texts, and they do not collide.
const canonicalIDs = `SELECT id, min(id) OVER (PARTITION BY hash(flow, src_host, dst_host), hash(dst_host, src_host, flow)) AS cid FROM flow_keys`

// flowRows is the condition of the rows of the range.
func (w *flowWalk) flowRows(b *flowSQL) string {
	text := w.timeRange()
	if w.query.Node != "" {
		node := b.arg(w.query.Node)
		text += fmt.Sprintf(` AND (flow_id IN (SELECT id FROM flow_keys WHERE src_host = %s OR dst_host = %s) OR
			path_id IN (SELECT id FROM flow_paths WHERE list_contains(path, %s)))`, node, node, node)
	}
	return text
}

// lossRows is the condition of the losses of the range.
func (w *flowWalk) lossRows(b *flowSQL) string {
	text := w.timeRange()
	if w.query.Node != "" {
		node := b.arg(w.query.Node)
		text += fmt.Sprintf(` AND (from_node = %s OR to_node = %s)`, node, node)
	}
	return text
}

func (w *flowWalk) timeRange() string {
	c := &conditions{}
	c.between(store.TimeRange(w.query))
	c.and(fmt.Sprintf(`seq <= %d`, w.bound))
	return c.sql()
}

// rowTotals adds up the rows of the range. To count the flows would cost as much as
// their sums.
func (w *flowWalk) rowTotals(ctx context.Context) (t record.FlowTotals, err error) {
	b := &flowSQL{s: w.Store, ctx: ctx}
	query := fmt.Sprintf(`SELECT count(*), %s, %s FROM flow_rows WHERE %s`, sumOf(`packets`), sumOf(`bytes`), w.flowRows(b))
	err = w.queryRows(ctx, query, b.args, func(rows *sql.Rows) error { return rows.Scan(&t.Slots, &t.Packets, &t.Bytes) })
	return t, err
}

// coverage returns whether slots of the range had more flows than are stored, and the
// times of the first and the last row of the table.
func (w *flowWalk) coverage(ctx context.Context) (partial bool, from, to time.Time, err error) {
	var oldest, newest *int64
	query := `SELECT epoch_ns(min(time)), epoch_ns(max(time)),
		EXISTS (SELECT 1 FROM flow_rows WHERE ` + w.timeRange() + ` AND path_id IN (SELECT id FROM flow_paths WHERE partial)) FROM flow_rows`
	err = w.queryRows(ctx, query, nil, func(rows *sql.Rows) error { return rows.Scan(&oldest, &newest, &partial) })
	if err != nil || oldest == nil {
		return false, from, to, err
	}
	return partial, time.Unix(0, *oldest).UTC(), time.Unix(0, *newest).UTC(), nil
}

// numberList are numbers for an IN.
func numberList(ranks []flowRank) string {
	texts := make([]string, len(ranks))
	for i := range ranks {
		texts[i] = strconv.FormatInt(ranks[i].flow, 10)
	}
	return strings.Join(texts, `, `)
}

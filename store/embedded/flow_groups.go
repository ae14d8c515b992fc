package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// maxFlowSteps limits the points of a series of groups.
const maxFlowSteps = 1000

// FlowGroups returns the sums of groups of flows over a range, the largest first.
func (s *Store) FlowGroups(ctx context.Context, q record.FlowGroupQuery) (a record.FlowGroups, err error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("query of %s: %w: %s", store.Flows, store.ErrQuery, fmt.Sprintf(format, args...))
	}
	steps := 0
	if q.Step > 0 {
		if span := q.To.Sub(q.From); q.From.IsZero() || q.To.IsZero() || (span+q.Step-1)/q.Step > maxFlowSteps {
			return a, bad("step %v from %v to %v, want at most %d", q.Step, q.From, q.To, maxFlowSteps)
		}
		steps = int((q.To.Sub(q.From) + q.Step - 1) / q.Step)
	}
	order, known := map[record.FlowSort]string{record.ByBytes: `bytes`, record.ByPackets: `packets`, record.ByLost: `lost`}[q.Sort]
	if !known {
		return a, bad("order %q of groups is not supported", q.Sort)
	}
	asked := record.Query{From: q.From, To: q.To, Node: q.Node, Limit: q.Limit}
	err = s.query(ctx, store.Flows, asked, func(ctx context.Context) error {
		g := groupWalk{
			flowWalk: flowWalk{Store: s, query: asked, filter: &q.Filter, bound: s.committedSeq.Load(), merge: s.flowsNumberedTwice.Load()},
			asked:    &q, steps: steps,
		}
		if err := g.sums(ctx, order, s.pageLimit(asked), &a); err != nil {
			return err
		}
		if steps > 0 {
			if err := g.series(ctx, &a); err != nil {
				return err
			}
		}
		a.Partial, a.KeptFrom, a.KeptTo, err = g.coverage(ctx)
		return err
	})
	return a, err
}

// groupWalk is one query of groups.
type groupWalk struct {
	flowWalk
	asked *record.FlowGroupQuery
	steps int
}

// classSQL is what a flow carries, by its protocol. DSCP is not in flow records.
const classSQL = `CASE WHEN proto = 17 AND dport = 4791 THEN 'RoCEv2' WHEN proto = 6 THEN 'tcp' WHEN proto = 17 THEN 'udp' ELSE 'other' END`

// byRow reports whether a flow may be in several groups, by its paths.
func (g *groupWalk) byRow() bool {
	return g.asked.GroupBy == record.GroupByLink || g.asked.GroupBy == record.GroupByPath
}

// name is the expression of a group's name, of the columns of flow_keys, and of
// flow_paths if byRow.
func (g *groupWalk) name(b *flowSQL) (string, error) {
	name := ``
	switch g.asked.GroupBy {
	case record.GroupByHost:
		name = `src_host`
	case record.GroupByDstHost:
		name = `dst_host`
	case record.GroupByClass:
		name = classSQL
	case record.GroupByPath:
		name = `array_to_string(path, ' > ')`
	case record.GroupByLink:
		name = `unnest(links)`
	case record.GroupByJob:
		job, err := b.jobOf()
		if err != nil {
			return "", err
		}
		name = `coalesce(` + job + `, '')`
	default:
		return "", fmt.Errorf("%w: groups by %q are not supported", store.ErrQuery, g.asked.GroupBy)
	}
	if g.asked.Merge == nil {
		return name, nil
	}
	names, merged := make([]string, 0, len(g.asked.Merge)), make([]string, 0, len(g.asked.Merge))
	for from, to := range g.asked.Merge {
		names, merged = append(names, from), append(merged, to)
	}
	return fmt.Sprintf(`coalesce(map(%s::VARCHAR[], %s::VARCHAR[])[%s], '')`, b.arg(names), b.arg(merged), name), nil
}

// linksSQL are the links of the paths of a table with path_id and dst_host: once for
// each, as flows are many and paths few.
const linksSQL = `SELECT path_id, dst_host, list_distinct(list_transform(range(1, len(path)), lambda i: path[i] || '>' || path[i + 1]) ||
	CASE WHEN dst_host <> '' AND len(path) > 0 THEN [path[-1] || '>' || dst_host] ELSE [] END) AS links
	FROM (SELECT DISTINCT path_id, dst_host FROM %s) JOIN flow_paths p ON p.id = path_id`

// pathsOf joins what the names of groups by row are made of.
func (g *groupWalk) pathsOf(table string) string {
	if g.asked.GroupBy == record.GroupByLink {
		return ` JOIN (` + fmt.Sprintf(linksSQL, table) + `) USING (path_id, dst_host)`
	}
	return ` JOIN flow_paths p ON p.id = path_id`
}

// cidOf joins the lowest number of a flow to a table with flow_id.
func (g *groupWalk) cidOf() (column, join string) {
	if g.merge {
		return `c.cid`, ` JOIN c ON c.id = flow_id`
	}
	return `flow_id`, ``
}

// sums adds up the groups, and all flows.
func (g *groupWalk) sums(ctx context.Context, order string, limit int, a *record.FlowGroups) error {
	b := &flowSQL{s: g.Store, ctx: ctx, jobs: g.filter.Jobs}
	with, err := g.matching(b, `0`, false)
	if err != nil {
		return err
	}
	name, err := g.name(b)
	if err != nil {
		return err
	}
	if g.byRow() {
		with += g.rowGroups(b, name)
	} else {
		with += `, groups AS (SELECT ` + name + ` AS name, count(*) AS flows, sum(slots) AS slots, sum(packets) AS packets,
			sum(bytes) AS bytes, sum(lost) AS lost FROM m JOIN flow_keys k ON k.id = m.cid GROUP BY ALL)`
	}
	query := with + fmt.Sprintf(`
SELECT row_number() OVER (ORDER BY %s DESC, name), * FROM (
	SELECT name, flows, %s, %s, %s, %s FROM groups ORDER BY %s DESC, name LIMIT %d) top (name, flows, slots, packets, bytes, lost)
UNION ALL SELECT -1, '', count(*), %s, %s, %s, %s FROM m
UNION ALL SELECT -2, '', count(*), 0::UBIGINT, 0::UBIGINT, 0::UBIGINT, 0::UBIGINT FROM groups`,
		order, uint64SQL(`slots`), uint64SQL(`packets`), uint64SQL(`bytes`), uint64SQL(`lost`), uint64SQL(order), limit,
		sumOf(`slots`), sumOf(`packets`), sumOf(`bytes`), sumOf(`lost`))
	places := map[string]int64{}
	all := 0
	err = g.queryRows(ctx, query, b.args, func(rows *sql.Rows) error {
		var place int64
		var x record.FlowGroup
		if err := rows.Scan(&place, &x.Name, &x.Flows, &x.Slots, &x.Packets, &x.Bytes, &x.Lost); err != nil {
			return err
		}
		switch place {
		case -1:
			a.Totals = record.FlowTotals{Flows: x.Flows, FlowsKnown: true, Slots: x.Slots, Packets: x.Packets, Bytes: x.Bytes, Lost: x.Lost}
		case -2:
			all = int(x.Flows)
		default:
			places[x.Name] = place
			a.Groups = append(a.Groups, x)
		}
		return nil
	})
	slices.SortFunc(a.Groups, func(x, y record.FlowGroup) int { return int(places[x.Name] - places[y.Name]) })
	a.Omitted = all - len(a.Groups)
	return err
}

// rowGroups are the groups by path or link: a flow is in each that its rows have.
func (g *groupWalk) rowGroups(b *flowSQL, name string) string {
	cid, join := g.cidOf()
	with := `, rp AS (SELECT ` + cid + ` AS cid, path_id, count(*) AS slots, sum(packets) AS packets, sum(bytes) AS bytes
		FROM flow_rows` + join + ` WHERE ` + g.flowRows(b) + ` AND ` + cid + ` IN (SELECT cid FROM m) GROUP BY ALL),
	rk AS MATERIALIZED (SELECT rp.*, dst_host FROM rp JOIN flow_keys k ON k.id = rp.cid),
	named AS (SELECT cid, slots, packets, bytes, ` + name + ` AS name FROM rk` + g.pathsOf(`rk`) + `)`
	losses := g.lossRows(b)
	lost := `SELECT from_node || '>' || to_node AS name, sum(packets * n) AS lost
		FROM losses JOIN (SELECT flow, count(*) AS n FROM m JOIN flow_keys k ON k.id = m.cid GROUP BY flow) USING (flow)
		WHERE ` + losses + ` GROUP BY name`
	if g.asked.GroupBy == record.GroupByPath {
		// The path that the flow had in the newest slot that began no later.
		lost = `SELECT array_to_string(path, ' > ') AS name, sum(lx.packets) AS lost
			FROM (SELECT time, packets, cid FROM losses JOIN (SELECT cid, flow FROM m JOIN flow_keys k ON k.id = m.cid) USING (flow) WHERE ` + losses + `) lx
			ASOF JOIN (SELECT time, path_id, ` + cid + ` AS cid FROM flow_rows` + join + ` WHERE ` + g.flowRows(b) + `
				AND ` + cid + ` IN (SELECT cid FROM m WHERE lost > 0)) rx ON lx.cid = rx.cid AND lx.time >= rx.time
			JOIN flow_paths p ON p.id = rx.path_id GROUP BY name`
	}
	return with + `, groups AS (SELECT name, flows, slots, packets, bytes, coalesce(lost, 0) AS lost FROM (
		SELECT name, count(DISTINCT cid) AS flows, sum(slots) AS slots, sum(packets) AS packets, sum(bytes) AS bytes FROM named GROUP BY name)
		LEFT JOIN (` + lost + `) USING (name))`
}

// series adds the bytes of the groups, and of all flows, by step.
func (g *groupWalk) series(ctx context.Context, a *record.FlowGroups) error {
	b := &flowSQL{s: g.Store, ctx: ctx, jobs: g.filter.Jobs}
	with, err := g.matching(b, `0`, false)
	if err != nil {
		return err
	}
	name, err := g.name(b)
	if err != nil {
		return err
	}
	at := map[string]int{}
	names := []string{}
	for i := range a.Groups {
		a.Groups[i].Series = make([]uint64, g.steps)
		at[a.Groups[i].Name] = i
		names = append(names, a.Groups[i].Name)
	}
	a.Series = make([]uint64, g.steps)
	cid, join := g.cidOf()
	paths, from := ``, `t JOIN flow_keys k ON k.id = t.cid`
	tk := ``
	if g.byRow() {
		paths, from = `, path_id`, `tk`+g.pathsOf(`tk`)
		tk = `, tk AS MATERIALIZED (SELECT path_id, dst_host, step, sum(bytes) AS bytes FROM t JOIN flow_keys k ON k.id = t.cid GROUP BY ALL)`
	}
	query := with + fmt.Sprintf(`, t AS MATERIALIZED (SELECT %s AS cid%s, (epoch_ns(time) - %d) // %d AS step, sum(bytes) AS bytes
	FROM flow_rows%s WHERE %s AND %s IN (SELECT cid FROM m) GROUP BY ALL)%s
SELECT false, name, step, %s FROM (SELECT %s AS name, step, bytes FROM %s)
	WHERE name IN (SELECT unnest(%s::VARCHAR[])) GROUP BY name, step
UNION ALL SELECT true, '', step, %s FROM t GROUP BY step`,
		cid, paths, store.Nanos(g.asked.From), int64(g.asked.Step), join, g.flowRows(b), cid, tk, sumOf(`bytes`), name, from, b.arg(names), sumOf(`bytes`))
	return g.queryRows(ctx, query, b.args, func(rows *sql.Rows) error {
		var total bool
		var name string
		var step int64
		var bytes uint64
		if err := rows.Scan(&total, &name, &step, &bytes); err != nil || step < 0 || step >= int64(g.steps) {
			return err
		}
		if total {
			a.Series[step] = bytes
		} else {
			a.Groups[at[name]].Series[step] = bytes
		}
		return nil
	})
}

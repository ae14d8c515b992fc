package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store/recent"
)

// pathSum is the sums of a flow's rows with one path.
type pathSum struct {
	flow, path            int64
	slots, packets, bytes uint64
	samples               uint64
	first                 time.Time
	last                  recent.Position // its newest row
	lastPackets           uint64
	switches              []string
	exact                 bool
	slot                  time.Duration
}

// details returns all about flows, in their order.
func (w *flowWalk) details(ctx context.Context, ranks []flowRank) ([]record.FlowSum, error) {
	if len(ranks) == 0 {
		return nil, nil
	}
	b := &flowSQL{s: w.Store, ctx: ctx}
	ids := `SELECT id, id AS cid FROM flow_keys WHERE id IN (` + numberList(ranks) + `)`
	if w.merge {
		ids = `SELECT k.id, t.cid FROM flow_keys k JOIN (SELECT id AS cid, flow, src_host, dst_host FROM flow_keys
			WHERE id IN (` + numberList(ranks) + `)) t USING (flow, src_host, dst_host)`
	}
	query := fmt.Sprintf(`WITH ids AS MATERIALIZED (%s)
SELECT cid, path_id, %s FROM flow_rows JOIN ids ON ids.id = flow_id WHERE %s AND flow_id IN (SELECT id FROM ids) GROUP BY cid, path_id`,
		ids, pathSumColumns, w.flowRows(b))
	list, of, err := w.readPathSums(ctx, query, b.args)
	if err != nil {
		return nil, err
	}
	byFlow := map[int64][]pathSum{}
	for _, p := range list {
		byFlow[p.flow] = append(byFlow[p.flow], p)
	}
	out := make([]record.FlowSum, 0, len(ranks))
	for _, r := range ranks {
		if paths := byFlow[r.flow]; len(paths) > 0 {
			out = append(out, newFlowSum(of.flows[r.flow], paths, r.lost))
		}
	}
	return out, nil
}

// pathSumColumns are the columns of a pathSum after flow and path.
var pathSumColumns = `count(*), ` + sumOf(`packets`) + `, ` + sumOf(`bytes`) + `, min(time), max(time), max_by(seq, time), max_by(packets, time), ` + sumOf(`samples`)

// readPathSums reads sums, and the texts of their flows and paths.
func (w *flowWalk) readPathSums(ctx context.Context, query string, args []any) (list []pathSum, of *flowTexts, err error) {
	var texts []numberedRow
	err = w.queryRows(ctx, query, args, func(rows *sql.Rows) error {
		var p pathSum
		var last time.Time
		if err := rows.Scan(&p.flow, &p.path, &p.slots, &p.packets, &p.bytes, &p.first, &last, &p.last.Seq, &p.lastPackets, &p.samples); err != nil {
			return err
		}
		p.last.Time = last.UnixNano()
		list = append(list, p)
		texts = append(texts, numberedRow{flow: p.flow, path: p.path})
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if of, err = w.textsOf(ctx, texts); err != nil {
		return nil, nil, err
	}
	known := list[:0]
	for _, p := range list {
		if text := of.paths[p.path]; text != nil && of.flows[p.flow] != nil { // otherwise removed by retention meanwhile
			p.switches, p.exact, p.slot = text.switches, text.exact, time.Duration(text.slot)
			known = append(known, p)
		}
	}
	return known, of, nil
}

// newFlowSum adds up the paths of a flow.
func newFlowSum(f *numberedFlow, paths []pathSum, lost uint64) record.FlowSum {
	slices.SortFunc(paths, func(a, b pathSum) int { return b.last.Compare(a.last) })
	s := record.FlowSum{Flow: f.key, Src: f.src, Dst: f.dst, Lost: lost, Exact: true, First: paths[0].first, Path: paths[0].switches}
	// The last slot of a flow may have a few late packets, seen by switches whose
	// clocks are behind: then the slot before it has the path.
	if len(paths) > 1 && paths[0].slots == 1 && len(paths[1].switches) > len(s.Path) && paths[1].lastPackets > 4*paths[0].lastPackets {
		s.Path = paths[1].switches
	}
	var shapes [][]string
	for i := range paths {
		p := &paths[i]
		s.Slots += p.slots
		s.Packets, s.Bytes = addCapped(s.Packets, p.packets), addCapped(s.Bytes, p.bytes)
		s.Exact = s.Exact && p.exact
		s.Samples = addCapped(s.Samples, p.samples)
		if p.first.Before(s.First) {
			s.First = p.first
		}
		if end := time.Unix(0, p.last.Time).UTC().Add(p.slot); i == 0 || end.After(s.Last) {
			s.Last = end
		}
		s.Hops = max(s.Hops, len(p.switches))
		if !slices.ContainsFunc(shapes, func(o []string) bool { return slices.Equal(o, p.switches) }) {
			shapes = append(shapes, p.switches)
		}
		for _, name := range p.switches {
			if !slices.Contains(s.Switches, name) {
				s.Switches = append(s.Switches, name)
			}
		}
	}
	s.Paths = len(shapes)
	return s
}

// addCapped adds two counts; above the largest number the sum is that.
func addCapped(a, b uint64) uint64 {
	if a+b < a {
		return 1<<64 - 1
	}
	return a + b
}

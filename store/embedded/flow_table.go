package embedded

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/recent"
)

// flowTable has the columns of the table that schemas up to 4 have, for salvage.
var flowTable = table[record.FlowSlot]{
	kind:    store.Flows,
	columns: `slot_ns, flow, src_host, dst_host, packets, bytes, exact, path, path_packets`,
	read:    readFlowPage,
	scan: func(rows *sql.Rows, r *record.FlowSlot, at *recordPosition) error {
		var switches, packets []any
		err := rows.Scan(&at.time, &at.seq, &r.Slot, flowText{&r.Flow}, &r.Src, &r.Dst, &r.Packets, &r.Bytes, &r.Exact,
			&duckList{&switches}, &duckList{&packets})
		if err != nil {
			return err
		}
		r.Time = at.time
		for i := range switches {
			r.Path = append(r.Path, record.FlowHop{Switch: switches[i].(string), Packets: packets[i].(uint64)})
		}
		return nil
	},
	size: func(r *record.FlowSlot) int { return 200 + 40*len(r.Path) },
}

// readFlowPage reads the rows of a page, then the texts that are not in memory: a
// join would read those of all flows, and costs DuckDB twice as much.
func readFlowPage(ctx context.Context, w *pageWalk[record.FlowSlot], where *conditions) error {
	var list []numberedRow
	query := fmt.Sprintf(`SELECT %s FROM flow_rows WHERE %s`, numberedColumns, where.sql()) + w.newest()
	err := w.queryRows(ctx, query, where.args, func(rows *sql.Rows) error {
		var n numberedRow
		if err := n.scan(rows); err != nil {
			return err
		}
		list = append(list, n)
		return nil
	})
	if err != nil {
		return err
	}
	texts, err := w.textsOf(ctx, list)
	if err != nil {
		return err
	}
	for i := range list {
		n := &list[i]
		if !texts.has(n) {
			continue // removed by retention since the first query, with its texts
		}
		if w.full() {
			return nil
		}
		r, err := texts.record(n)
		if err != nil {
			return err
		}
		w.addItem(&r, recent.Position{Time: n.at.time.UnixNano(), Seq: n.at.seq})
	}
	return nil
}

// pruneFlowIDs removes the flows and paths that no row has any more. Their numbers
// rise with their arrival, and so do those of the rows that are left when the oldest
// are removed.
func (s *Store) pruneFlowIDs(ctx context.Context) error {
	s.write.Lock()
	defer s.write.Unlock()
	flow, path := s.flowIDs.nextFlow, s.flowIDs.nextPath
	err := inTransaction(ctx, s.writer, func() error {
		query := fmt.Sprintf(`SELECT coalesce(min(flow_id), %d), coalesce(min(path_id), %d) FROM flow_rows`, flow, path)
		if err := s.writer.QueryRowContext(ctx, query).Scan(&flow, &path); err != nil {
			return err
		}
		_, err := s.writer.ExecContext(ctx, fmt.Sprintf(`DELETE FROM flow_keys WHERE id < %d; DELETE FROM flow_paths WHERE id < %d`, flow, path))
		return err
	})
	if err == nil {
		s.flowIDs.forgetBefore(flow, path)
	}
	return err
}

// loadFlowIDs continues the numbers of a file, and lets DuckDB read new rows.
func (s *Store) loadFlowIDs(ctx context.Context) error {
	var flow, path int64
	const query = `SELECT (SELECT coalesce(max(id), 0) FROM flow_keys), (SELECT coalesce(max(id), 0) FROM flow_paths)`
	if err := s.writer.QueryRowContext(ctx, query).Scan(&flow, &path); err != nil {
		return err
	}
	s.flowIDs.most, s.flowIDs.twice = s.cfg.NumberedFlows, false
	s.flowIDs.reset(flow, path)
	s.flowsNumberedTwice.Store(s.flowIDs.twice)
	s.flowTexts.reset()
	return s.flowBatch.register(s)
}

package bench

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store/embedded"
)

// DefaultFlowRows is the number of rows of TopFlows in Suites. Ten times as many take
// minutes to store.
const DefaultFlowRows = 1_000_000

const (
	topFlows     = 5
	topSlots     = 1000 // spread over an hour
	topQueries   = 20
	flowsPerSlot = 20 // times as many flows as a slot has rows
)

// TopFlows lists the flows of an hour that lost most, as weft flows --last 1h --sort
// lost --top 5 does, from a store of that many rows.
func TopFlows(rows int) Suite {
	return Suite{
		Name:  "topflows",
		About: "list the flows of an hour that lost most",
		Input: fmt.Sprintf("%d flow rows of %d slots in an hour, and a loss for each hundredth; both sides sum up all of them, and are compared with what was stored", rows, topSlots),
		run:   func(ctx context.Context) ([]Result, error) { return compareTopFlows(ctx, rows) },
	}
}

// lossRecords are the flows of an hour, and what each lost.
type lossRecords struct {
	perSlot int
	lost    map[model.FlowKey]uint64
}

func (l *lossRecords) key(i int) model.FlowKey {
	return model.FlowKey{Src: model.Addr4(0x0a000000 + uint32(i)), Dst: model.Addr4(0x0a800000 + uint32(7*i)), SrcPort: uint16(i), DstPort: 4791, Proto: model.UDP}
}

// fill makes the records of slot n.
func (l *lossRecords) fill(b *record.Batch, n int) {
	b.Reset()
	at := storeBegin.Add(time.Duration(n) * time.Hour / topSlots)
	for i := range l.perSlot {
		f := (n*l.perSlot/50 + i*13) % (flowsPerSlot * l.perSlot)
		k, packets := l.key(f), uint64(i%97+n%13+1)
		b.Flows = append(b.Flows, record.FlowSlot{
			Time: at, Slot: 10 * time.Millisecond, Flow: k, Src: "h" + strconv.Itoa(f%1024), Dst: "h" + strconv.Itoa(7*f%1024), Packets: packets, Bytes: 1000 * packets, Exact: true,
			Path: []record.FlowHop{{Switch: "e" + strconv.Itoa(f%32), Packets: packets}, {Switch: "a" + strconv.Itoa(f%16), Packets: packets}, {Switch: "e" + strconv.Itoa(7*f%32), Packets: packets}},
		})
		if i%100 == 0 {
			b.Losses = append(b.Losses, record.Loss{Time: at, Flow: k, From: "e1", To: "a1", Packets: packets, Sent: packets})
			l.lost[k] += packets
		}
	}
}

// compareTopFlows stores the rows on both sides and queries them in turns.
func compareTopFlows(ctx context.Context, rows int) (_ []Result, err error) {
	dir, err := os.MkdirTemp("", "weft-bench-topflows")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cfg := embedded.DefaultConfig()
	cfg.QueryTime = time.Minute // a busy machine is slow, not wrong
	s, err := embedded.Open(filepath.Join(dir, "weft.duckdb"), cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	text, err := newTextRows(ctx, filepath.Join(dir, "text.duckdb"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, text.close()) }()
	if _, err := text.conn.ExecContext(ctx, `CREATE TABLE losses (time TIMESTAMP_NS NOT NULL, flow VARCHAR NOT NULL, packets UBIGINT NOT NULL)`); err != nil {
		return nil, err
	}
	l := &lossRecords{perSlot: max(rows/topSlots, 1), lost: map[model.FlowKey]uint64{}}
	var b record.Batch
	for n := range topSlots {
		l.fill(&b, n)
		if err := errors.Join(s.Append(ctx, &b), text.append(ctx, b.Flows), text.appendLosses(ctx, b.Losses)); err != nil {
			return nil, err
		}
	}
	if _, err := s.Maintain(ctx, storeBegin.Add(time.Hour)); err != nil {
		return nil, err
	}
	most := slices.Sorted(maps.Values(l.lost))
	slices.Reverse(most)
	var cpu [2]time.Duration
	counted := func(side int, query func() error) func() error {
		return func() error {
			before := cpuTime()
			err := query()
			cpu[side] += cpuTime() - before
			return err
		}
	}
	ours, theirs, err := timeAlternating(ctx, topQueries, counted(0, func() error { return l.queryStore(ctx, s, most) }), counted(1, func() error { return text.queryTop(ctx, most) }))
	if err != nil {
		return nil, err
	}
	const peer = "rows of text and lists, SQL in DuckDB"
	perQuery := func(d time.Duration) float64 { return float64(d) / topQueries / float64(time.Millisecond) }
	return []Result{
		lowerIsBetter("top 5 by loss, p95", quantile(ours, 0.95), "ms", peer, quantile(theirs, 0.95), 1),
		lowerIsBetter("top 5 by loss, CPU", perQuery(cpu[0]), "ms", peer, perQuery(cpu[1]), 1),
	}, nil
}

// queryStore lists the flows that lost most, and compares them with what was stored.
func (l *lossRecords) queryStore(ctx context.Context, s *embedded.Store, most []uint64) error {
	a, err := s.FlowSums(ctx, record.FlowSumQuery{From: storeBegin, To: storeBegin.Add(time.Hour), Sort: record.ByLost, Limit: topFlows})
	if err != nil {
		return err
	}
	if len(a.Items) != min(topFlows, len(most)) || a.Totals.Slots != uint64(topSlots*l.perSlot) {
		return fmt.Errorf("%d flows of %d slots, want %d of %d", len(a.Items), a.Totals.Slots, topFlows, topSlots*l.perSlot)
	}
	for i := range a.Items {
		if f := &a.Items[i]; f.Lost != most[i] || l.lost[f.Flow] != most[i] {
			return fmt.Errorf("%v has %d lost packets in place %d, want a flow with %d", f.Flow, f.Lost, i+1, most[i])
		}
	}
	return nil
}

// appendLosses stores losses.
func (t *textRows) appendLosses(ctx context.Context, list []record.Loss) error {
	return t.conn.Raw(func(c any) error {
		to, err := duckdb.NewAppenderFromConn(c.(driver.Conn), "", "losses")
		if err != nil {
			return err
		}
		for i := range list {
			if err := to.AppendRow(list[i].Time, list[i].Flow.String(), list[i].Packets); err != nil {
				return errors.Join(err, to.Close())
			}
		}
		return to.Close()
	})
}

// queryTop lists the flows that lost most, with their sums and the totals of all.
func (t *textRows) queryTop(ctx context.Context, most []uint64) error {
	rows, err := t.conn.QueryContext(ctx, fmt.Sprintf(`WITH top AS (SELECT flow, sum(packets)::UBIGINT AS lost FROM losses GROUP BY flow ORDER BY lost DESC LIMIT %d)
		SELECT top.lost, sum(f.packets)::UBIGINT, sum(f.bytes)::UBIGINT FROM top JOIN flows f ON f.flow = top.flow GROUP BY top.flow, top.lost ORDER BY top.lost DESC`, topFlows))
	if err != nil {
		return err
	}
	defer rows.Close()
	for i := 0; rows.Next(); i++ {
		var lost, packets, bytes uint64
		if err := rows.Scan(&lost, &packets, &bytes); err != nil {
			return err
		}
		if lost != most[i] {
			return fmt.Errorf("place %d of the rows of text lost %d, want %d", i+1, lost, most[i])
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return readAll(t.db.QueryContext(ctx, `SELECT count(DISTINCT flow), sum(packets), sum(bytes), count(*) FROM flows`))
}

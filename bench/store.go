package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store/embedded"
)

var storeSuite = Suite{
	Name:  "store",
	About: "store records and query them",
	Input: "a million flow records of 10 ms slots with three hops each, in batches of 10,000, and 200,000 port samples in batches of 2,000, in a new DuckDB file; both sides are on disk when a write returns; the rows of text and lists have a file of their own",
	run: func(ctx context.Context) (_ []Result, err error) {
		dir, err := os.MkdirTemp("", "weft-bench-store")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "weft.duckdb")
		s, err := embedded.Open(path, embedded.DefaultConfig())
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		db, err := sql.Open("duckdb", path) // the same database, within this process
		if err != nil {
			return nil, err
		}
		defer db.Close()
		text, err := newTextRows(ctx, filepath.Join(dir, "text.duckdb"))
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, text.close()) }()
		var results []Result
		for _, part := range []func() ([]Result, error){
			func() ([]Result, error) { return compareFlowRows(ctx, s, text) },
			func() ([]Result, error) { return compareBatchInsert(ctx, s, db) },
			func() ([]Result, error) { return comparePaging(ctx, s, text.db) },
			func() ([]Result, error) { return compareRollup(ctx, s, db) },
		} {
			more, err := part()
			if err != nil {
				return nil, err
			}
			results = append(results, more...)
			if _, err := s.Maintain(ctx, storeBegin.Add(time.Hour)); err != nil {
				return nil, err
			}
		}
		return results, nil
	},
}

const (
	storeFlows   = 10_000 // of each batch
	storePorts   = 2_000
	storeBatches = 100
	storeQueries = 40
	inserts      = 20 // single rows after each tenth batch
)

var storeBegin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// storeSlot returns batch n: the records of flows and ports in its slot.
func storeSlot(b *record.Batch, n int) {
	b.Reset()
	at := storeBegin.Add(time.Duration(n) * 10 * time.Millisecond)
	for i := range storeFlows {
		k := model.FlowKey{
			Src: model.Addr4(0x0a000000 + uint32(i)), Dst: model.Addr4(0x0a010000 + uint32(i*7)),
			SrcPort: uint16(49152 + i), DstPort: 4791, Proto: model.UDP,
		}
		packets := uint64(i%97 + n%13)
		b.Flows = append(b.Flows, record.FlowSlot{
			Time: at, Slot: 10 * time.Millisecond, Flow: k, Src: "h" + strconv.Itoa(i%1024), Dst: "h" +
				strconv.Itoa(i*7%1024),
			Packets: packets, Bytes: 1000 * packets, Exact: true,
			Path: []record.FlowHop{
				{Switch: "e" + strconv.Itoa(i%32), Packets: packets},
				{Switch: "a" + strconv.Itoa(i%16), Packets: packets},
				{
					Switch:  "e" + strconv.Itoa(i*7%32),
					Packets: packets,
				},
			},
		})
	}
	for i := range storePorts {
		b.Ports = append(b.Ports, record.PortSample{
			Time: at.Add(time.Duration(i) * time.Microsecond), Node: "e" +
				strconv.Itoa(i%80), Port: model.PortID(i/80%16 + 1),
			Queue: model.Bytes(i%97+n%13) * model.KB, Load: model.Rate(i%97) * model.Mbps, Samples: 1,
		})
	}
}

// compareBatchInsert stores port samples and, between the batches, inserts single
// rows as a program without batches would, with one prepared statement.
func compareBatchInsert(ctx context.Context, s *embedded.Store, db *sql.DB) ([]Result, error) {
	if _, err := db.ExecContext(ctx, `CREATE TABLE single AS FROM ports`); err != nil {
		return nil, err
	}
	insert, err := db.PrepareContext(ctx, `INSERT INTO single VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return nil, err
	}
	defer insert.Close()
	var b record.Batch
	var batched, single time.Duration
	rows, singles := 0, 0
	for n := range storeBatches {
		storeSlot(&b, n)
		b.Flows = b.Flows[:0]
		start := time.Now()
		if err := s.Append(ctx, &b); err != nil {
			return nil, err
		}
		batched += time.Since(start)
		rows += b.Len()
		if n%10 != 9 {
			continue
		}
		start = time.Now()
		for i := range inserts {
			r := &b.Ports[i]
			_, err := insert.ExecContext(ctx, r.Time, i, r.Node, int(r.Port), int64(r.Queue), int64(r.Latency),
				int64(r.Load), r.Paused, int64(r.Samples), int64(r.QueueMax))
			if err != nil {
				return nil, err
			}
		}
		single += time.Since(start)
		singles += inserts
	}
	if _, err := db.ExecContext(ctx, `DROP TABLE single`); err != nil {
		return nil, err
	}
	return []Result{higherIsBetter("append, batches of 2,000 ports", float64(rows)/batched.Seconds()/1e3, "krows/s",
		"INSERT, row by row",
		float64(singles)/single.Seconds()/1e3, 20)}, nil
}

// comparePaging queries pages of 100 flows at random depths.
func comparePaging(ctx context.Context, s *embedded.Store, db *sql.DB) ([]Result, error) {
	r := rand.New(rand.NewPCG(5, 6))
	depth := 0
	ours, theirs, err := timeAlternating(ctx, storeQueries, func() error {
		depth = r.IntN(storeBatches - 1)
		p, err := s.Flows(ctx, record.Query{
			Limit: 100,
			To:    storeBegin.Add(time.Duration(storeBatches-depth) * 10 * time.Millisecond),
		})
		if err == nil && len(p.Items) != 100 {
			err = fmt.Errorf("%d flows in a page, want 100", len(p.Items))
		}
		return err
	}, func() error {
		return readAll(db.QueryContext(ctx,
			fmt.Sprintf(`SELECT * FROM flows ORDER BY time DESC, seq DESC LIMIT 100 OFFSET %d`, depth*storeFlows)))
	})
	if err != nil {
		return nil, err
	}
	const peer = "pages by OFFSET"
	return []Result{
		lowerIsBetter("page of a million, p50", quantile(ours, 0.5), "ms", peer, quantile(theirs, 0.5), 2),
		lowerIsBetter("page of a million, p99", quantile(ours, 0.99), "ms", peer, quantile(theirs, 0.99), 2),
	}, nil
}

// compareRollup queries a series of one switch's ports by second.
func compareRollup(ctx context.Context, s *embedded.Store, db *sql.DB) ([]Result, error) {
	r := rand.New(rand.NewPCG(7, 8))
	node := ""
	ours, theirs, err := timeAlternating(ctx, storeQueries, func() error {
		node = "e" + strconv.Itoa(r.IntN(80))
		p, err := s.Ports(ctx, record.Query{Node: node, Step: time.Second})
		if err == nil && len(p.Items) == 0 {
			err = fmt.Errorf("no series of %s", node)
		}
		return err
	}, func() error {
		return readAll(db.QueryContext(ctx, `SELECT time_bucket(INTERVAL 1 SECOND, time::TIMESTAMP) AS step, port, avg(queue_bytes), max(queue_bytes), avg(latency_ns), avg(load_bps), avg(paused)
			FROM ports WHERE node = ? GROUP BY step, port ORDER BY step DESC, port`, node))
	})
	if err != nil {
		return nil, err
	}
	const peer = "aggregation of raw samples"
	return []Result{
		lowerIsBetter("series by second, p50", quantile(ours, 0.5), "ms", peer, quantile(theirs, 0.5), 1),
	}, nil
}

// timeAlternating times two sides in turns, in milliseconds.
func timeAlternating(ctx context.Context, queries int, ours, theirs func() error) (a, b []float64, err error) {
	for range queries {
		for side, do := range []func() error{ours, theirs} {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			start := time.Now()
			if err := do(); err != nil {
				return nil, nil, err
			}
			took := float64(time.Since(start)) / float64(time.Millisecond)
			if side == 0 {
				a = append(a, took)
			} else {
				b = append(b, took)
			}
		}
	}
	return a, b, nil
}

func quantile(sample []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(sample))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// readAll reads every value of a result, as a program would.
func readAll(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]any, len(names))
	into := make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
	}
	return rows.Err()
}

package bench

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store/embedded"
)

// textRows stores flows as a straightforward program does: each record is a row with
// its texts and lists, through DuckDB's appender, one transaction for each batch.
type textRows struct {
	db   *sql.DB
	conn *sql.Conn
	seq  int64
}

func newTextRows(ctx context.Context, path string) (*textRows, error) {
	db, err := sql.Open("duckdb", path)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	t := &textRows{db: db, conn: conn}
	_, err = conn.ExecContext(ctx, `CREATE TABLE flows (
		time TIMESTAMP_NS NOT NULL, seq BIGINT NOT NULL, slot_ns BIGINT NOT NULL,
		flow VARCHAR NOT NULL, src VARCHAR NOT NULL, dst VARCHAR NOT NULL,
		sport USMALLINT NOT NULL, dport USMALLINT NOT NULL, proto UTINYINT NOT NULL,
		src_host VARCHAR NOT NULL, dst_host VARCHAR NOT NULL,
		packets UBIGINT NOT NULL, bytes UBIGINT NOT NULL, exact BOOLEAN NOT NULL,
		path VARCHAR[] NOT NULL, path_packets UBIGINT[] NOT NULL)`)
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *textRows) close() error { return errors.Join(t.conn.Close(), t.db.Close()) }

// append stores flows.
func (t *textRows) append(ctx context.Context, flows []record.FlowSlot) error {
	if _, err := t.conn.ExecContext(ctx, `BEGIN TRANSACTION`); err != nil {
		return err
	}
	err := t.conn.Raw(func(c any) error {
		to, err := duckdb.NewAppenderFromConn(c.(driver.Conn), "", "flows")
		if err != nil {
			return err
		}
		for i := range flows {
			r := &flows[i]
			switches, packets := make([]any, len(r.Path)), make([]any, len(r.Path))
			for i, h := range r.Path {
				switches[i], packets[i] = h.Switch, h.Packets
			}
			t.seq++
			if err := to.AppendRow(r.Time, t.seq, int64(r.Slot), r.Flow.String(), r.Flow.Src.String(), r.Flow.Dst.String(),
				r.Flow.SrcPort, r.Flow.DstPort, uint8(r.Flow.Proto), r.Src, r.Dst, r.Packets, r.Bytes, r.Exact, switches, packets); err != nil {
				return errors.Join(err, to.Close())
			}
		}
		return to.Close()
	})
	if err != nil {
		return err
	}
	_, err = t.conn.ExecContext(ctx, `COMMIT`)
	return err
}

// size is the size of the rows on disk.
func (t *textRows) size(ctx context.Context) (model.Bytes, error) {
	if _, err := t.conn.ExecContext(ctx, `CHECKPOINT`); err != nil {
		return 0, err
	}
	var used, block int64
	err := t.conn.QueryRowContext(ctx, `SELECT used_blocks, block_size FROM pragma_database_size()`).Scan(&used, &block)
	return model.Bytes(used * block), err
}

// compareFlowRows stores the million on both sides, in turns, and compares the CPU
// time of the process and the size on disk.
func compareFlowRows(ctx context.Context, s *embedded.Store, text *textRows) ([]Result, error) {
	var b record.Batch
	var ours, theirs time.Duration
	empty, err := s.Size(ctx)
	if err != nil {
		return nil, err
	}
	emptyText, err := text.size(ctx)
	if err != nil {
		return nil, err
	}
	rows := 0
	for n := range storeBatches {
		storeSlot(&b, n)
		b.Ports = b.Ports[:0]
		rows += len(b.Flows)
		start := cpuTime()
		if err := s.Append(ctx, &b); err != nil {
			return nil, err
		}
		middle := cpuTime()
		if err := text.append(ctx, b.Flows); err != nil {
			return nil, err
		}
		ours, theirs = ours+middle-start, theirs+cpuTime()-middle
	}
	if _, err := s.Maintain(ctx, storeBegin.Add(time.Hour)); err != nil {
		return nil, err
	}
	size, err := s.Size(ctx)
	if err != nil {
		return nil, err
	}
	textSize, err := text.size(ctx)
	if err != nil {
		return nil, err
	}
	const peer = "rows of text and lists, by DuckDB's appender"
	rate := func(cpu time.Duration) float64 { return float64(rows) / cpu.Seconds() / 1e3 }
	perRow := func(size model.Bytes) float64 { return float64(size) / float64(rows) }
	return []Result{
		higherIsBetter("flow rows, committed", rate(ours), "krows/s of CPU", peer, rate(theirs), 2.5),
		lowerIsBetter("flow rows on disk", perRow(size-empty), "B", peer, perRow(textSize-emptyText), 2),
	}, nil
}

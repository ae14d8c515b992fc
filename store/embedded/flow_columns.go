package embedded

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync/atomic"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/weft-telemetry/weft/model/record"
)

// flowBatch holds the rows of a batch as columns, which DuckDB reads in chunks
// through a table function: its appender wants row by row, and each value in an
// interface. The few rows with a list are appended as rows.
type flowBatch struct {
	function string // its name in DuckDB
	read     int    // rows that DuckDB has read

	times, seqs, flows, paths []int64
	packets, bytes, hopLess   []uint64
	lists                     [][]driver.Value

	pathOf []*numberedPath // of each record
}

// flowFunctions makes their names unique: stores of one file in one process share
// DuckDB's functions.
var flowFunctions atomic.Int64

// register makes the columns readable for statements of the store's connections.
func (b *flowBatch) register(s *Store) error {
	b.function = fmt.Sprintf("weft_flow_columns_%d", flowFunctions.Add(1))
	return duckdb.RegisterTableUDF(s.writer, b.function, duckdb.ChunkTableFunction{
		BindArguments: func(map[string]any, ...any) (duckdb.ChunkTableSource, error) { return b, nil },
	})
}

// reset empties the columns and keeps their memory.
func (b *flowBatch) reset() {
	b.read = 0
	b.times, b.seqs, b.flows, b.paths = b.times[:0], b.seqs[:0], b.flows[:0], b.paths[:0]
	b.packets, b.bytes, b.hopLess = b.packets[:0], b.bytes[:0], b.hopLess[:0]
	clear(b.lists)
	clear(b.pathOf)
	b.lists, b.pathOf = b.lists[:0], b.pathOf[:0]
}

// add adds a record.
func (b *flowBatch) add(r *record.FlowSlot, seq, flow, path int64) {
	less, fits := hopLess(r)
	if !fits || r.Samples > 0 { // hops of samples rarely fit
		packets := make([]any, len(r.Path))
		for i := range r.Path {
			packets[i] = r.Path[i].Packets
		}
		b.lists = append(b.lists, []driver.Value{r.Time.UTC(), seq, flow, path, r.Packets, r.Bytes, uint64(0), packets, r.Samples})
		return
	}
	b.times, b.seqs = append(b.times, r.Time.UnixNano()), append(b.seqs, seq)
	b.flows, b.paths = append(b.flows, flow), append(b.paths, path)
	b.packets, b.bytes, b.hopLess = append(b.packets, r.Packets), append(b.bytes, r.Bytes), append(b.hopLess, less)
}

// maxLessHops is the number of hops that fit into hop_less.
const maxLessHops = 8

// hopLess returns how many packets less than the flow each hop has, a byte each, and
// whether they fit.
func hopLess(r *record.FlowSlot) (less uint64, fits bool) {
	if len(r.Path) > maxLessHops {
		return 0, false
	}
	for i := range r.Path {
		n := r.Packets - r.Path[i].Packets
		if r.Path[i].Packets > r.Packets || n > 0xff {
			return 0, false
		}
		less |= n << (8 * i)
	}
	return less, true
}

// hopPackets is the inverse of hopLess for one hop.
func hopPackets(packets, less uint64, hop int) uint64 { return packets - less>>(8*hop)&0xff }

var flowChunk = func() (list []duckdb.ColumnInfo) {
	for _, c := range []struct {
		name string
		of   duckdb.Type
	}{
		{"ns", duckdb.TYPE_BIGINT},
		{"seq", duckdb.TYPE_BIGINT},
		{"flow_id", duckdb.TYPE_BIGINT},
		{"path_id", duckdb.TYPE_BIGINT},
		{"packets", duckdb.TYPE_UBIGINT},
		{"bytes", duckdb.TYPE_UBIGINT},
		{"hop_less", duckdb.TYPE_UBIGINT},
	} {
		info, err := duckdb.NewTypeInfo(c.of)
		if err != nil {
			panic(err)
		}
		list = append(list, duckdb.ColumnInfo{Name: c.name, T: info})
	}
	return list
}()

// ColumnInfos implements duckdb.ChunkTableSource.
func (b *flowBatch) ColumnInfos() []duckdb.ColumnInfo { return flowChunk }

// Cardinality implements duckdb.ChunkTableSource.
func (b *flowBatch) Cardinality() *duckdb.CardinalityInfo {
	return &duckdb.CardinalityInfo{Cardinality: uint(len(b.times)), Exact: true}
}

// Init implements duckdb.ChunkTableSource.
func (b *flowBatch) Init() { b.read = 0 }

// FillChunk implements duckdb.ChunkTableSource.
func (b *flowBatch) FillChunk(chunk duckdb.DataChunk) error {
	from, to := b.read, min(b.read+duckdb.GetDataChunkCapacity(), len(b.times))
	b.read = to
	for i, column := range [][]int64{b.times, b.seqs, b.flows, b.paths} {
		if err := fillColumn(chunk, i, column[from:to]); err != nil {
			return err
		}
	}
	for i, column := range [][]uint64{b.packets, b.bytes, b.hopLess} {
		if err := fillColumn(chunk, 4+i, column[from:to]); err != nil {
			return err
		}
	}
	return chunk.SetSize(to - from)
}

func fillColumn[T any](chunk duckdb.DataChunk, column int, values []T) error {
	for i, v := range values {
		if err := duckdb.SetChunkValue(chunk, column, i, v); err != nil {
			return err
		}
	}
	return nil
}

// appendFlows appends flows within the writer's transaction. If that fails, the
// caller calls abandonBatch.
func (s *Store) appendFlows(ctx context.Context, flows []record.FlowSlot, seq *int64) error {
	s.flowIDs.beginBatch()
	if len(flows) == 0 {
		return nil
	}
	b := &s.flowBatch
	b.reset()
	for i := range flows {
		*seq++
		flow, path := s.flowIDs.number(&flows[i])
		b.add(&flows[i], *seq, flow, path.id)
		b.pathOf = append(b.pathOf, path)
	}
	if s.flowIDs.twice {
		s.flowsNumberedTwice.Store(true) // before a reader sees the rows
	}
	if err := s.appendRaw(func(a *batchAppender) {
		a.appendRows(flowKeys, s.flowIDs.keyRows)
		a.appendRows(flowPaths, s.flowIDs.pathRows)
		a.appendRows(flowRows, func(yield func([]driver.Value) bool) {
			for _, row := range b.lists {
				if !yield(row) {
					return
				}
			}
		})
	}, seq); err != nil || len(b.times) == 0 {
		return err
	}
	_, err := s.writer.ExecContext(context.WithoutCancel(ctx), `INSERT INTO flow_rows (time, seq, flow_id, path_id, packets, bytes, hop_less)
		SELECT make_timestamp_ns(ns), seq, flow_id, path_id, packets, bytes, hop_less FROM `+b.function+`()`)
	if err != nil {
		return fmt.Errorf("%s: %w", flowRows, err)
	}
	return nil
}

// keyRows are the rows of flow_keys that a batch adds.
func (n *flowIDs) keyRows(yield func([]driver.Value) bool) {
	for i := range n.newFlows {
		f := &n.newFlows[i]
		if !yield(append(keyRow(append(make([]driver.Value, 0, 9), f.id), f.key), f.src, f.dst)) {
			return
		}
	}
}

// pathRows are the rows of flow_paths that a batch adds.
func (n *flowIDs) pathRows(yield func([]driver.Value) bool) {
	for _, p := range n.newPaths {
		if !yield([]driver.Value{p.id, p.slot, p.exact, p.partial, p.switches}) {
			return
		}
	}
}

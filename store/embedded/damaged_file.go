package embedded

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// damagedFile reads what can be read of a file. It changes nothing.
type damagedFile struct {
	db          *sql.DB
	path        string
	prefix      *logPrefix // with a damaged log
	until       time.Time  // when it was set aside
	selects     map[store.Kind]string
	texts       *flowTexts // of a file that has flows as numbers
	flowColumns string     // of flow_rows, as a numberedRow reads them
}

// openDamaged opens a file for reading, with the readable part of its log.
func openDamaged(ctx context.Context, path string, until time.Time) (*damagedFile, error) {
	f := &damagedFile{path: path, until: until, selects: map[store.Kind]string{}}
	var err error
	if f.db, err = openReadOnly(ctx, path); err == nil || !hasLog(path) || !damagedAtOpen(err) {
		if err != nil {
			return nil, err
		}
		return f, f.findFlowTexts(ctx)
	}
	prefix, prefixErr := readablePrefix(ctx, path)
	if prefixErr != nil {
		return nil, errors.Join(err, prefixErr)
	}
	f.prefix, f.path = prefix, prefix.path
	if f.db, err = openReadOnly(ctx, prefix.path); err != nil {
		prefix.remove()
		return nil, err
	}
	return f, f.findFlowTexts(ctx)
}

func (f *damagedFile) close() {
	_ = f.db.Close()
	if f.prefix != nil {
		f.prefix.remove()
	}
}

// table is the table with the rows of a kind; older schemas have flows in one.
func (f *damagedFile) table(kind store.Kind) string {
	if f.texts == nil {
		return string(kind)
	}
	return tableOf(kind)
}

// reopen continues after an error that ended DuckDB's work on the file.
func (f *damagedFile) reopen(ctx context.Context) error {
	_ = f.db.Close()
	db, err := openReadOnly(ctx, f.path)
	if err == nil {
		f.db = db
	}
	return err
}

// rows is the number of row numbers of a table: at least that of its rows.
func (f *damagedFile) rows(ctx context.Context, table string) (end int64, err error) {
	err = f.db.QueryRowContext(ctx, fmt.Sprintf(`SELECT coalesce(max(rowid) + 1, 0) FROM %s`, table)).Scan(&end)
	if err != nil && ctx.Err() == nil {
		err = f.db.QueryRowContext(ctx, `SELECT coalesce(max(estimated_size), 0) FROM duckdb_tables() WHERE table_name = ?`, table).Scan(&end)
	}
	return end, err
}

// chunk holds rows of one kind: records, or rows of a rollup.
type chunk struct {
	kind    store.Kind
	batch   record.Batch
	rollups [][]driver.Value
	bounds  timeBounds // of the rollup's rows
	until   time.Time  // the cache of recent steps answers for later ones
	next    int64      // the row number that follows
	lost    uint64
	done    bool
}

// chunkSize limits the memory of a chunk; errTooLarge is returned beyond it.
const chunkSize = 16 << 20

var errTooLarge = errors.New("rows too large to read at once")

// read reads the rows of a range. Rows that are no valid records count as lost; an
// error means that some could not be read.
func (f *damagedFile) read(ctx context.Context, kind store.Kind, from, to int64) (*chunk, error) {
	if kind == store.Flows && f.texts != nil {
		return f.readFlows(ctx, from, to)
	}
	columns, err := f.columns(ctx, kind)
	if err != nil {
		return nil, err
	}
	rows, err := f.db.QueryContext(ctx, fmt.Sprintf(`SELECT %s FROM %s WHERE rowid >= %d AND rowid < %d`, columns, kind, from, to))
	if invalidated(err) {
		if again := f.reopen(ctx); again != nil {
			return nil, again
		}
	}
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	c := &chunk{kind: kind, next: to, bounds: emptyBounds, until: f.until}
	for size := 0; rows.Next(); {
		n, err := c.add(rows)
		if err != nil {
			c.lost++
		}
		if size += n; size > chunkSize && to-from > 1 {
			return nil, errTooLarge
		}
	}
	return c, rows.Err()
}

// added are columns that older schemas do not have, with what replaces them.
var added = map[string]string{"queue_max_bytes": "0", "location": "place"}

// columns is the list of columns of a kind, in the order that its scan wants.
func (f *damagedFile) columns(ctx context.Context, kind store.Kind) (string, error) {
	if list := f.selects[kind]; list != "" {
		return list, nil
	}
	rows, err := f.db.QueryContext(ctx, `SELECT column_name FROM duckdb_columns() WHERE table_name = ?`, string(kind))
	if err != nil {
		return "", err
	}
	defer rows.Close()
	there := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return "", err
		}
		there[name] = true
	}
	list := strings.Split(salvageColumns[kind], ",")
	for i, name := range list {
		name = strings.TrimSpace(name)
		if old := added[name]; old != "" && !there[name] {
			name = old
		}
		list[i] = name
	}
	f.selects[kind] = strings.Join(list, ", ")
	return f.selects[kind], rows.Err()
}

const (
	portRollup    = `time, node, port, samples, queue_sum, latency_sum, load_sum, paused_sum, queue_max_bytes`
	counterRollup = `time, name, packets, bytes, flows`
)

var salvageColumns = map[store.Kind]string{
	store.Flows:          `time, seq, ` + flowTable.columns,
	store.Losses:         `time, seq, ` + lossTable.columns,
	store.Ports:          `time, seq, ` + portTable.columns,
	store.Traces:         `time, seq, ` + traceTable.columns,
	store.Counters:       `time, seq, ` + counterTable.columns,
	store.Diagnoses:      `time, seq, ` + diagnosisTable.columns,
	store.Incidents:      `time, seq, ` + incidentTable.columns,
	store.PortSeconds:    portRollup,
	store.PortMinutes:    portRollup,
	store.CounterSeconds: counterRollup,
	store.CounterMinutes: counterRollup,
}

// add adds the current row, if it is valid, and returns its size.
func (c *chunk) add(rows *sql.Rows) (size int, err error) {
	// A scan relies on what the schema guarantees, damage does not.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("row of %s: %v", c.kind, p)
		}
	}()
	switch b := &c.batch; c.kind {
	case store.Flows:
		return addRow(rows, &flowTable, &b.Flows, func(one *record.Batch, r []record.FlowSlot) { one.Flows = r })
	case store.Losses:
		return addRow(rows, &lossTable, &b.Losses, func(one *record.Batch, r []record.Loss) { one.Losses = r })
	case store.Ports:
		return addRow(rows, &portTable, &b.Ports, func(one *record.Batch, r []record.PortSample) { one.Ports = r })
	case store.Traces:
		return addRow(rows, &traceTable, &b.Traces, func(one *record.Batch, r []record.Trace) { one.Traces = r })
	case store.Counters:
		return addRow(rows, &counterTable, &b.Counters, func(one *record.Batch, r []record.Counter) { one.Counters = r })
	case store.Diagnoses:
		return addRow(rows, &diagnosisTable, &b.Diagnoses, func(one *record.Batch, r []record.Diagnosis) { one.Diagnoses = r })
	case store.Incidents:
		return addRow(rows, &incidentTable, &b.Incidents, func(one *record.Batch, r []record.Incident) { one.Incidents = r })
	}
	return stepSize, c.addRollup(rows)
}

// addRow adds a record that passes store.CheckBatch.
func addRow[T any](rows *sql.Rows, t *table[T], to *[]T, set func(*record.Batch, []T)) (int, error) {
	records := make([]T, 1)
	var at recordPosition
	if err := t.scan(rows, &records[0], &at); err != nil {
		return 0, err
	}
	var one record.Batch
	set(&one, records)
	if err := store.CheckBatch(&one); err != nil {
		return 0, err
	}
	*to = append(*to, records[0])
	return t.size(&records[0]), nil
}

// addRollup adds a row of a rollup. It has no sequence number.
func (c *chunk) addRollup(rows *sql.Rows) error {
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	row := make([]driver.Value, len(names))
	to := make([]any, len(names))
	for i := range row {
		to[i] = &row[i]
	}
	if err := rows.Scan(to...); err != nil {
		return err
	}
	for i, v := range row {
		if f, is := v.(float64); v == nil || is && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return fmt.Errorf("%s is %v", names[i], v)
		}
	}
	at, ok := row[0].(time.Time)
	if !ok || at.After(c.until) {
		return fmt.Errorf("time is %v, want one before %v", row[0], c.until)
	}
	c.bounds = c.bounds.union(timeBounds{at.UnixNano(), at.UnixNano()})
	c.rollups = append(c.rollups, row)
	return nil
}

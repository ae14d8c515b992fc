package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// findFlowTexts prepares to read flows that are stored as numbers, if they are.
func (f *damagedFile) findFlowTexts(ctx context.Context) error {
	var there int
	err := f.db.QueryRowContext(ctx, `SELECT count(*) FROM duckdb_tables() WHERE table_name = ?`, flowRows).Scan(&there)
	if err != nil {
		f.close()
		return err
	}
	if there == 0 {
		return nil
	}
	texts := newFlowTexts()
	f.texts = &texts
	// Up to schema 6 rows have no samples.
	err = f.db.QueryRowContext(ctx, `SELECT count(*) FROM duckdb_columns() WHERE table_name = ? AND column_name = 'samples'`, flowRows).Scan(&there)
	if f.flowColumns = numberedColumns; there == 0 {
		f.flowColumns = strings.TrimSuffix(numberedColumns, "samples") + "0::UBIGINT"
	}
	if err != nil {
		f.close()
	}
	return err
}

// readFlows is read for flows that are stored as numbers.
func (f *damagedFile) readFlows(ctx context.Context, from, to int64) (*chunk, error) {
	var list []numberedRow
	c := &chunk{kind: store.Flows, next: to, bounds: emptyBounds, until: f.until}
	query := fmt.Sprintf(`SELECT %s FROM flow_rows WHERE rowid >= %d AND rowid < %d`, f.flowColumns, from, to)
	err := f.each(ctx, query, func(rows *sql.Rows) error {
		var n numberedRow
		if err := n.scan(rows); err != nil {
			c.lost++
			return nil
		}
		list = append(list, n)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := f.readTexts(ctx, list); err != nil {
		return nil, err
	}
	for i := range list {
		r, err := f.texts.record(&list[i])
		if err == nil {
			err = store.CheckBatch(&record.Batch{Flows: []record.FlowSlot{r}})
		}
		if err != nil {
			c.lost++
			continue
		}
		c.batch.Flows = append(c.batch.Flows, r)
	}
	return c, nil
}

// readTexts reads the flows and paths of rows that were not read before. Damage
// costs only the rows that have one of the lost numbers, so texts are read apart
// from the rows.
func (f *damagedFile) readTexts(ctx context.Context, list []numberedRow) error {
	if len(f.texts.flows) > maxTexts || len(f.texts.paths) > maxTexts {
		*f.texts = newFlowTexts()
	}
	flows, paths := f.texts.missing(list)
	for _, id := range flows {
		f.texts.flows[id] = nil // so that damage is met once
	}
	for _, id := range paths {
		f.texts.paths[id] = nil
	}
	if err := f.readNumbers(ctx, flowKeyColumns, flows, f.texts.scanFlow); err != nil {
		return err
	}
	return f.readNumbers(ctx, flowPathColumns, paths, f.texts.scanPath)
}

// leastNumbers is how many numbers are read at once around damage.
const leastNumbers = 16

// readNumbers reads the rows of some numbers, and of halves of them around damage.
// A number without a row is not an error.
func (f *damagedFile) readNumbers(ctx context.Context, query string, ids []int64, each func(*sql.Rows) error) error {
	if len(ids) == 0 {
		return nil
	}
	err := f.each(ctx, query+numbersIn(ids), func(rows *sql.Rows) error {
		_ = each(rows) // its number stays unread
		return nil
	})
	if err == nil || ctx.Err() != nil || len(ids) <= leastNumbers {
		return ctx.Err()
	}
	middle := len(ids) / 2
	if err := f.readNumbers(ctx, query, ids[:middle], each); err != nil {
		return err
	}
	return f.readNumbers(ctx, query, ids[middle:], each)
}

// each reads the rows of a query.
func (f *damagedFile) each(ctx context.Context, query string, do func(*sql.Rows) error) error {
	rows, err := f.db.QueryContext(ctx, query)
	if invalidated(err) {
		if again := f.reopen(ctx); again != nil {
			return again
		}
	}
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := do(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

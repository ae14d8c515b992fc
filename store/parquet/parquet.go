// Package parquet writes tables as Parquet files, through DuckDB. What the tables
// hold is their callers' business.
package parquet

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/duckdb/duckdb-go/v2"
)

// Column is a column of a table.
type Column struct {
	Name string
	Type Type
}

// Type is the type of a column, as DuckDB names it.
type Type string

// Types.
const (
	Text     Type = "VARCHAR"
	Integer  Type = "BIGINT"
	Unsigned Type = "UBIGINT"
	Real     Type = "DOUBLE"
	Boolean  Type = "BOOLEAN"
)

// FromCSV writes the table of a CSV file, whose first line names the columns, as a
// Parquet file. Empty cells are null. The file is complete or does not change.
func FromCSV(ctx context.Context, from, to string, columns []Column) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s as %s: %w", from, to, err)
		}
	}()
	connector, err := duckdb.NewConnector("", nil) // in memory
	if err != nil {
		return err
	}
	defer connector.Close()
	db := sql.OpenDB(connector)
	defer db.Close()
	half, err := os.CreateTemp(filepath.Dir(to), ".weft-*.parquet")
	if err != nil {
		return err
	}
	defer os.Remove(half.Name()) // fails once it is renamed
	if err := half.Close(); err != nil {
		return err
	}
	types := make([]string, len(columns))
	for i, c := range columns {
		types[i] = quote(c.Name) + ": " + quote(string(c.Type))
	}
	// A row in order, as the file has it: one thread.
	_, err = db.ExecContext(ctx, fmt.Sprintf(
		`COPY (SELECT * FROM read_csv(%s, header = true, auto_detect = false, delim = ',', quote = '"', escape = '"', nullstr = '', columns = {%s}, parallel = false)) TO %s (FORMAT parquet, COMPRESSION zstd)`,
		quote(from), strings.Join(types, ", "), quote(half.Name())))
	if err != nil {
		return err
	}
	if err := os.Chmod(half.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(half.Name(), to)
}

// quote makes a string literal of SQL.
func quote(s string) string { return `'` + strings.ReplaceAll(s, `'`, `''`) + `'` }

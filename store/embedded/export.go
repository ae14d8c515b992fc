package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// Export writes the rows of a kind from a time range, oldest first, to
// dir/KIND.parquet and returns their number. Zero times mean no bound. The file is
// complete or does not exist. There is no time limit: cancel ctx to stop it.
func (s *Store) Export(ctx context.Context, dir string, kind store.Kind, from, to time.Time) (rows uint64, err error) {
	if _, err := store.ParseKind(string(kind)); err != nil {
		return 0, err
	}
	leave, err := s.beginWork()
	if err != nil {
		return 0, err
	}
	defer leave()
	path := filepath.Join(dir, string(kind)+".parquet")
	defer func() {
		if err != nil {
			err = fmt.Errorf("export %s to %s: %w", kind, path, err)
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	half, err := os.CreateTemp(dir, ".weft-*.parquet")
	if err != nil {
		return 0, err
	}
	defer os.Remove(half.Name()) // fails once it is renamed
	if err := half.Close(); err != nil {
		return 0, err
	}
	where := &conditions{}
	where.between(store.TimeRange(record.Query{From: from, To: to}))
	columns, group := `* EXCLUDE (seq)`, ``
	if r, is := rollups[kind]; is {
		columns, group = `time, `+r.key+`, `+r.merge, `GROUP BY time, `+r.key
	}
	result, err := s.db.ExecContext(ctx, fmt.Sprintf(
		`COPY (SELECT %s FROM %s WHERE %s %s ORDER BY time) TO '%s' (FORMAT parquet, COMPRESSION zstd)`,
		columns, kind, where.sql(), group, strings.ReplaceAll(half.Name(), `'`, `''`)))
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, err
	}
	return uint64(n), os.Rename(half.Name(), path)
}

package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store"
)

// Maintain removes records above the retention at the time now, then the oldest
// records while the store is larger than MaxSize, merges the rows of rollups, and
// writes the write-ahead log into the file. Call it about once per minute. Appends
// wait for each of its steps, queries do not.
func (s *Store) Maintain(ctx context.Context, now time.Time) (store.MaintenanceResult, error) {
	up := store.MaintenanceResult{Removed: map[store.Kind]store.Removal{}}
	leave, err := s.beginWork()
	if errors.Is(err, store.ErrUnavailable) {
		return up, s.repairInUse(ctx, err)
	}
	if err != nil {
		return up, err
	}
	err = s.maintain(ctx, now, &up)
	leave()
	if err != nil {
		err = fmt.Errorf("maintain store %s: %w", s.path, err)
	}
	if s.cfg.Repair && (damagedInUse(err) || invalidated(err)) {
		err = s.repairInUse(ctx, err)
	}
	return up, err
}

func (s *Store) maintain(ctx context.Context, now time.Time, up *store.MaintenanceResult) (err error) {
	if found := s.damaged.Load(); found != nil && s.cfg.Repair {
		return *found
	}
	if up.Before, err = s.diskSize(ctx); err != nil {
		return err
	}
	for _, kind := range store.Kinds() {
		if age, bounded := s.limits.Load().retention[kind]; bounded {
			n, err := s.removeBefore(ctx, kind, store.Nanos(now.Add(-age)))
			if err != nil {
				return err
			}
			r := up.Removed[kind]
			r.Age += n
			up.Removed[kind] = r
		}
	}
	if up.Removed[store.Flows].Age > 0 {
		if err := s.pruneFlowIDs(ctx); err != nil {
			return err
		}
	}
	if up.Removed[store.Incidents].Age > 0 {
		if err := s.removeOrphanActions(ctx); err != nil {
			return err
		}
	}
	for kind := range rollups {
		n, err := s.mergeSteps(ctx, kind)
		if err != nil {
			return err
		}
		up.Merged += n
	}
	if err := s.checkpoint(ctx); err != nil {
		return err
	}
	if err := s.evict(ctx, up); err != nil {
		return err
	}
	if up.After, err = s.diskSize(ctx); err != nil {
		return err
	}
	return s.db.QueryRowContext(ctx, `SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()`).Scan((*int64)(&up.Memory))
}

// removeBefore removes rows older than ns and returns their number.
func (s *Store) removeBefore(ctx context.Context, kind store.Kind, ns int64) (uint64, error) {
	s.write.Lock()
	defer s.write.Unlock()
	n, err := s.execLocked(ctx, fmt.Sprintf(`DELETE FROM %s WHERE %s < make_timestamp_ns(%d)`, tableOf(kind), ageColumn(kind), clamp(ns)))
	if err == nil && n > 0 && kind == store.Flows {
		err = s.boundFlows(ctx)
	}
	if err == nil {
		s.hot.Load().removeBefore(kind, clamp(ns))
		if kind == store.Incidents {
			s.ledger.removeBefore(clamp(ns))
		}
	}
	return n, err
}

// ageColumn is the column of a row's age. An incident's age counts from its last
// update.
func ageColumn(kind store.Kind) string {
	if kind == store.Incidents {
		return "updated"
	}
	return "time"
}

// exec runs one writing statement with the write lock and returns the number of
// rows it changed.
func (s *Store) exec(ctx context.Context, sql string) (uint64, error) {
	s.write.Lock()
	defer s.write.Unlock()
	return s.execLocked(ctx, sql)
}

func (s *Store) execLocked(ctx context.Context, sql string) (uint64, error) {
	result, err := s.writer.ExecContext(ctx, sql)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return uint64(n), err
}

// checkpoint writes the log into the file. DuckDB may refuse while queries run; the
// log then stays until the next time, which costs only space.
func (s *Store) checkpoint(ctx context.Context) error {
	_, err := s.exec(ctx, `CHECKPOINT`)
	if err != nil && strings.Contains(err.Error(), "Cannot CHECKPOINT") {
		return nil
	}
	return err
}

// Size is the size of the records on disk: the used blocks of the file, and the
// log.
func (s *Store) Size(ctx context.Context) (model.Bytes, error) {
	leave, err := s.beginWork()
	if err != nil {
		return 0, err
	}
	defer leave()
	return s.diskSize(ctx)
}

func (s *Store) diskSize(ctx context.Context) (model.Bytes, error) {
	var used, block int64
	err := s.db.QueryRowContext(ctx, `SELECT used_blocks, block_size FROM pragma_database_size()`).Scan(&used, &block)
	if err != nil {
		return 0, err
	}
	log, err := os.Stat(s.path + ".wal")
	if errors.Is(err, os.ErrNotExist) {
		return model.Bytes(used * block), nil
	}
	if err != nil {
		return 0, err
	}
	return model.Bytes(used*block + log.Size()), nil
}

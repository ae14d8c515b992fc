package embedded

import (
	"context"
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/store"
)

// evictionOrder is the order of eviction if the store is too large: individual
// records, then the finer rollups, and verdicts last.
var evictionOrder = [][]store.Kind{
	{store.Flows, store.Losses, store.Ports, store.Traces, store.Counters},
	{store.PortSeconds, store.CounterSeconds},
	{store.PortMinutes, store.CounterMinutes, store.Diagnoses, store.Incidents},
}

const (
	// targetShare is the share of MaxSize to reach, so that the next batch does not
	// need the next eviction.
	targetShare = 0.9
	// evictRounds limits one maintenance run: the size falls in steps, so an
	// estimate may need another round.
	evictRounds = 8
	// rowGroup is the number of rows of a table that DuckDB frees at once, when all
	// of them are removed.
	rowGroup = 122_880
)

// evict removes the oldest records until the store is within MaxSize. It stops if
// a removal freed nothing, because then a reader still holds what was removed; the
// next maintenance run continues. If several runs in a row end too large, readers
// are not the reason: the kinds that are evicted last use the space, and are
// evicted, too.
func (s *Store) evict(ctx context.Context, up *store.MaintenanceResult) error {
	most := s.limits.Load().size
	if most == 0 {
		return nil
	}
	size, err := s.diskSize(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if s.oversizedRuns.Add(1); size <= most {
			s.oversizedRuns.Store(0)
		}
	}()
	for range evictRounds {
		if size <= most {
			return nil
		}
		share := 1 - targetShare*float64(most)/float64(size)
		if removed, err := s.evictShare(ctx, share, up); err != nil || removed == 0 {
			return err
		}
		if err := s.checkpoint(ctx); err != nil {
			return err
		}
		before := size
		if size, err = s.diskSize(ctx); err != nil || size >= before {
			return err
		}
	}
	return nil
}

// maxOversizedRuns is the number of maintenance runs that may end too large before
// more kinds are evicted.
const maxOversizedRuns = 2

// evictShare removes the oldest share of the rows of the first kinds that have
// any, and of further kinds if that was not enough.
func (s *Store) evictShare(ctx context.Context, share float64,
	up *store.MaintenanceResult,
) (removed uint64, err error) {
	for i, kinds := range evictionOrder {
		var times []string
		for _, kind := range kinds {
			times = append(times, fmt.Sprintf(`SELECT epoch_ns(%s) AS ns FROM %s`, ageColumn(kind), tableOf(kind)))
		}
		var oldest *int64
		query := fmt.Sprintf(`SELECT approx_quantile(ns, %f) FROM (%s)`, share, strings.Join(times, ` UNION ALL `))
		if err := s.db.QueryRowContext(ctx, query).Scan(&oldest); err != nil {
			return removed, err
		}
		if oldest == nil {
			continue
		}
		for _, kind := range kinds {
			n, err := s.removeBefore(ctx, kind, *oldest+1)
			if err != nil {
				return removed, err
			}
			r := up.Removed[kind]
			r.Size += n
			up.Removed[kind] = r
			removed += n
			if n > 0 {
				if err := s.compactTable(ctx, kind); err != nil {
					return removed, err
				}
			}
			if n > 0 && kind == store.Flows {
				if err := s.pruneFlowIDs(ctx); err != nil {
					return removed, err
				}
			}
		}
		if removed > 0 && i >= int(s.oversizedRuns.Load())/maxOversizedRuns {
			return removed, nil
		}
	}
	return removed, nil
}

// compactTable writes the rows of a small table into new groups, so that the space
// of rows removed from the middle of a group is freed. In a large table whole
// groups are removed, and the rest of one does not matter.
func (s *Store) compactTable(ctx context.Context, kind store.Kind) error {
	s.write.Lock()
	defer s.write.Unlock()
	var rows int64
	if err := s.writer.QueryRowContext(ctx, fmt.Sprintf(`SELECT count(*) FROM %s`, tableOf(kind))).Scan(&rows); err != nil || rows > 2*rowGroup {
		return err
	}
	return inTransaction(ctx, s.writer, func() error {
		_, err := s.writer.ExecContext(ctx, fmt.Sprintf(`CREATE OR REPLACE TEMP TABLE moving AS FROM %[1]s; DELETE FROM %[1]s;
			INSERT INTO %[1]s FROM moving ORDER BY time; DROP TABLE moving`, tableOf(kind)))
		return err
	})
}

package embedded

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/store"
)

// unmergedSteps are the steps of a rollup that batches added rows to since they were
// merged.
type unmergedSteps struct {
	all   bool // any step may have some: the store was just opened
	steps map[int64]bool
	rows  int
	kept  int // rows that the last merge left of the steps it merged
}

const (
	// mergeRows is the number of rows of a rollup that are merged without waiting for
	// maintenance, and mergeFactor how many times as many as the last merge left. A
	// query then adds up few rows, and a merge costs little per row.
	mergeRows   = 16_384
	mergeFactor = 8
	// maxUnmerged limits the steps that are remembered one by one.
	maxUnmerged = 4096
)

// unmergedOf returns the unmerged steps of a rollup.
func (s *Store) unmergedOf(kind store.Kind) *unmergedSteps {
	u := s.unmerged[kind]
	if u == nil {
		u = &unmergedSteps{all: true, steps: map[int64]bool{}}
		s.unmerged[kind] = u
	}
	return u
}

// add notes rows of a step.
func (u *unmergedSteps) add(begin int64, rows int) {
	u.rows += rows
	if u.all {
		return
	}
	if u.steps[begin] = true; len(u.steps) > maxUnmerged {
		u.all = true
		clear(u.steps)
	}
}

// noteSteps notes the rows that a batch added to rollups.
func (s *Store) noteSteps(sums batchSums) {
	for kind, steps := range sums.ports {
		for begin, rows := range steps {
			s.unmergedOf(kind).add(begin, len(rows))
		}
	}
	for kind, steps := range sums.counters {
		for begin, rows := range steps {
			s.unmergedOf(kind).add(begin, len(rows))
		}
	}
}

// mergeLongRollups merges the rollups with many rows. Unmerged rows cost space and
// time, not correctness, so an error only delays it until the next maintenance.
func (s *Store) mergeLongRollups(ctx context.Context) {
	for kind := range rollups {
		if u := s.unmergedOf(kind); u.rows > max(mergeRows, mergeFactor*u.kept) {
			if _, err := s.mergeLocked(ctx, kind); err != nil {
				u.rows = 0
				s.log.Warn("rows of a rollup are not merged", "rollup", kind, "error", err)
			}
		}
	}
}

// mergeSteps adds up the rows of the steps that have several, so that one row of each
// series and step remains.
func (s *Store) mergeSteps(ctx context.Context, kind store.Kind) (uint64, error) {
	s.write.Lock()
	defer s.write.Unlock()
	return s.mergeLocked(ctx, kind)
}

// mergeLocked is mergeSteps for a caller that holds the write lock.
func (s *Store) mergeLocked(ctx context.Context, kind store.Kind) (uint64, error) {
	u, r := s.unmergedOf(kind), rollups[kind]
	if !u.all && len(u.steps) == 0 {
		return 0, nil
	}
	where := &conditions{}
	where.and(`true`)
	if !u.all {
		begins := slices.Sorted(maps.Keys(u.steps))
		where.between(begins[0], begins[len(begins)-1])
		texts := make([]string, len(begins))
		for i, ns := range begins {
			texts[i] = fmt.Sprintf(`make_timestamp_ns(%d)`, clamp(ns))
		}
		where.and(`time IN (` + strings.Join(texts, `, `) + `)`)
	}
	var before, after int64
	err := inTransaction(ctx, s.writer, func() error {
		for _, sql := range []string{
			fmt.Sprintf(`CREATE OR REPLACE TEMP TABLE merging AS SELECT time, %s, %s, count(*) AS parts FROM %s WHERE %s
				GROUP BY time, %s HAVING count(*) > 1`, r.key, r.merge, kind, where.sql(), r.key),
			fmt.Sprintf(`DELETE FROM %s WHERE %s AND (time, %s) IN (SELECT (time, %s) FROM merging)`, kind, where.sql(), r.key, r.key),
			fmt.Sprintf(`INSERT INTO %s SELECT * EXCLUDE (parts) FROM merging ORDER BY time`, kind),
		} {
			if _, err := s.writer.ExecContext(ctx, sql); err != nil {
				return err
			}
		}
		if err := s.writer.QueryRowContext(ctx, `SELECT coalesce(sum(parts), 0)::BIGINT, count(*) FROM merging`).Scan(&before, &after); err != nil {
			return err
		}
		_, err := s.writer.ExecContext(ctx, `DROP TABLE merging`)
		return err
	})
	if err != nil {
		return 0, err
	}
	*u = unmergedSteps{steps: map[int64]bool{}, kept: int(after)}
	return uint64(before - after), nil
}

package embedded

import (
	"context"
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/store"
)

// shrinking says what leaves first where the store is too large: single records,
// then the finer rollups, and verdicts last.
var shrinking = [][]store.Kind{
	{store.Flows, store.Losses, store.Ports, store.Traces, store.Counters},
	{store.PortSeconds, store.CounterSeconds},
	{store.PortMinutes, store.CounterMinutes, store.Diagnoses, store.Incidents},
}

const (
	// aim is the share of the allowed size to come down to, so that the next
	// batch does not call for the next removal.
	aim = 0.9
	// shrinkRounds bounds one maintenance. DuckDB frees whole groups of 122,880
	// rows, so the size falls in steps and an estimate may need another round.
	shrinkRounds = 8
)

// shrink removes the oldest records until the store is no larger than allowed. It
// stops where a removal freed nothing, for then a reader still holds what was
// removed; the next maintenance goes on.
func (s *Store) shrink(ctx context.Context, up *store.Upkeep) error {
	if s.cfg.MaxSize == 0 {
		return nil
	}
	size, err := s.Size(ctx)
	if err != nil {
		return err
	}
	for range shrinkRounds {
		if size <= s.cfg.MaxSize {
			return nil
		}
		share := 1 - aim*float64(s.cfg.MaxSize)/float64(size)
		if removed, err := s.removeShare(ctx, share, up); err != nil || removed == 0 {
			return err
		}
		if err := s.checkpoint(ctx); err != nil {
			return err
		}
		before := size
		if size, err = s.Size(ctx); err != nil || size >= before {
			return err
		}
	}
	return nil
}

// removeShare removes the oldest share of the rows of the first kinds that have
// any.
func (s *Store) removeShare(ctx context.Context, share float64, up *store.Upkeep) (removed uint64, err error) {
	for _, kinds := range shrinking {
		var times []string
		for _, kind := range kinds {
			times = append(times, fmt.Sprintf(`SELECT epoch_ns(%s) AS ns FROM %s`, ageColumn(kind), kind))
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
		}
		if removed > 0 {
			return removed, nil
		}
	}
	return removed, nil
}

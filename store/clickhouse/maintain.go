package clickhouse

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store"
)

// removedRows are rows that retention has removed: those before a time, up to a seq. To
// delete rows is costly for ClickHouse, so that they are hidden at once, and dropped with
// their day.
type removedRows struct{ time, seq int64 }

// covers reports whether all rows of another one are removed by this.
func (r removedRows) covers(o removedRows) bool { return r.time >= o.time && r.seq >= o.seq }

// visible selects the rows that retention has not removed.
func (s *Store) visible(kind store.Kind) (where conditions) {
	at, seq := orderOf(kind)
	for _, r := range (*s.removed.Load())[kind] {
		where.add("%s >= %s OR %s > %s", at, number(r.time), seq, number(r.seq))
	}
	return where
}

// readRemoved reads what this and other processes have removed.
func (s *Store) readRemoved(ctx context.Context) error {
	rows, err := s.conn.Query(ctx, `SELECT kind, time, seq FROM `+s.table(removedTable)+` ORDER BY kind, time DESC, seq DESC`)
	if err != nil {
		return err
	}
	defer rows.Close()
	all := map[store.Kind][]removedRows{}
	for rows.Next() {
		var kind string
		var r removedRows
		if err := rows.Scan(&kind, &r.time, &r.seq); err != nil {
			return err
		}
		k := store.Kind(kind)
		if !slices.ContainsFunc(all[k], func(o removedRows) bool { return o.covers(r) }) {
			all[k] = append(all[k], r)
		}
	}
	s.removed.Store(&all)
	return rows.Err()
}

// day is the length of a partition.
const day = 24 * time.Hour

// SetLimits sets the retention. ClickHouse has no limit of the size: the server's disks
// have.
func (s *Store) SetLimits(r store.Retention, _ model.Bytes) error {
	if err := r.Check(); err != nil {
		return err
	}
	s.retention.Store(&r)
	return nil
}

// Maintain removes records that are older than their retention. The size of the store is
// the server's business.
func (s *Store) Maintain(ctx context.Context, now time.Time) (store.MaintenanceResult, error) {
	done := store.MaintenanceResult{Removed: map[store.Kind]store.Removal{}}
	if err := s.usable(ctx); err != nil {
		return done, err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.readRemoved(ctx); err != nil {
		return done, s.failed(ctx, removedTable, err)
	}
	if err := s.setTTLs(ctx); err != nil {
		return done, s.failed(ctx, "system.tables", err)
	}
	for _, kind := range store.Kinds() {
		age, limited := (*s.retention.Load())[kind]
		if !limited {
			continue
		}
		remove := s.removeRows
		if kind == store.Incidents {
			remove = s.removeIncidents
		}
		n, err := remove(ctx, kind, store.Nanos(now.Add(-age)))
		if err != nil {
			return done, s.failed(ctx, kind, err)
		}
		done.Removed[kind] = store.Removal{Age: n}
	}
	if err := s.removeOrphanActions(ctx, done.Removed[store.Incidents].Age); err != nil {
		return done, s.failed(ctx, "incident_actions", err)
	}
	size, err := s.Size(ctx)
	done.Before, done.After = size, size
	if err != nil {
		return done, s.failed(ctx, "system.parts", err)
	}
	return done, s.readRemoved(ctx)
}

// removeRows hides rows before a time, and drops days that are hidden as a whole.
func (s *Store) removeRows(ctx context.Context, kind store.Kind, before int64) (n uint64, err error) {
	at, _ := orderOf(kind)
	where := conditions{at + " < " + number(before)}
	where = append(where, s.visible(kind)...)
	if err := s.conn.QueryRow(ctx, fmt.Sprintf(`SELECT count() FROM %s WHERE %s`, kind, where)).Scan(&n); err != nil || n == 0 {
		return n, err
	}
	err = s.conn.Exec(ctx, fmt.Sprintf(`INSERT INTO %s (kind, time, seq) SELECT %s, %s, %s`, removedTable, quote(string(kind)), number(before), number(s.bound())))
	if err != nil {
		return n, err
	}
	return n, s.dropDays(ctx, kind, before)
}

// dropDays drops the partitions whose rows are all before a time. intDiv rounds towards
// 1970, so that partition 0 has two days.
func (s *Store) dropDays(ctx context.Context, kind store.Kind, before int64) error {
	rows, err := s.conn.Query(ctx, fmt.Sprintf(`SELECT DISTINCT partition FROM %s WHERE database = %s AND table = %s AND active`, s.system("parts"), quote(s.cfg.Database), quote(s.local(string(kind)))))
	if err != nil {
		return err
	}
	var drop []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		var number int64
		if _, err := fmt.Sscan(name, &number); err == nil && lastOfDay(number) < before {
			drop = append(drop, name)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if err := rows.Close(); err != nil {
		return err
	}
	for _, name := range drop {
		if err := s.conn.Exec(ctx, s.alter(s.local(string(kind)))+` DROP PARTITION `+name); err != nil {
			return err
		}
	}
	return nil
}

// removeIncidents deletes all states of incidents whose last one is before a time. They
// are few, and have no days.
func (s *Store) removeIncidents(ctx context.Context, kind store.Kind, before int64) (n uint64, err error) {
	expired := fmt.Sprintf(`SELECT id FROM %s GROUP BY id HAVING argMax(updated, seq) < %s`, s.table(string(kind)), number(before))
	if err := s.conn.QueryRow(ctx, `SELECT count() FROM (`+expired+`)`).Scan(&n); err != nil || n == 0 {
		return n, err
	}
	rows, err := s.conn.Query(ctx, expired)
	if err != nil {
		return 0, err
	}
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return 0, err
		}
		ids = append(ids, quote(id))
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	last := number(s.bound())
	for list := range slices.Chunk(ids, maxIDs) {
		if err := s.conn.Exec(ctx, s.alter(s.local(string(kind)))+fmt.Sprintf(` DELETE WHERE seq <= %s AND id IN (%s)`, last, strings.Join(list, ", "))); err != nil {
			return n, err
		}
	}
	return n, s.waitForMutations(ctx, string(kind))
}

// maxIDs is how many ids a statement names: the server has a limit of its length.
const maxIDs = 500

// waitForMutations waits until rows are deleted.
func (s *Store) waitForMutations(ctx context.Context, table string) error {
	for {
		var left uint64
		err := s.conn.QueryRow(ctx, fmt.Sprintf(`SELECT count() FROM %s WHERE database = %s AND table = %s AND is_done = 0`,
			s.system("mutations"), quote(s.cfg.Database), quote(s.local(table)))).Scan(&left)
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Size is what the tables take on the server's disk.
func (s *Store) Size(ctx context.Context) (model.Bytes, error) {
	var n uint64
	err := s.conn.QueryRow(ctx, `SELECT sum(bytes_on_disk) FROM `+s.system("parts")+` WHERE active AND database = `+quote(s.cfg.Database)).Scan(&n)
	return model.Bytes(n), err
}

// lastOfDay is the last instant of a partition.
func lastOfDay(number int64) int64 {
	if number < 0 {
		return number * int64(day)
	}
	if number >= math.MaxInt64/int64(day) {
		return math.MaxInt64
	}
	return (number+1)*int64(day) - 1
}

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/weft-telemetry/weft/store"
)

// Repair describes a damaged file, or its log, that was set aside, and what of it
// is in the store again.
type Repair struct {
	Time     time.Time `json:"time"`
	File     string    `json:"file"`  // the file or log that was set aside
	Cause    string    `json:"cause"` // DuckDB's words
	LogOnly  bool      `json:"log_only"`
	Salvaged uint64    `json:"salvaged"`          // rows
	Lost     uint64    `json:"lost"`              // rows, at most; with LogOnly bytes of the log
	Running  bool      `json:"running"`           // rows are still being read
	Problem  string    `json:"problem,omitempty"` // why it does not proceed
}

// String is the repair in one sentence, for a person who wonders where the history is.
func (r Repair) String() string {
	at := r.Time.UTC().Format(time.RFC3339)
	if r.LogOnly {
		return fmt.Sprintf("the store's log was damaged on %s: the last %d bytes of it, some seconds of records, are not in the store but in %s", at, r.Lost, r.File)
	}
	state := fmt.Sprintf("%d rows were salvaged, at most %d lost", r.Salvaged, r.Lost)
	if r.Running {
		state = fmt.Sprintf("%d rows are salvaged so far, at most %d lost", r.Salvaged, r.Lost)
	}
	if r.Problem != "" {
		state += "; " + r.Problem
	}
	return fmt.Sprintf("the store was damaged on %s: the history before that is in %s; %s", at, r.File, state)
}

// Repairs returns the repairs whose damaged file still exists, the oldest first.
// Removing the file ends its mention.
func (s *Store) Repairs() []Repair {
	s.repairsLock.Lock()
	defer s.repairsLock.Unlock()
	var list []Repair
	for _, r := range s.repairs {
		if _, err := os.Stat(r.File); !errors.Is(err, fs.ErrNotExist) {
			list = append(list, *r)
		}
	}
	return list
}

// Alerts are the sentences of Repairs.
func (s *Store) Alerts() (list []string) {
	for _, r := range s.Repairs() {
		list = append(list, r.String())
	}
	return list
}

// openOrRepair opens the file. With Config.Repair, damage does not prevent that:
// what is damaged is set aside, and a new file begins.
func (s *Store) openOrRepair(ctx context.Context) error {
	err := s.damageOf(s.open(ctx))
	if err == nil {
		return s.resumeSalvage(ctx)
	}
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	if !s.cfg.Repair {
		return fmt.Errorf("%w; see what is damaged with weft store check %s, and salvage the rest with weft store repair %s", err, s.path, s.path)
	}
	makePrivate(s.path, s.log)
	if hasLog(s.path) {
		left := s.repairLog(ctx, err)
		if left == nil {
			return s.resumeSalvage(ctx)
		}
		if !errors.Is(left, ErrDamaged) {
			return left
		}
		err = left
	}
	return s.beginAgain(ctx, err)
}

// damageOf marks an error of opening that means damage.
func (s *Store) damageOf(err error) error {
	if errors.Is(err, errNoDatabase) {
		if ours, readErr := hasOurContent(s.path); readErr != nil || !ours {
			return err
		}
		return fmt.Errorf("%w: its header is unreadable", ErrDamaged)
	}
	if damagedAtOpen(err) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// repairLog opens the file with the readable part of its log, if only the log is
// damaged. It returns the damage that is left otherwise.
func (s *Store) repairLog(ctx context.Context, cause error) error {
	prefix, err := readablePrefix(ctx, s.path)
	switch {
	case errors.Is(err, errOtherDamage):
		return cause
	case err != nil && !damagedAtOpen(err):
		return err
	case err == nil:
		defer prefix.remove()
		if prefix.size == prefix.full {
			return cause
		}
	default: // no second name on this file system: the file is opened without its log
		prefix = nil
	}
	info, err := os.Stat(logName(s.path))
	if err != nil {
		return err
	}
	aside := logName(asideName(s.path, time.Now()))
	if err := os.Rename(logName(s.path), aside); err != nil {
		return fmt.Errorf("set the damaged log aside: %w", err)
	}
	lost := info.Size()
	if prefix != nil && prefix.size > 0 {
		lost -= prefix.size
		if err := os.Rename(logName(prefix.path), logName(s.path)); err != nil {
			return fmt.Errorf("keep the readable part of the log: %w", err)
		}
	}
	if err := s.damageOf(s.open(ctx)); err != nil {
		return err
	}
	s.log.Error("the store's log is damaged and was set aside; the store continues with its readable part",
		"file", s.path, "set_aside", aside, "lost_bytes", lost, "error", cause)
	return s.noteRepair(ctx, &Repair{Time: time.Now(), File: aside, Cause: cause.Error(), LogOnly: true, Lost: uint64(lost)})
}

// beginAgain sets the file aside and opens a new one, which gets the verdicts of
// the old one at once, and the other records in the background.
func (s *Store) beginAgain(ctx context.Context, cause error) error {
	now := time.Now()
	aside, err := setAside(s.path, now)
	if err != nil {
		return errors.Join(cause, err)
	}
	s.log.Error("the store is damaged and was set aside; a new file begins, and gets what can be read of the old one",
		"file", s.path, "set_aside", aside, "error", cause)
	if err = s.open(ctx); err == nil {
		if err = s.noteRepair(ctx, &Repair{Time: now, File: aside, Cause: cause.Error(), Running: true}); err != nil {
			err = errors.Join(err, s.writer.Close(), s.db.Close())
		}
	}
	if err != nil {
		// Such as a full disk. A new file that does not name the old one would never
		// get its rows, so the next attempt has to find the old one.
		return errors.Join(err, putBack(aside, s.path))
	}
	return s.resumeSalvage(ctx)
}

// noteRepair adds a repair to the file: a row for each kind that is to be salvaged,
// or one for a log.
func (s *Store) noteRepair(ctx context.Context, r *Repair) error {
	kinds := store.Kinds()
	if r.LogOnly {
		kinds = []store.Kind{""}
	}
	err := inTransaction(ctx, s.writer, func() error {
		for _, kind := range kinds {
			if _, err := s.writer.ExecContext(ctx, `INSERT INTO weft_salvage VALUES (?, ?, ?, ?, 0, 0, ?, ?)`,
				r.Time.UTC(), filepath.Base(r.File), r.Cause, string(kind), r.Lost, !r.Running); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.loadRepairs(ctx); err != nil {
		return err
	}
	s.hot.Store(s.newRecentCache())
	return nil
}

// pendingRepairs are those that rows are still to come from.
func (s *Store) pendingRepairs() (pending []*Repair) {
	s.repairsLock.Lock()
	defer s.repairsLock.Unlock()
	for _, r := range s.repairs {
		if r.Running {
			pending = append(pending, r)
		}
	}
	return pending
}

// loadRepairs reads the repairs of the file.
func (s *Store) loadRepairs(ctx context.Context) error {
	rows, err := s.writer.QueryContext(ctx, `SELECT min(found), file, min(cause), bool_and(kind = ''), sum(salvaged)::UBIGINT, sum(lost)::UBIGINT,
		NOT bool_and(done) FROM weft_salvage GROUP BY file ORDER BY min(found), file`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var list []*Repair
	for rows.Next() {
		r := &Repair{}
		if err := rows.Scan(&r.Time, &r.File, &r.Cause, &r.LogOnly, &r.Salvaged, &r.Lost, &r.Running); err != nil {
			return err
		}
		r.File = filepath.Join(filepath.Dir(s.path), r.File)
		list = append(list, r)
	}
	s.repairsLock.Lock()
	s.repairs = list
	s.repairsLock.Unlock()
	return rows.Err()
}

// updateRepair changes a repair under its lock.
func (s *Store) updateRepair(r *Repair, change func(*Repair)) {
	s.repairsLock.Lock()
	defer s.repairsLock.Unlock()
	change(r)
}

// repairInUse repairs a file that turned out to be damaged while it is open.
// Appends and queries wait for it. If it fails, such as on a full disk, they fail
// until the next Maintain has tried again.
func (s *Store) repairInUse(ctx context.Context, cause error) error {
	s.stopSalvage()
	s.lifetime.Lock()
	defer s.lifetime.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	s.write.Lock()
	defer s.write.Unlock()
	opened := s.unopened == nil
	if opened {
		// What the file cannot take any more stays in its log, which is set aside too.
		_ = s.writer.Close()
		_ = s.db.Close()
	}
	s.damaged.Store(nil)
	clear(s.unmerged)
	ctx = context.WithoutCancel(ctx)
	var err error
	if opened && !invalidated(cause) {
		err = s.beginAgain(ctx, fmt.Errorf("%w: %w", ErrDamaged, cause))
	} else {
		err = s.openOrRepair(ctx)
	}
	if err != nil {
		err = fmt.Errorf("repair store %s: %w", s.path, err)
	}
	s.unopened = err
	return err
}

package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// incidentActions is the table of what operators did about incidents. It is small: a
// row is a request of a person.
const incidentActions = `
CREATE TABLE incident_actions (
	time TIMESTAMP_NS NOT NULL, seq BIGINT NOT NULL, incident VARCHAR NOT NULL,
	kind VARCHAR NOT NULL, who VARCHAR NOT NULL, text VARCHAR NOT NULL, until TIMESTAMP_NS);`

// AppendIncidentAction stores an action. When it returns nil, the action is on disk.
func (s *Store) AppendIncidentAction(ctx context.Context, a record.IncidentAction) error {
	if err := store.CheckIncidentAction(&a); err != nil {
		return err
	}
	leave, err := s.beginWrite()
	if err != nil {
		return err
	}
	defer leave()
	if err := s.insertAction(ctx, &a); err != nil {
		if unavailable(err) {
			err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
		return fmt.Errorf("store an action about incident %s: %w", a.Incident, err)
	}
	return nil
}

// insertAction adds a row, unless it is there. The caller holds the write lock.
func (s *Store) insertAction(ctx context.Context, a *record.IncidentAction) error {
	var until any
	if !a.Until.IsZero() {
		until = store.Nanos(a.Until)
	}
	_, err := s.writer.ExecContext(ctx, `INSERT INTO incident_actions
		SELECT make_timestamp_ns($1::BIGINT), (SELECT coalesce(max(seq), 0) + 1 FROM incident_actions), $2, $3, $4, $5, make_timestamp_ns($6::BIGINT)
		WHERE NOT EXISTS (FROM incident_actions WHERE (time, incident, kind, who, text) = (make_timestamp_ns($1::BIGINT), $2, $3, $4, $5))`,
		store.Nanos(a.Time), a.Incident, a.Kind, a.Who, a.Text, until)
	return err
}

// IncidentActions returns the newest actions, at most limit, of one incident or of all
// (""), oldest first.
func (s *Store) IncidentActions(ctx context.Context, incident string, limit int) ([]record.IncidentAction, error) {
	leave, err := s.beginWork()
	if err != nil {
		return nil, err
	}
	defer leave()
	return readActions(ctx, s.db, incident, limit)
}

func readActions(ctx context.Context, db *sql.DB, incident string, limit int) ([]record.IncidentAction, error) {
	rows, err := db.QueryContext(ctx, `SELECT time, incident, kind, who, text, until FROM incident_actions
		WHERE ? IN ('', incident) ORDER BY seq DESC LIMIT ?`, incident, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []record.IncidentAction{}
	for rows.Next() {
		var a record.IncidentAction
		var until sql.NullTime
		if err := rows.Scan(&a.Time, &a.Incident, &a.Kind, &a.Who, &a.Text, &until); err != nil {
			return nil, err
		}
		a.Until = until.Time
		list = append(list, a)
	}
	slices.Reverse(list)
	return list, rows.Err()
}

// removeOrphanActions removes the actions of incidents that retention has removed.
func (s *Store) removeOrphanActions(ctx context.Context) error {
	_, err := s.exec(ctx, `DELETE FROM incident_actions WHERE incident NOT IN (SELECT id FROM incidents)`)
	return err
}

// salvageActions brings over the actions of a damaged file, as far as they can be read.
// What is there already is not added again, so that it may be repeated.
func (s *Store) salvageActions(ctx context.Context, from *damagedFile, begin func() (func(), error)) error {
	list, err := readActions(ctx, from.db, "", math.MaxInt32)
	if err != nil {
		s.log.Warn("actions of operators in the damaged store cannot be read", "error", err) // an older file has none
		return nil
	}
	leave, err := begin()
	if err != nil {
		return err
	}
	defer leave()
	for i := range list {
		if store.CheckIncidentAction(&list[i]) != nil {
			continue
		}
		if err := s.insertAction(ctx, &list[i]); err != nil {
			return fmt.Errorf("salvage actions of operators: %w", err)
		}
	}
	return nil
}

package clickhouse

import (
	"context"
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// AppendIncidentAction stores what an operator did about an incident.
func (s *Store) AppendIncidentAction(ctx context.Context, a record.IncidentAction) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if err := store.CheckIncidentAction(&a); err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	seq := s.seq(s.allocate(1))
	defer s.done()
	until := int64(0)
	if !a.Until.IsZero() {
		until = a.Until.UnixNano()
	}
	err := s.conn.Exec(ctx, fmt.Sprintf(`INSERT INTO incident_actions (time, seq, incident, kind, who, text, until, muted) SELECT %s, %d, %s, %s, %s, %s, %s, %d`,
		number(a.Time.UnixNano()), seq, quote(a.Incident), quote(a.Kind), quote(a.Who), quote(a.Text), number(until), truth(!a.Until.IsZero())))
	if err != nil {
		return fmt.Errorf("clickhouse: store an action about incident %s: %w: %w", a.Incident, store.ErrUnavailable, err)
	}
	return nil
}

// IncidentActions returns the newest actions, at most limit, of one incident or of all
// (""), oldest first.
func (s *Store) IncidentActions(ctx context.Context, incident string, limit int) ([]record.IncidentAction, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	var where conditions
	if incident != "" {
		where.add("incident = %s", quote(incident))
	}
	rows, err := s.conn.Query(ctx, fmt.Sprintf(`SELECT time, incident, kind, who, text, until, muted FROM incident_actions WHERE %s ORDER BY seq DESC LIMIT %d`, where, limit))
	if err != nil {
		return nil, s.failed(ctx, "incident_actions", err)
	}
	defer rows.Close()
	list := []record.IncidentAction{}
	for rows.Next() {
		var a record.IncidentAction
		var at, until int64
		var muted uint8
		if err := rows.Scan(&at, &a.Incident, &a.Kind, &a.Who, &a.Text, &until, &muted); err != nil {
			return nil, s.failed(ctx, "incident_actions", err)
		}
		if a.Time = instant(at); muted != 0 {
			a.Until = instant(until)
		}
		list = append(list, a)
	}
	slices.Reverse(list)
	return list, rows.Err()
}

// removeOrphanActions removes the actions of incidents, if retention has removed some.
func (s *Store) removeOrphanActions(ctx context.Context, removed uint64) error {
	if removed == 0 {
		return nil
	}
	if err := s.conn.Exec(ctx, s.alter(s.local("incident_actions"))+` DELETE WHERE incident NOT IN (SELECT id FROM `+s.table("incidents")+`)`); err != nil {
		return err
	}
	return s.waitForMutations(ctx, "incident_actions")
}

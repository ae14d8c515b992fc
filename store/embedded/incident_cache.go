package embedded

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/recent"
)

// incidentCache has all incidents in memory, as long as they fit: they are few, and
// most clients query them. They change and expire in any order, so recent.Set does
// not apply.
type incidentCache struct {
	most int
	now  atomic.Pointer[[]cachedIncident] // newest first; nil: they do not fit
}

type cachedIncident struct {
	recent.Position
	incident record.Incident
}

// loadIncidents reads the incidents of a file.
func (s *Store) loadIncidents(ctx context.Context, most model.Bytes) error {
	s.ledger.most = int(most)
	var bytes int
	size := `SELECT coalesce(sum(300 + strlen(body) + strlen(summary)), 0)::BIGINT FROM incidents`
	if err := s.writer.QueryRowContext(ctx, size).Scan(&bytes); err != nil || bytes > s.ledger.most {
		return err
	}
	rows, err := s.writer.QueryContext(ctx, fmt.Sprintf(`SELECT time, seq, %s FROM incidents`, incidentTable.columns))
	if err != nil {
		return err
	}
	defer rows.Close()
	all := []cachedIncident{}
	for rows.Next() {
		var n cachedIncident
		var at recordPosition
		if err := incidentTable.scan(rows, &n.incident, &at); err != nil {
			return err
		}
		n.Position = recent.Position{Time: at.time.UnixNano(), Seq: at.seq}
		all = append(all, n)
	}
	s.ledger.setAll(all)
	return rows.Err()
}

// setAll sets the incidents, or disables the cache if there are too many.
func (l *incidentCache) setAll(all []cachedIncident) {
	bytes := 0
	for i := range all {
		bytes += incidentTable.size(&all[i].incident)
	}
	if bytes > l.most {
		l.now.Store(nil)
		return
	}
	slices.SortFunc(all, func(a, b cachedIncident) int { return b.Compare(a.Position) })
	l.now.Store(&all)
}

// update adds or replaces incidents, by their sequence numbers.
func (l *incidentCache) update(changed map[int64]*record.Incident) {
	old := l.now.Load()
	if old == nil || len(changed) == 0 {
		return
	}
	all := make([]cachedIncident, 0, len(*old)+len(changed))
	for _, n := range *old {
		if changed[n.Seq] == nil {
			all = append(all, n)
		}
	}
	for seq, r := range changed {
		n := cachedIncident{recent.Position{Time: r.Begin.UnixNano(), Seq: seq}, *r}
		n.incident.Begin, n.incident.Updated = utc(r.Begin), utc(r.Updated)
		if !r.End.IsZero() {
			n.incident.End = utc(r.End)
		}
		n.incident.Body = append([]byte(nil), r.Body...)
		all = append(all, n)
	}
	l.setAll(all)
}

// removeBefore removes those whose last update was before a time.
func (l *incidentCache) removeBefore(before int64) {
	if old := l.now.Load(); old != nil {
		l.setAll(slices.DeleteFunc(slices.Clone(*old), func(n cachedIncident) bool { return n.incident.Updated.UnixNano() < before }))
	}
}

// newestFirst iterates over the incidents that match a query, newest first.
func (l *incidentCache) newestFirst(all []cachedIncident, q *record.Query,
	before recent.Position,
) iter.Seq2[recent.Position, *record.Incident] {
	first, last := store.TimeRange(*q)
	return func(yield func(recent.Position, *record.Incident) bool) {
		for i := range all {
			n := &all[i]
			r := &n.incident
			if first > last || n.Time > last || n.Compare(before) >= 0 ||
				!q.From.IsZero() && !r.End.IsZero() && r.End.Before(time.Unix(0, first)) ||
				q.Name != "" && q.Name != r.ID ||
				q.Node != "" && q.Node != r.Location && !strings.HasPrefix(r.Location, q.Node+":") {
				continue
			}
			if !yield(n.Position, r) {
				return
			}
		}
	}
}

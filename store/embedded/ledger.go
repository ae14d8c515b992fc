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

// ledger has all incidents in memory, as long as they fit: they are few, and
// everybody asks for them. They change and leave in any order, so they are no
// recent.Set.
type ledger struct {
	most int
	now  atomic.Pointer[[]noted] // newest first; nil: they do not fit
}

type noted struct {
	recent.Place
	incident record.Incident
}

// readLedger takes the incidents of a file.
func (s *Store) readLedger(ctx context.Context, most model.Bytes) error {
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
	all := []noted{}
	for rows.Next() {
		var n noted
		var at place
		if err := incidentTable.scan(rows, &n.incident, &at); err != nil {
			return err
		}
		n.Place = recent.Place{Time: at.time.UnixNano(), Seq: at.seq}
		all = append(all, n)
	}
	s.ledger.put(all)
	return rows.Err()
}

// put sets the incidents, or gives up where there are too many.
func (l *ledger) put(all []noted) {
	bytes := 0
	for i := range all {
		bytes += incidentTable.size(&all[i].incident)
	}
	if bytes > l.most {
		l.now.Store(nil)
		return
	}
	slices.SortFunc(all, func(a, b noted) int { return b.Compare(a.Place) })
	l.now.Store(&all)
}

// add takes incidents that are new or have changed, by their numbers.
func (l *ledger) add(changed map[int64]*record.Incident) {
	old := l.now.Load()
	if old == nil || len(changed) == 0 {
		return
	}
	all := make([]noted, 0, len(*old)+len(changed))
	for _, n := range *old {
		if changed[n.Seq] == nil {
			all = append(all, n)
		}
	}
	for seq, r := range changed {
		n := noted{recent.Place{Time: r.Begin.UnixNano(), Seq: seq}, *r}
		n.incident.Begin, n.incident.Updated = utc(r.Begin), utc(r.Updated)
		if !r.End.IsZero() {
			n.incident.End = utc(r.End)
		}
		n.incident.Body = append([]byte(nil), r.Body...)
		all = append(all, n)
	}
	l.put(all)
}

// forget drops those whose last update was before an instant.
func (l *ledger) forget(before int64) {
	if old := l.now.Load(); old != nil {
		l.put(slices.DeleteFunc(slices.Clone(*old), func(n noted) bool { return n.incident.Updated.UnixNano() < before }))
	}
}

// back goes through the incidents that a query asks for, newest first.
func (l *ledger) back(all []noted, q *record.Query, before recent.Place) iter.Seq2[recent.Place, *record.Incident] {
	first, last := store.Range(*q)
	return func(yield func(recent.Place, *record.Incident) bool) {
		for i := range all {
			n := &all[i]
			r := &n.incident
			if first > last || n.Time > last || n.Compare(before) >= 0 ||
				!q.From.IsZero() && !r.End.IsZero() && r.End.Before(time.Unix(0, first)) ||
				q.Name != "" && q.Name != r.ID ||
				q.Node != "" && q.Node != r.Place && !strings.HasPrefix(r.Place, q.Node+":") {
				continue
			}
			if !yield(n.Place, r) {
				return
			}
		}
	}
}

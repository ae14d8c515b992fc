package embedded

import (
	"context"
	"errors"
)

// WaitForSalvage waits until the salvage in the background has ended.
func (s *Store) WaitForSalvage() {
	s.repairsLock.Lock()
	done := s.salvaged
	s.repairsLock.Unlock()
	if done != nil {
		<-done
	}
}

// MarkDamaged makes the next Maintain repair the file.
func (s *Store) MarkDamaged() {
	err := errors.New("Corrupt database file, says a test")
	s.damaged.Store(&err)
}

// DamagedAtOpen is damagedAtOpen.
func DamagedAtOpen(err error) bool { return damagedAtOpen(err) }

// SetMaxNumbered limits the flows and paths whose numbers are in memory.
func (s *Store) SetMaxNumbered(most int) { s.flowIDs.most = most }

// NumberedRows counts the rows of flow_keys and flow_paths.
func (s *Store) NumberedRows(ctx context.Context) (flows, paths int) {
	err := s.db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM flow_keys), (SELECT count(*) FROM flow_paths)`).Scan(&flows, &paths)
	if err != nil {
		panic(err)
	}
	return flows, paths
}

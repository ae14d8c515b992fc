package embedded

import "errors"

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

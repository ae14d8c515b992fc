package embedded

import (
	"fmt"
	"maps"
	"runtime"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store"
)

// Config bounds a store.
type Config struct {
	Retention store.Retention
	// MaxSize is the most that the records may take on disk; Maintain removes
	// the oldest above it. 0 is no bound. DuckDB gives freed room to new records
	// before it gives it back to the disk, so the file stays near its largest.
	MaxSize model.Bytes
	// MaxPage is the most records of one answer, and of one that names no limit.
	MaxPage int
	// MaxAnswer is about the most bytes of one answer: a page ends early where
	// its records are large.
	MaxAnswer model.Bytes
	// QueryTime is the longest that a query may take.
	QueryTime time.Duration
	// Readers is how many queries of the tables run at once, and Waiting how many
	// more may wait, within QueryTime. Others are refused: those that memory
	// answers must not stand in their queue.
	Readers int
	Waiting int
	// CacheSize is the memory for the newest records, from which questions about the
	// present are answered without DuckDB. 0 is none.
	CacheSize model.Bytes
	// Memory is what DuckDB may use for its cache and for queries.
	Memory model.Bytes
	// Threads is how many cores DuckDB may use. 0 is all.
	Threads int
}

// DefaultConfig suits a laptop and a fabric of some hundred ports.
func DefaultConfig() Config {
	return Config{
		Retention: store.DefaultRetention(),
		MaxSize:   10 * model.GB,
		MaxPage:   2000,
		MaxAnswer: 16 * model.MiB,
		QueryTime: 5 * time.Second,
		Readers:   max(2, runtime.NumCPU()/2),
		Waiting:   32,
		CacheSize:       256 * model.MiB,
		Memory:    512 * model.MiB,
		Threads:   max(1, runtime.NumCPU()/2), // the other half is for what comes in and who asks
	}
}

// limits are what SetLimits changes.
type limits struct {
	retention store.Retention
	size      model.Bytes
}

// SetLimits changes how old and how large the records may become, from the next
// Maintain on.
func (s *Store) SetLimits(r store.Retention, size model.Bytes) error {
	c := s.cfg
	c.Retention, c.MaxSize = r, size
	if err := c.Check(); err != nil {
		return err
	}
	s.limits.Store(&limits{maps.Clone(r), size})
	return nil
}

// minSize is above what the tables take when they are empty.
const minSize = 8 * model.MiB

// minMemory is what DuckDB needs to work at all with several connections.
const minMemory = 64 * model.MiB

// Check complains about the first field that makes no sense.
func (c Config) Check() error {
	switch {
	case c.MaxSize != 0 && c.MaxSize < minSize:
		return fmt.Errorf("store: max size %v, want 0 (no bound) or at least %v", c.MaxSize, minSize)
	case c.MaxPage < 1:
		return fmt.Errorf("store: max page %d, want at least 1", c.MaxPage)
	case c.MaxAnswer < 1:
		return fmt.Errorf("store: max answer %v, want at least 1B", c.MaxAnswer)
	case c.QueryTime <= 0:
		return fmt.Errorf("store: query time %v, want more than 0", c.QueryTime)
	case c.Readers < 1:
		return fmt.Errorf("store: readers %d, want at least 1", c.Readers)
	case c.Waiting < 0:
		return fmt.Errorf("store: waiting %d, want 0 or more", c.Waiting)
	case c.CacheSize < 0:
		return fmt.Errorf("store: hot %v, want 0 (none) or more", c.CacheSize)
	case c.Memory < minMemory:
		return fmt.Errorf("store: memory %v, want at least %v", c.Memory, minMemory)
	case c.Threads < 0:
		return fmt.Errorf("store: threads %d, want 0 (all cores) or more", c.Threads)
	}
	if err := c.Retention.Check(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

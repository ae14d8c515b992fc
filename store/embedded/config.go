package embedded

import (
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store"
)

// Config holds the limits of a store.
type Config struct {
	Retention store.Retention
	// MaxSize is the maximum size of the records on disk; Maintain removes the
	// oldest above it. 0 means no limit. DuckDB reuses freed space for new records
	// before it returns it to the disk, so the file stays near its largest size.
	MaxSize model.Bytes
	// MaxPage is the maximum number of records of one page, and the default limit.
	MaxPage int
	// MaxAnswer is about the maximum size of one page: it ends early if its records
	// are large.
	MaxAnswer model.Bytes
	// QueryTime is the time limit of a query.
	QueryTime time.Duration
	// Readers is the maximum number of concurrent queries of the tables, and
	// Waiting that of queries that wait for them, within QueryTime. Others are
	// refused. Queries that memory answers do not wait.
	Readers int
	Waiting int
	// CacheSize is the memory for the newest records, which answers queries about
	// recent times without DuckDB. 0 means none.
	CacheSize model.Bytes
	// NumberedFlows limits the flows whose numbers are in memory, at some 50 bytes each.
	// A fabric with more than half of it at a time may write texts again.
	NumberedFlows int
	// Memory is the memory limit of DuckDB for its cache and for queries.
	Memory model.Bytes
	// Threads is the number of cores that DuckDB may use. 0 means all.
	Threads int
	// Repair sets a damaged file aside when it is opened or maintained, begins a new
	// one, and salvages what can be read. Without it a damaged file is an error.
	Repair bool
	// Log is for repairs and changed file modes; nil means none.
	Log *slog.Logger
}

// DefaultConfig suits a laptop and a fabric of several hundred ports.
func DefaultConfig() Config {
	return Config{
		Retention: store.DefaultRetention(),
		MaxSize:   10 * model.GB,
		MaxPage:   2000,
		MaxAnswer: 16 * model.MiB,
		QueryTime: 5 * time.Second,
		Readers:   max(2, runtime.NumCPU()/2),
		Waiting:   32,
		CacheSize: 256 * model.MiB,

		NumberedFlows: 1 << 19,

		Memory:  512 * model.MiB,
		Threads: max(1, runtime.NumCPU()/2), // the other half is for ingest and the API
	}
}

// limits are the settings that SetLimits changes.
type limits struct {
	retention store.Retention
	size      model.Bytes
}

// SetLimits changes the retention and the maximum size, from the next Maintain on.
func (s *Store) SetLimits(r store.Retention, size model.Bytes) error {
	c := s.cfg
	c.Retention, c.MaxSize = r, size
	if err := c.Check(); err != nil {
		return err
	}
	s.limits.Store(&limits{maps.Clone(r), size})
	return nil
}

// minSize is above the size of empty tables.
const minSize = 8 * model.MiB

// minMemory is the minimum that DuckDB needs with several connections.
const minMemory = 64 * model.MiB

// Check returns an error for the first invalid field.
func (c Config) Check() error {
	switch {
	case c.MaxSize != 0 && c.MaxSize < minSize:
		return fmt.Errorf("store: max size %v, want 0 (no limit) or at least %v", c.MaxSize, minSize)
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
		return fmt.Errorf("store: cache size %v, want 0 (none) or more", c.CacheSize)
	case c.NumberedFlows < 1:
		return fmt.Errorf("store: numbered flows %d, want at least 1", c.NumberedFlows)
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

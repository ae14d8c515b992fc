package epoch

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// Config is what a switch remembers and how it answers.
type Config struct {
	EpochLength time.Duration // of an epoch
	Epochs      int           // that are kept, the present one included
	// FlowSlots is the size of the flow table of one epoch, a power of two; 0 keeps
	// no flows, as a switch does that has room for ports and meters only.
	FlowSlots int
	// MaxEvicted bounds the flows that lost their place in the table and wait in
	// the switch's own memory.
	MaxEvicted int

	// EpisodeThreshold is what a queue must hold to be noted as deep, as the time that its
	// link takes to send it.
	EpisodeThreshold time.Duration

	// ReadoutTime is how long the switch CPU takes to read the frozen
	// state out; Interval is for how long a snapshot also answers later polls.
	ReadoutTime, SnapshotReuse time.Duration
	// PollDedupWindow is for how long a poll that was seen is not taken again.
	PollDedupWindow time.Duration

	List       dta.ListID // where reports go
	ChunkBytes int        // bytes of a report's chunks
	MaxChunks  int        // most of them
	Seed       uint64     // of the flow table's hash
}

// DefaultConfig keeps two epochs of 1 ms and 4,096 flows in each, the figures
// of the paper's evaluation, and takes a switch CPU's 80 ms to read them.
// Victims of one incident complain within tens of microseconds of each other; a
// snapshot that is older shows the time before it.
func DefaultConfig() Config {
	return Config{
		EpochLength: time.Millisecond, Epochs: 2, FlowSlots: 4096, MaxEvicted: 4096, EpisodeThreshold: 4 * time.Microsecond,
		ReadoutTime: ReadoutTimeFor(2), SnapshotReuse: 50 * time.Microsecond, PollDedupWindow: 500 * time.Microsecond,
		ChunkBytes: 1400, MaxChunks: 4096,
	}
}

// ReadoutTimeFor is what the processor of a switch takes to read some epochs, as
// the paper measured: 80 ms for two, 120 ms for four.
func ReadoutTimeFor(epochs int) time.Duration {
	return time.Duration(40+20*epochs) * time.Millisecond
}

// Check returns an error for the first invalid field.
func (c *Config) Check() error {
	switch {
	case c.EpochLength <= 0:
		return fmt.Errorf("epoch: length %v, want more than 0", c.EpochLength)
	case c.Epochs < 1 || c.Epochs > 64:
		return fmt.Errorf("epoch: %d epochs, want 1 to 64", c.Epochs)
	case c.FlowSlots < 0 || c.FlowSlots&(c.FlowSlots-1) != 0:
		return fmt.Errorf("epoch: table of %d flows, want 0 or a power of two", c.FlowSlots)
	case c.EpisodeThreshold <= 0:
		return fmt.Errorf("epoch: queues are deep from %v, want more than 0", c.EpisodeThreshold)
	case c.MaxEvicted < 0 || c.ReadoutTime < 0 || c.SnapshotReuse < 0 || c.PollDedupWindow < 0:
		return fmt.Errorf("epoch: evicted %d, collect %v, interval %v, again %v; want none below 0", c.MaxEvicted, c.ReadoutTime, c.SnapshotReuse, c.PollDedupWindow)
	case c.ChunkBytes < epoch.Overhead+epoch.Flow6Size || c.MaxChunks < 1 || c.MaxChunks > 1<<16-1:
		return fmt.Errorf("epoch: %d chunks of %d bytes, want 1 to 65535 of at least %d", c.MaxChunks, c.ChunkBytes, epoch.Overhead+epoch.Flow6Size)
	}
	return nil
}

// Stats account for what the program did and could not do.
type Stats struct {
	Packets     uint64 // counted
	Evicted     uint64 // flows that lost their place in the table
	EvictedLost uint64 // of those: found no room in the switch's memory

	Polls            uint64 // received
	Duplicates       uint64 // of those: seen before
	Malformed        uint64
	HopLimitExceeded uint64 // advanceTo the end of their hop limit
	Forwarded        uint64 // copies sent on

	Snapshots       uint64
	SnapshotsReused uint64 // polls that an earlier snapshot answered
	Reports         uint64 // chunks sent
}

package epoch

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// Config is which telemetry a switch keeps and how it answers polls.
type Config struct {
	EpochLength time.Duration // of an epoch
	Epochs      int           // epochs kept, the current one included
	// FlowSlots is the size of the flow table of one epoch, a power of two; 0
	// keeps no flows, for a switch with memory for ports and meters only.
	FlowSlots int
	// MaxEvicted bounds the flows that were evicted from the table to the switch's
	// memory.
	MaxEvicted int

	// EpisodeThreshold is the queue length that starts a congestion episode, as
	// the time that the link takes to send it.
	EpisodeThreshold time.Duration

	// ReadoutTime is how long the switch CPU takes to read a snapshot;
	// SnapshotReuse is how long a snapshot also answers later polls.
	ReadoutTime, SnapshotReuse time.Duration
	// PollDedupWindow is how long a poll suppresses its duplicates.
	PollDedupWindow time.Duration

	List       dta.ListID // where reports go
	ChunkBytes int        // bytes of a report's chunks
	MaxChunks  int        // maximum per report
	Seed       uint64     // of the flow table's hash
}

// DefaultConfig keeps two epochs of 1 ms and 4,096 flows in each, the figures
// of the paper's evaluation, and takes a switch CPU's 80 ms to read them. Hosts
// of one incident send their requests within tens of microseconds of each other;
// an older snapshot shows the time before the incident.
func DefaultConfig() Config {
	return Config{
		EpochLength: time.Millisecond, Epochs: 2, FlowSlots: 4096, MaxEvicted: 4096, EpisodeThreshold: 4 * time.Microsecond,
		ReadoutTime: ReadoutTimeFor(2), SnapshotReuse: 50 * time.Microsecond, PollDedupWindow: 500 * time.Microsecond,
		ChunkBytes: 1400, MaxChunks: 4096,
	}
}

// ReadoutTimeFor returns how long a switch CPU takes to read this many epochs, as
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
		return fmt.Errorf("epoch: episode threshold %v, want more than 0", c.EpisodeThreshold)
	case c.MaxEvicted < 0 || c.ReadoutTime < 0 || c.SnapshotReuse < 0 || c.PollDedupWindow < 0:
		return fmt.Errorf("epoch: max evicted %d, readout time %v, snapshot reuse %v, poll dedup window %v; "+
			"want none below 0", c.MaxEvicted, c.ReadoutTime, c.SnapshotReuse, c.PollDedupWindow)
	case c.ChunkBytes < epoch.Overhead+epoch.MaxIntervalsSize || c.MaxChunks < 1 || c.MaxChunks > 1<<16-1:
		return fmt.Errorf("epoch: %d chunks of %d bytes, want 1 to 65535 of at least %d", c.MaxChunks, c.ChunkBytes,
			epoch.Overhead+epoch.MaxIntervalsSize)
	}
	return nil
}

// Stats are the program's counters.
type Stats struct {
	Packets     uint64 // counted
	Evicted     uint64 // flows evicted from the table
	EvictedLost uint64 // of those: lost, the switch's memory was full

	Polls            uint64 // received
	Duplicates       uint64 // of those: duplicates
	Malformed        uint64
	HopLimitExceeded uint64 // not forwarded: hop limit 0
	Forwarded        uint64 // copies forwarded
	Returned         uint64 // polls that turned round, onto the path of acknowledgements

	Snapshots       uint64
	SnapshotsReused uint64 // polls that an earlier snapshot answered
	Reports         uint64 // chunks sent
}

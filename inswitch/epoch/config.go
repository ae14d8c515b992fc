package epoch

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// Config is what a switch remembers and how it answers.
type Config struct {
	Length time.Duration // of an epoch
	Epochs int           // that are kept, the present one included
	// Flows is the size of the flow table of one epoch, a power of two; 0 keeps
	// no flows, as a switch does that has room for ports and meters only.
	Flows int
	// Evicted bounds the flows that lost their place in the table and wait in
	// the switch's own memory.
	Evicted int

	// Deep is what a queue must hold to be noted as deep, as the time that its
	// link takes to send it.
	Deep time.Duration

	// Collect is how long the switch's processor takes to read the frozen
	// state out; Interval is for how long a snapshot also answers later polls.
	Collect, Interval time.Duration
	// Again is for how long a poll that was seen is not taken again.
	Again time.Duration

	List   dta.ListID // where reports go
	Chunk  int        // bytes of a report's chunks
	Chunks int        // most of them
	Seed   uint64     // of the flow table's hash
}

// DefaultConfig keeps two epochs of 1 ms and 4,096 flows in each, the figures
// of the paper's evaluation, and takes a switch processor's 80 ms to read them.
// Victims of one incident complain within tens of microseconds of each other; a
// snapshot that is older shows the time before it.
func DefaultConfig() Config {
	return Config{
		Length: time.Millisecond, Epochs: 2, Flows: 4096, Evicted: 4096, Deep: 4 * time.Microsecond,
		Collect: CollectTime(2), Interval: 50 * time.Microsecond, Again: 500 * time.Microsecond,
		Chunk: 1400, Chunks: 4096,
	}
}

// CollectTime is what the processor of a switch takes to read some epochs, as
// the paper measured: 80 ms for two, 120 ms for four.
func CollectTime(epochs int) time.Duration {
	return time.Duration(40+20*epochs) * time.Millisecond
}

// Check complains about what cannot work.
func (c *Config) Check() error {
	switch {
	case c.Length <= 0:
		return fmt.Errorf("epoch: length %v, want more than 0", c.Length)
	case c.Epochs < 1 || c.Epochs > 64:
		return fmt.Errorf("epoch: %d epochs, want 1 to 64", c.Epochs)
	case c.Flows < 0 || c.Flows&(c.Flows-1) != 0:
		return fmt.Errorf("epoch: table of %d flows, want 0 or a power of two", c.Flows)
	case c.Deep <= 0:
		return fmt.Errorf("epoch: queues are deep from %v, want more than 0", c.Deep)
	case c.Evicted < 0 || c.Collect < 0 || c.Interval < 0 || c.Again < 0:
		return fmt.Errorf("epoch: evicted %d, collect %v, interval %v, again %v; want none below 0", c.Evicted, c.Collect, c.Interval, c.Again)
	case c.Chunk < epoch.Overhead+epoch.Flow6Size || c.Chunks < 1 || c.Chunks > 1<<16-1:
		return fmt.Errorf("epoch: %d chunks of %d bytes, want 1 to 65535 of at least %d", c.Chunks, c.Chunk, epoch.Overhead+epoch.Flow6Size)
	}
	return nil
}

// Stats account for what the program did and could not do.
type Stats struct {
	Packets uint64 // counted
	Evicted uint64 // flows that lost their place in the table
	Lost    uint64 // of those: found no room in the switch's memory

	Polls     uint64 // received
	Repeated  uint64 // of those: seen before
	Malformed uint64
	Exhausted uint64 // at the end of their hop limit
	Passed    uint64 // copies sent on

	Snapshots uint64
	Reused    uint64 // polls that an earlier snapshot answered
	Reports   uint64 // chunks sent
}

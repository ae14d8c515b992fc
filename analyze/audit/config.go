package audit

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/paths"
)

// Config is the configuration of an Auditor.
type Config struct {
	Ports *paths.Ports
	Slot  time.Duration // of flowsets
	// Block is how long counts are summed up for one comparison. Blocks of them are a
	// window: what was in flight at the ends of a window is small against its sum, and the
	// blocks show how much that is.
	Block  time.Duration
	Blocks int
	// MinPackets is how many packets a window must have: fewer prove nothing.
	MinPackets uint64
	// PacketShare and ByteShare are the least deviations that are named. Counters of bytes
	// include what switches add to packets on their path, such as labels.
	PacketShare, ByteShare float64
	// Hold is how long a finding lasts after a window last showed it.
	Hold time.Duration
	// SilentAfter is how long a source may send nothing while others count its packets. A
	// counter may take four of its intervals, if that is longer.
	SilentAfter time.Duration
}

// DefaultConfig names a source that is wrong by 0.7 % after seven blocks: 0.7 s.
func DefaultConfig(ports *paths.Ports, slot time.Duration) Config {
	return Config{
		Ports: ports, Slot: slot, Block: 10 * slot, Blocks: 6, MinPackets: 2000, PacketShare: 0.007, ByteShare: 0.007,
		Hold: 2 * time.Second, SilentAfter: 50 * slot,
	}
}

// maxBlocks bounds Config.Blocks.
const maxBlocks = 8

func (c *Config) check() error {
	switch {
	case c.Ports == nil:
		return errors.New("audit: no ports, want those of the fabric")
	case c.Slot <= 0 || c.Block < c.Slot:
		return fmt.Errorf("audit: slots of %v, blocks of %v; want above 0, and blocks of at least a slot", c.Slot, c.Block)
	case c.Blocks < 3 || c.Blocks > maxBlocks:
		return fmt.Errorf("audit: %d blocks, want 3 to %d", c.Blocks, maxBlocks)
	case c.PacketShare <= 0 || c.ByteShare <= 0 || c.Hold <= 0 || c.SilentAfter <= 0:
		return fmt.Errorf("audit: shares %v and %v, hold %v, silent after %v; want all above 0", c.PacketShare, c.ByteShare, c.Hold, c.SilentAfter)
	}
	return nil
}

package nats

import (
	"fmt"
	"regexp"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Config describes a Stream. All members of a cluster have the same, but for BufferSize.
type Config struct {
	Name       string // of the JetStream stream, and the first token of its subjects
	Partitions int
	// BufferSize is how much of a partition may wait in the publisher's memory, while
	// the broker is slow, full or away.
	BufferSize model.Bytes
	// Backlog is how many batches of a partition the broker keeps.
	Backlog int
	// Unacknowledged is how many batches of a partition a reader may hold.
	Unacknowledged int
	// DuplicateWindow is how long the broker remembers IDs.
	DuplicateWindow time.Duration
	// ReaderTimeout is after how long without a reader its place is free.
	ReaderTimeout time.Duration
	// Timeout is of one request to the broker. Those that fail are repeated.
	Timeout time.Duration
	// DrainTimeout is how long Close waits for the broker.
	DrainTimeout time.Duration
	Replicas     int // of the messages, in a cluster of brokers
}

// DefaultConfig suits decoded reports of a few hundred switches.
func DefaultConfig(name string, partitions int) Config {
	return Config{
		Name: name, Partitions: partitions, BufferSize: 4 * model.MiB, Backlog: 4096, Unacknowledged: 256,
		DuplicateWindow: 2 * time.Minute, ReaderTimeout: 30 * time.Second, Timeout: 2 * time.Second,
		DrainTimeout: 5 * time.Second, Replicas: 1,
	}
}

// maxBatch is how many bytes of messages are sent together. The broker's limit is 1 MiB.
const maxBatch = 512 * 1024

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Check returns an error for an invalid configuration.
func (c *Config) Check() error {
	switch {
	case !validName.MatchString(c.Name):
		return fmt.Errorf("nats: stream name %q, want 1 to 64 letters, digits, - and _", c.Name)
	case c.Partitions < 1 || c.Partitions > 1024:
		return fmt.Errorf("nats: %d partitions, want 1 to 1024", c.Partitions)
	case c.BufferSize < 64 || c.BufferSize > model.GiB:
		return fmt.Errorf("nats: buffer of %v, want 64B to 1GiB", c.BufferSize)
	case c.Backlog < 1 || c.Unacknowledged < 1:
		return fmt.Errorf("nats: backlog of %d and %d unacknowledged batches, want at least 1", c.Backlog, c.Unacknowledged)
	case c.DuplicateWindow < 100*time.Millisecond || c.ReaderTimeout < time.Second || c.Timeout <= 0 || c.DrainTimeout <= 0:
		return fmt.Errorf("nats: duplicate window %v, reader timeout %v, timeout %v, drain timeout %v; want at least 100ms, 1s, and more than 0",
			c.DuplicateWindow, c.ReaderTimeout, c.Timeout, c.DrainTimeout)
	case c.Replicas < 1 || c.Replicas > 5:
		return fmt.Errorf("nats: %d replicas, want 1 to 5", c.Replicas)
	}
	return nil
}

// Package cluster divides the work of a controller over processes. A decoder forwards what
// it received, analyzers work on partitions of the flows, and a leader turns their results
// and all other reports into incidents and records. Messages travel in streams, and leases
// say who does what; both are the caller's. Manual: docs/cluster.md.
package cluster

import (
	"context"

	"github.com/weft-telemetry/weft/stream"
)

// Stream carries frames: see package stream.
type Stream interface {
	Publish(key uint64, m stream.Message) error
	Flush(ctx context.Context) error
	Takeover(partitions ...int) (stream.Subscription, error)
	Stats() stream.Stats
}

// Marks keep values by name, for all members.
type Marks interface {
	Put(ctx context.Context, name string, value []byte) error
	// Get returns nil for a name that was never put.
	Get(ctx context.Context, name string) ([]byte, error)
}

// Streams are those of a cluster. Flows has a partition for each of the flows. Lead has one
// more: the first is the decoder's, the others have the results of the partitions.
type Streams struct {
	Flows, Lead Stream
	Partitions  int
}

// Groups of members, for leases.
const (
	FlowGroup   = "flows"
	LeadGroup   = "lead"
	DecodeGroup = "decode"
)

// Package reshuffle spreads mirrored packets over analyzers in any number of
// processes. A Reshuffler publishes mirrors to a stream whose partitions are chosen
// by the hash of the innermost header, so that all mirrors of a packet are in one; an
// Analyzer assembles the traces of the partitions that it has. Which analyzer has which
// partition, and who takes over when one fails, is decided by stream/member.
// Origin: docs/papers.md#everflow. Manual: docs/traces.md#several-analyzers.
package reshuffle

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Kinds of a stream's messages.
const (
	MirrorKind = 1 // an encoded mirror
	BeginKind  = 2 // nothing was published to the partition before it
)

// Publisher is what a Reshuffler needs from a stream.
type Publisher interface {
	Publish(key uint64, m stream.Message) error
}

// Reshuffler publishes mirrors. It is for one goroutine; several of them may publish to
// one stream.
//
// Paper: section 3.2 has hardware multiplexers with one virtual address, whose hash
// changes for all flows when an analyzer fails. Here the number of partitions is fixed, so
// that only partitions of the failed one move.
type Reshuffler struct {
	to         Publisher
	partitions uint32
	parsed     packet.Packet
	stats      Stats
}

// Stats are the counters of a Reshuffler.
type Stats struct {
	Mirrors   uint64 // published
	Lost      uint64 // that the stream refused
	Malformed uint64 // reports that are not mirrors
}

// New returns a Reshuffler for a stream with a number of partitions.
func New(to Publisher, partitions int) *Reshuffler {
	return &Reshuffler{to: to, partitions: uint32(partitions)}
}

// Begin marks the beginning of a new stream. Of several reshufflers one calls it, before
// any publishes.
func (r *Reshuffler) Begin(at model.Time) error {
	for p := range r.partitions {
		if err := r.to.Publish(uint64(p), stream.Message{At: at, Kind: BeginKind}); err != nil {
			return err
		}
	}
	return nil
}

// Stats returns the present counts.
func (r *Reshuffler) Stats() Stats { return r.stats }

// AddMirror publishes an encoded mirror that arrived at an instant.
func (r *Reshuffler) AddMirror(at model.Time, data []byte) {
	var m mirror.Mirror
	if n, err := m.Parse(data); err != nil || n != len(data) {
		r.stats.Malformed++
		return
	}
	key := uint64(m.Switch) // a packet of no flow has no trace
	if r.parsed.Parse(m.Frame) == nil && r.parsed.Depth > 0 {
		key = uint64(mirror.Shard(&r.parsed.Innermost().Key, r.partitions))
	}
	if err := r.to.Publish(key, stream.Message{At: at, Kind: MirrorKind, Data: data}); err != nil {
		r.stats.Lost++
		return
	}
	r.stats.Mirrors++
}

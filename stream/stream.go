// Package stream defines streams of messages in partitions, by key. A stream has a
// bounded buffer and never blocks publishers; messages that do not fit are counted
// with the reason. Readers subscribe to partitions and acknowledge what they have
// dealt with: the rest is read again by the next reader. Streams do not interpret
// messages. Implementations are subpackages, and conformance is their test suite.
// Manual: docs/stream.md.
package stream

import (
	"errors"

	"github.com/weft-telemetry/weft/model"
)

// Message is one report, or a batch of them, in flight.
type Message struct {
	At   model.Time // arrival time, by the publisher's clock
	Kind uint32     // its type, defined by publisher and reader
	// ID makes a message unique: a second one of the same ID and partition is
	// discarded, from any publisher. A hash of what the message is about, such as
	// switch, slot and part, lets a publisher that takes over repeat messages. 0: none.
	ID   uint64
	Data []byte

	// Position is where a reader found it. Publishers leave it empty.
	Position Position
}

// Position is the place of a message. Seq grows within a partition, not by one.
type Position struct {
	Partition int
	Seq       uint64
}

// Errors of streams.
var (
	// ErrFull is returned if the buffer of a partition is full.
	ErrFull = errors.New("stream: partition is full")
	// ErrTooLarge is returned if a message is larger than the buffer of a partition.
	ErrTooLarge = errors.New("stream: message is larger than a partition")
	// ErrClosed is returned by Publish on a closed stream.
	ErrClosed = errors.New("stream: closed")
	// ErrHasReader is returned if a partition has another reader.
	ErrHasReader = errors.New("stream: partition has a reader")
	// ErrTakenOver is returned to a reader whose partition has another one now.
	ErrTakenOver = errors.New("stream: partition was taken over")
	// ErrEnded is returned if a stream is closed and all its messages were read.
	ErrEnded = errors.New("stream: ended")
)

// Subscription reads some partitions. One goroutine uses it.
type Subscription interface {
	// Poll calls take with every message that has arrived, which take must not keep:
	// in the order of publishing within a partition, in no order between partitions.
	// It returns their number, ErrEnded when there will be no more, and ErrTakenOver
	// when another reader has one of the partitions. It does not wait for messages.
	// While too many are unacknowledged it hands over none.
	Poll(take func(m Message)) (int, error)
	// Arrived has a token after something has arrived that the last Poll did not see, so
	// that a reader can wait. It is no promise: Poll may find nothing. A reader polls now
	// and then without a token, as only Poll notices that a broker was away.
	Arrived() <-chan struct{}
	// Ack acknowledges the messages of a partition up to a position, for each position;
	// without any, all that Poll handed over. When it returns nil, they are not read
	// again, except that messages which were published together are read again until
	// the last of them is acknowledged.
	Ack(through ...Position) error
	// Close lets another reader subscribe, who reads all that is not acknowledged.
	Close() error
}

// Stats are the counters of one end of a stream: of the publishers and readers that
// use the same handle.
// Invariant: Published = Delivered + Waiting + Full + TooLarge + Closed + Duplicate.
type Stats struct {
	Published uint64 // calls of Publish
	Delivered uint64 // passed on: to a reader, or to the broker that stores them
	Waiting   uint64 // accepted, not yet passed on
	Full      uint64 // lost: buffer full
	TooLarge  uint64 // lost: larger than the buffer
	Closed    uint64 // lost: published after Close
	Duplicate uint64 // discarded: the ID was published before

	Read         uint64 // handed to readers, those that are read again included
	Acknowledged uint64
	Malformed    uint64 // discarded by readers: not written by this program
}

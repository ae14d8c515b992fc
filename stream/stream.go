// Package stream defines streams of messages in partitions, by key. A stream has a
// bounded buffer and never blocks publishers; messages that do not fit are counted
// with the reason. Readers subscribe to partitions. Streams do not interpret
// messages. Implementations are subpackages, and conformance is their test suite.
package stream

import (
	"errors"

	"github.com/weft-telemetry/weft/model"
)

// Message is one report in flight.
type Message struct {
	At   model.Time // arrival time, by the publisher's clock
	Kind uint32     // its type, defined by publisher and reader
	Data []byte
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
	// ErrEnded is returned if a stream is closed and all its messages were read.
	ErrEnded = errors.New("stream: ended")
)

// Subscription reads some partitions, each message once.
type Subscription interface {
	// Poll calls take with every buffered message, which take must not keep: in
	// the order of publishing within a partition, in no order between partitions.
	// It returns their number, and ErrEnded when there will be no more. It does
	// not block. One goroutine calls it.
	Poll(take func(m Message)) (int, error)
	// Close lets another reader subscribe. Unread messages stay.
	Close() error
}

// Stats are the counters of a stream.
// Invariant: Published = Delivered + Waiting + Full + TooLarge + Closed.
type Stats struct {
	Published uint64 // calls of Publish
	Delivered uint64 // passed to a reader
	Waiting   uint64
	Full      uint64 // lost: buffer full
	TooLarge  uint64 // lost: larger than the buffer
	Closed    uint64 // lost: published after Close
}

// Package stream is what travels on streams: messages in partitions, by key. A
// stream takes what it has room for and never makes who publishes wait; what it
// has no room for is counted with the reason. Who reads subscribes to partitions.
// What the messages say is left to both ends. Streams themselves are packages
// below this one, and conformance is what all of them must do.
package stream

import (
	"errors"

	"github.com/weft-telemetry/weft/model"
)

// Message is one report on its way.
type Message struct {
	At   model.Time // when it came, by the clock of who published it
	Kind uint32     // what it is, to both ends
	Data []byte
}

// Errors of streams.
var (
	// ErrFull says that a partition had no room for a message.
	ErrFull = errors.New("stream: partition is full")
	// ErrTooLarge says that no partition could ever take a message.
	ErrTooLarge = errors.New("stream: message is larger than a partition")
	// ErrClosed says that a stream takes no more.
	ErrClosed = errors.New("stream: closed")
	// ErrHasReader says that another reads a partition.
	ErrHasReader = errors.New("stream: partition has a reader")
	// ErrEnded says that a stream is closed and everything of it was read.
	ErrEnded = errors.New("stream: ended")
)

// Subscription reads some partitions, each message once.
type Subscription interface {
	// Poll gives what waits to take, which must not keep it: in the order of
	// publishing within a partition, in no order between them. It returns how
	// many there were, and ErrEnded when no more can come. It does not wait.
	// One goroutine calls it.
	Poll(take func(m Message)) (int, error)
	// Close lets another subscribe. What was not read stays.
	Close() error
}

// Stats account for messages.
// Invariant: Published = Delivered + Waiting + Full + TooLarge + Closed.
type Stats struct {
	Published uint64 // by whoever tried
	Delivered uint64 // given to a subscription's reader
	Waiting   uint64
	Full      uint64 // lost: no room
	TooLarge  uint64 // lost: could never have room
	Closed    uint64 // lost: came after the end
}

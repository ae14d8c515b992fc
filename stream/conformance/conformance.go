// Package conformance is the test suite of every stream: published messages are
// read in the order of their partition until they are acknowledged, lost ones are
// counted with the reason, and closing loses nothing. It tests leases, too.
package conformance

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
)

// Stream is the interface under test.
type Stream interface {
	Publish(key uint64, m stream.Message) error
	Flush(ctx context.Context) error
	Subscribe(partitions ...int) (stream.Subscription, error)
	Takeover(partitions ...int) (stream.Subscription, error)
	Partitions() int
	Stats() stream.Stats
	Close() error
}

// Open makes an empty stream with buffers of about size bytes for each partition.
type Open func(partitions int, size model.Bytes) (Stream, error)

// TB is the common part of testing.T and rapid.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Test runs all tests.
func Test(t *testing.T, open Open) {
	t.Run("reference", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { reference(rt, open) }) })
	t.Run("many publishers", func(t *testing.T) { many(t, open) })
	t.Run("one reader of a partition", func(t *testing.T) { readers(t, open) })
	t.Run("end", func(t *testing.T) { end(t, open) })
	t.Run("copies", func(t *testing.T) { copies(t, open) })
	t.Run("unacknowledged messages are read again", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { acknowledge(rt, open) }) })
	t.Run("arrivals", func(t *testing.T) { arrivals(t, open) })
	t.Run("takeover", func(t *testing.T) { takeover(t, open) })
	t.Run("an ID once", func(t *testing.T) { once(t, open) })
	t.Run("unacknowledged messages are bounded", func(t *testing.T) { bounded(t, open) })
}

func must(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// flush waits until a stream has stored all that it accepted.
func flush(t TB, s Stream) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	must(t, s.Flush(ctx))
}

// patience is how long a test waits for a message that must come.
const patience = time.Minute

// read polls until n messages have come, and all there are if the stream is closed.
func read(t TB, sub stream.Subscription, n int, closed bool, take func(m stream.Message)) {
	t.Helper()
	got := 0
	for end := time.Now().Add(patience); ; {
		more, err := sub.Poll(take)
		if got += more; errors.Is(err, stream.ErrEnded) {
			if !closed {
				t.Fatalf("a stream that is open has ended")
			}
			break
		}
		must(t, err)
		if got > n || got == n && !closed {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d messages within %v, closed %v; want %d", got, patience, closed, n)
		}
		if more == 0 {
			time.Sleep(100 * time.Microsecond) // a broker needs the core
		}
	}
	if got != n {
		t.Fatalf("%d messages read; want the %d that wait", got, n)
	}
}

// arrivals reads messages by waiting alone: each is read after a token of Arrived.
func arrivals(t *testing.T, open Open) {
	s, err := open(2, 512)
	must(t, err)
	defer s.Close() //nolint:errcheck // nothing is left
	sub, err := s.Subscribe()
	must(t, err)
	defer sub.Close() //nolint:errcheck // the stream goes, too
	for i := range 50 {
		must(t, s.Publish(uint64(i), stream.Message{Data: []byte{byte(i)}}))
		for got := 0; got == 0; {
			select {
			case <-sub.Arrived():
			case <-time.After(patience):
				t.Fatalf("nothing says within %v that message %d has arrived", patience, i)
			}
			_, err := sub.Poll(func(m stream.Message) {
				if got++; m.Data[0] != byte(i) {
					t.Fatalf("message %d, want %d", m.Data[0], i)
				}
			})
			must(t, err)
			must(t, sub.Ack())
		}
	}
}

// reference compares a stream with lists, one for each key. Messages that the
// stream refused because its buffer was full are not in the lists; the exact size
// of the buffer is up to the stream, but an empty one accepts a message.
func reference(t *rapid.T, open Open) {
	n := rapid.IntRange(1, 5).Draw(t, "partitions")
	s, err := open(n, 512)
	must(t, err)
	defer s.Close() //nolint:errcheck // closed twice
	sub, err := s.Subscribe()
	must(t, err)
	defer sub.Close()              //nolint:errcheck // the stream goes, too
	lists := map[uint64][]string{} // by key: accepted and unread messages
	waiting, want := 0, stream.Stats{}
	closed := false
	poll := func() {
		read(t, sub, waiting, closed, func(m stream.Message) {
			key := binary.LittleEndian.Uint64(m.Data)
			if len(lists[key]) == 0 || lists[key][0] != describe(m) {
				t.Fatalf("key %d: read %s; want the first of %v", key, describe(m), lists[key])
			}
			if m.Position.Partition != int(key)%n {
				t.Fatalf("key %d is in partition %d of %d", key, m.Position.Partition, n)
			}
			lists[key] = lists[key][1:]
		})
		must(t, sub.Ack())
		flush(t, s) // the publisher knows that its buffer is empty
		want.Read += uint64(waiting)
		want.Acknowledged += uint64(waiting)
		waiting = 0
	}
	for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
		switch what := rapid.IntRange(0, 19).Draw(t, "what"); {
		case what == 0 && i > 30:
			must(t, s.Close())
			closed = true
		case what < 4:
			poll()
		default:
			key := rapid.Uint64Range(0, 9).Draw(t, "key")
			size := rapid.SampledFrom([]int{0, 1, 30, 200, 100_000}).Draw(t, "size")
			m := stream.Message{At: model.Time(i), Kind: uint32(what), Data: append(binary.LittleEndian.AppendUint64(nil, key), make([]byte, size)...)}
			want.Published++
			switch err := s.Publish(key, m); {
			case err == nil:
				if closed || size == 100_000 {
					t.Fatalf("a message of %d bytes is accepted, closed %v", size, closed)
				}
				lists[key] = append(lists[key], describe(m))
				waiting++
			case errors.Is(err, stream.ErrClosed) && closed:
				want.Closed++
			case errors.Is(err, stream.ErrTooLarge) && size == 100_000:
				want.TooLarge++
			case errors.Is(err, stream.ErrFull) && waiting > 0:
				want.Full++
			default:
				t.Fatalf("Publish of %d bytes = %v; closed %v, %d wait", size, err, closed, waiting)
			}
		}
		checkStats(t, s.Stats(), want)
	}
	poll()
	checkStats(t, s.Stats(), want)
}

// checkStats compares what does not depend on when a message is passed on, and checks
// the invariant.
func checkStats(t TB, got, want stream.Stats) {
	t.Helper()
	if sum := got.Delivered + got.Waiting + got.Full + got.TooLarge + got.Closed + got.Duplicate; sum != got.Published {
		t.Fatalf("stats %+v: the sum is %d; want %d, as published", got, sum, got.Published)
	}
	want.Delivered, want.Waiting = got.Delivered, got.Waiting
	if got != want {
		t.Fatalf("stats %+v; want %+v", got, want)
	}
}

func describe(m stream.Message) string { return fmt.Sprint(m.At, m.Kind, len(m.Data)) }

// many publishes concurrently while one reads: the messages of each publisher and
// key are in order, and all are counted.
func many(t *testing.T, open Open) {
	s, err := open(3, 4*model.KiB)
	must(t, err)
	sub, err := s.Subscribe()
	must(t, err)
	const publishers, each = 4, 3000
	var wg sync.WaitGroup
	lost := make([]int, publishers)
	for p := range publishers {
		wg.Go(func() {
			data := make([]byte, 40)
			for i := range each {
				binary.LittleEndian.PutUint64(data, uint64(i%7)) // key
				if s.Publish(uint64(i%7), stream.Message{At: model.Time(i), Kind: uint32(p), Data: data}) != nil {
					lost[p]++
				}
			}
		})
	}
	go func() { wg.Wait(); _ = s.Close() }()
	type line struct {
		publisher uint32
		key       uint64
	}
	last, all := map[line]model.Time{}, 0
	for end := time.Now().Add(patience); ; {
		n, err := sub.Poll(func(m stream.Message) {
			at := line{m.Kind, binary.LittleEndian.Uint64(m.Data)}
			if before, known := last[at]; known && before >= m.At {
				t.Errorf("publisher %d, key %d: %d after %d", at.publisher, at.key, m.At, before)
			}
			last[at] = m.At
		})
		if all += n; errors.Is(err, stream.ErrEnded) {
			break
		}
		must(t, err)
		must(t, sub.Ack())
		if time.Now().After(end) {
			t.Fatal("no end within a minute")
		}
	}
	sum := all
	for _, n := range lost {
		sum += n
	}
	st := s.Stats()
	if sum != publishers*each || st.Delivered != uint64(all) || st.Full != uint64(publishers*each-all) || st.Published != publishers*each {
		t.Errorf("%d read, %v lost, %+v; want %d in all", all, lost, st, publishers*each)
	}
}

// readers checks that each partition has one reader.
func readers(t *testing.T, open Open) {
	s, err := open(4, 4*model.KiB)
	must(t, err)
	one, err := s.Subscribe(0, 2)
	must(t, err)
	if _, err := s.Subscribe(2); !errors.Is(err, stream.ErrHasReader) {
		t.Errorf("a second reader of partition 2: %v; want ErrHasReader", err)
	}
	if _, err := s.Subscribe(4); err == nil {
		t.Error("a reader of partition 4 of 0 to 3")
	}
	other, err := s.Subscribe(1, 3)
	must(t, err)
	for key := range uint64(40) {
		must(t, s.Publish(key, stream.Message{At: model.Time(key)}))
	}
	var seen []model.Time
	for _, sub := range []stream.Subscription{one, other} {
		read(t, sub, 20, false, func(m stream.Message) { seen = append(seen, m.At) })
		must(t, sub.Ack())
	}
	slices.Sort(seen)
	if len(slices.Compact(seen)) != 40 {
		t.Errorf("%d messages read; want 40, each once", len(seen))
	}
	must(t, s.Publish(0, stream.Message{}))
	must(t, one.Close())
	again, err := s.Subscribe(0, 2)
	must(t, err)
	read(t, again, 1, false, func(stream.Message) {})
}

// end checks that Close loses no accepted message.
func end(t *testing.T, open Open) {
	s, err := open(2, 4*model.KiB)
	must(t, err)
	for key := range uint64(10) {
		must(t, s.Publish(key, stream.Message{}))
	}
	must(t, s.Close())
	must(t, s.Close()) // a second Close is allowed
	if err := s.Publish(1, stream.Message{}); !errors.Is(err, stream.ErrClosed) {
		t.Errorf("Publish after the end = %v; want ErrClosed", err)
	}
	sub, err := s.Subscribe()
	must(t, err)
	read(t, sub, 10, true, func(stream.Message) {})
}

// copies checks that Publish copies messages.
func copies(t *testing.T, open Open) {
	s, err := open(1, 4*model.KiB)
	must(t, err)
	sub, err := s.Subscribe()
	must(t, err)
	data := []byte("first")
	must(t, s.Publish(0, stream.Message{Data: data}))
	copy(data, "xxxxx")
	read(t, sub, 1, false, func(m stream.Message) {
		if string(m.Data) != "first" {
			t.Errorf("read %q; want what was published", m.Data)
		}
		// A reader may publish.
		must(t, s.Publish(0, stream.Message{Data: append(m.Data, "second"...)}))
	})
	must(t, sub.Ack())
	read(t, sub, 1, false, func(m stream.Message) {
		if string(m.Data) != "firstsecond" {
			t.Errorf("read %q", m.Data)
		}
	})
}

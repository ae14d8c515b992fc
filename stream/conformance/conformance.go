// Package conformance is the test suite of every stream: published messages are
// read once and in the order of their partition, lost ones are counted with the
// reason, and closing loses nothing.
package conformance

import (
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
	Subscribe(partitions ...int) (stream.Subscription, error)
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
}

func must(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// reference compares a stream with lists, one for each key. Messages that the
// stream refused because its buffer was full are not in the lists; the exact size
// of the buffer is up to the stream, but an empty one accepts a message.
func reference(t *rapid.T, open Open) {
	n := rapid.IntRange(1, 5).Draw(t, "partitions")
	s, err := open(n, 512)
	must(t, err)
	sub, err := s.Subscribe()
	must(t, err)
	lists := map[uint64][]string{} // by key: accepted and unread messages
	waiting, want := uint64(0), stream.Stats{}
	closed := false
	poll := func() {
		got, err := sub.Poll(func(m stream.Message) {
			key := binary.LittleEndian.Uint64(m.Data)
			if len(lists[key]) == 0 || lists[key][0] != describe(m) {
				t.Fatalf("key %d: read %s; want the first of %v", key, describe(m), lists[key])
			}
			lists[key] = lists[key][1:]
		})
		if uint64(got) != waiting {
			t.Fatalf("%d messages read; want all %d that wait", got, waiting)
		}
		if errors.Is(err, stream.ErrEnded) != closed || err != nil && !closed {
			t.Fatalf("Poll = %v; closed %v", err, closed)
		}
		want.Delivered += waiting
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
		want.Waiting = waiting
		if got := s.Stats(); got != want {
			t.Fatalf("stats %+v; want %+v", got, want)
		}
	}
	poll()
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
	last, read := map[line]model.Time{}, 0
	for end := time.Now().Add(time.Minute); ; {
		n, err := sub.Poll(func(m stream.Message) {
			at := line{m.Kind, binary.LittleEndian.Uint64(m.Data)}
			if before, known := last[at]; known && before >= m.At {
				t.Errorf("publisher %d, key %d: %d after %d", at.publisher, at.key, m.At, before)
			}
			last[at] = m.At
		})
		if read += n; errors.Is(err, stream.ErrEnded) {
			break
		}
		must(t, err)
		if time.Now().After(end) {
			t.Fatal("no end within a minute")
		}
	}
	sum := read
	for _, n := range lost {
		sum += n
	}
	st := s.Stats()
	if sum != publishers*each || st.Delivered != uint64(read) || st.Full != uint64(publishers*each-read) || st.Published != publishers*each {
		t.Errorf("%d read, %v lost, %+v; want %d in all", read, lost, st, publishers*each)
	}
}

// readers checks that each partition has one reader.
func readers(t *testing.T, open Open) {
	s, err := open(4, 4*model.KiB)
	must(t, err)
	one, err := s.Subscribe(0, 2)
	must(t, err)
	if _, err := s.Subscribe(2); !errors.Is(err, stream.ErrHasReader) {
		t.Errorf("a second reader of partition 2: %v; want ErrTaken", err)
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
		n, err := sub.Poll(func(m stream.Message) { seen = append(seen, m.At) })
		must(t, err)
		if n == 0 {
			t.Error("a reader of half of the partitions gets nothing of 40 keys")
		}
	}
	slices.Sort(seen)
	if len(slices.Compact(seen)) != 40 {
		t.Errorf("%d messages read; want 40, each once", len(seen))
	}
	must(t, s.Publish(0, stream.Message{}))
	must(t, one.Close())
	again, err := s.Subscribe(0, 2)
	must(t, err)
	if n, _ := again.Poll(func(stream.Message) {}); n != 1 {
		t.Errorf("the next reader gets %d messages; want the unread one", n)
	}
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
	read := 0
	for err = nil; !errors.Is(err, stream.ErrEnded); {
		var n int
		n, err = sub.Poll(func(stream.Message) {})
		read += n
	}
	if read != 10 {
		t.Errorf("%d messages after the end; want 10", read)
	}
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
	_, err = sub.Poll(func(m stream.Message) {
		if string(m.Data) != "first" {
			t.Errorf("read %q; want what was published", m.Data)
		}
		// A reader may publish.
		must(t, s.Publish(0, stream.Message{Data: append(m.Data, "second"...)}))
	})
	must(t, err)
	n, _ := sub.Poll(func(m stream.Message) {
		if string(m.Data) != "firstsecond" {
			t.Errorf("read %q", m.Data)
		}
	})
	if n != 1 {
		t.Errorf("%d messages; want the one that the reader published", n)
	}
}

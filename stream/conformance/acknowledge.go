package conformance

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
)

// unacknowledged is how many messages every stream keeps at least; those of a broker that
// has no more room wait with their publisher.
const unacknowledged = 50

// acknowledge reads with one reader after the other, who acknowledge up to some message
// and go: each begins with the first message that was not acknowledged.
func acknowledge(t *rapid.T, open Open) {
	s, err := open(1, model.MiB)
	must(t, err)
	defer s.Close() //nolint:errcheck // nothing waits for it
	published, acknowledged := 0, 0
	for range rapid.IntRange(1, 6).Draw(t, "readers") {
		most := min(20, unacknowledged-(published-acknowledged))
		for range rapid.IntRange(0, most).Draw(t, "messages") {
			must(t, s.Publish(0, stream.Message{At: model.Time(published)}))
			published++
			flush(t, s) // messages that travel together are acknowledged together
		}
		subscribe := s.Subscribe
		if rapid.Bool().Draw(t, "takeover") {
			subscribe = s.Takeover
		}
		sub, err := subscribe(0)
		must(t, err)
		var at []stream.Position
		next := acknowledged
		read(t, sub, published-acknowledged, false, func(m stream.Message) {
			if m.At != model.Time(next) {
				t.Fatalf("message %d is read; want %d, after %d that are acknowledged", m.At, next, acknowledged)
			}
			at, next = append(at, m.Position), next+1
		})
		for i := 1; i < len(at); i++ {
			if at[i].Seq <= at[i-1].Seq {
				t.Fatalf("position %d after %d", at[i].Seq, at[i-1].Seq)
			}
		}
		if len(at) > 0 && rapid.Bool().Draw(t, "some") {
			n := rapid.IntRange(1, len(at)).Draw(t, "acknowledged")
			must(t, sub.Ack(at[n-1]))
			acknowledged += n
		}
		must(t, sub.Close())
	}
}

// takeover checks that a reader whose partition was taken over can neither read nor
// acknowledge, and that the next one reads what it had not acknowledged.
func takeover(t *testing.T, open Open) {
	s, err := open(1, model.MiB)
	must(t, err)
	one, err := s.Subscribe(0)
	must(t, err)
	for i := range 3 {
		must(t, s.Publish(0, stream.Message{At: model.Time(i)}))
		flush(t, s) // no batch of two
	}
	var at []stream.Position
	read(t, one, 3, false, func(m stream.Message) { at = append(at, m.Position) })
	must(t, one.Ack(at[0]))
	two, err := s.Takeover(0)
	must(t, err)
	if err := one.Ack(); !errors.Is(err, stream.ErrTakenOver) {
		t.Errorf("Ack of a reader that was replaced = %v; want ErrTakenOver", err)
	}
	want := model.Time(1)
	read(t, two, 2, false, func(m stream.Message) {
		if m.At != want {
			t.Errorf("the next reader reads %d; want %d", m.At, want)
		}
		want++
	})
	must(t, two.Ack())
	must(t, s.Publish(0, stream.Message{At: 3}))
	read(t, two, 1, false, func(stream.Message) {})
	n, err := one.Poll(func(stream.Message) {})
	if n != 0 || !errors.Is(err, stream.ErrTakenOver) {
		t.Errorf("Poll of a reader that was replaced = %d, %v; want ErrTakenOver", n, err)
	}
	must(t, one.Close())
	must(t, two.Ack()) // the first one's end does not concern the second
	must(t, two.Close())
}

// once publishes messages with IDs, some twice, also after they were acknowledged.
func once(t *testing.T, open Open) {
	s, err := open(2, model.MiB)
	must(t, err)
	sub, err := s.Subscribe()
	must(t, err)
	publish := func(key, id uint64) {
		must(t, s.Publish(key, stream.Message{ID: id, At: model.Time(id)}))
	}
	for id := range uint64(5) {
		publish(0, id+1)
		publish(1, id+1) // of another partition
	}
	publish(0, 3)
	read(t, sub, 10, false, func(stream.Message) {})
	must(t, sub.Ack())
	publish(0, 5)
	publish(0, 6)
	read(t, sub, 1, false, func(m stream.Message) {
		if m.ID != 6 {
			t.Errorf("message %d is read again; want 6", m.ID)
		}
	})
	flush(t, s)
	if st := s.Stats(); st.Duplicate != 2 || st.Published != 13 {
		t.Errorf("stats %+v; want 2 duplicates of 13", st)
	}
}

// bounded publishes to a reader that acknowledges nothing: at some point messages are
// refused, and counted. When it acknowledges all go on, in order.
func bounded(t *testing.T, open Open) {
	const size = 4 * model.KiB
	s, err := open(1, size)
	must(t, err)
	sub, err := s.Subscribe()
	must(t, err)
	data := make([]byte, 500)
	accepted, got := 0, 0
	take := func(m stream.Message) {
		if m.At != model.Time(got) {
			t.Fatalf("message %d is read; want %d", m.At, got)
		}
		got++
	}
	for range 10_000 {
		if err = s.Publish(0, stream.Message{At: model.Time(accepted), Data: data}); err != nil {
			break
		}
		accepted++
		if _, err := sub.Poll(take); err != nil {
			t.Fatal(err)
		}
	}
	if !errors.Is(err, stream.ErrFull) {
		t.Fatalf("Publish without an acknowledgement = %v after %d messages; want ErrFull", err, accepted)
	}
	for got < accepted {
		must(t, sub.Ack())
		_, err := sub.Poll(take)
		must(t, err)
	}
	must(t, sub.Ack())
	flush(t, s)
	must(t, s.Publish(0, stream.Message{At: model.Time(accepted), Data: data}))
	if st := s.Stats(); st.Full != 1 {
		t.Errorf("stats %+v; want one message that did not fit", st)
	}
}

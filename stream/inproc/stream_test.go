package inproc

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/conformance"
)

func TestConforms(t *testing.T) {
	conformance.Test(t, func(partitions int, room model.Bytes) (conformance.Stream, error) {
		return New(Config{Partitions: partitions, BufferSize: room})
	})
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{{}, {Partitions: 1}, {Partitions: 1, BufferSize: 8}, {Partitions: 1 << 20, BufferSize: 4096}} {
		if _, err := New(c); err == nil {
			t.Errorf("New(%+v) makes a stream", c)
		}
	}
}

func TestAllocatesNothing(t *testing.T) {
	s, sub := open(t)
	data := make([]byte, 200)
	take := func(stream.Message) {}
	turn := func() {
		for key := range uint64(64) {
			_ = s.Publish(key, stream.Message{Data: data})
		}
		_, _ = sub.Poll(take)
		_ = sub.Ack()
	}
	turn()
	turn() // both runs of each partition have their memory
	if n := testing.AllocsPerRun(100, turn); n != 0 {
		t.Errorf("64 messages allocate %v times", n)
	}
}

func open(tb testing.TB) (*Stream, stream.Subscription) {
	tb.Helper()
	s, err := New(DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	sub, err := s.Subscribe()
	if err != nil {
		tb.Fatal(err)
	}
	return s, sub
}

// BenchmarkStream publishes and reads a message of 200 bytes.
func BenchmarkStream(b *testing.B) {
	s, sub := open(b)
	data := make([]byte, 200)
	take := func(stream.Message) {}
	b.ReportAllocs()
	n := uint64(0)
	for b.Loop() {
		if n++; s.Publish(n, stream.Message{Data: data}) != nil || n%256 == 0 {
			_, _ = sub.Poll(take)
			_ = sub.Ack()
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mmsg/s")
}

// BenchmarkChannel is the same with a channel of copies, for comparison.
func BenchmarkChannel(b *testing.B) {
	queue := make(chan stream.Message, 1<<14)
	data := make([]byte, 200)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		queue <- stream.Message{Data: append([]byte(nil), data...)}
		if n++; n%256 == 0 {
			for range 256 {
				<-queue
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mmsg/s")
}

func TestLeasesConform(t *testing.T) {
	l := NewLeases()
	conformance.TestLeases(t, func() stream.Leases { return l })
}

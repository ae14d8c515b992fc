package nats

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/member"
)

// results are what members write: by partition the messages in the order in which they
// were first written. Writing one again changes nothing.
type results struct {
	mu      sync.Mutex
	list    [][]model.Time
	known   map[uint64]bool
	again   int
	changed chan struct{}
}

func (r *results) write(m *stream.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[m.ID] {
		r.again++
		return
	}
	r.known[m.ID] = true
	r.list[m.Position.Partition] = append(r.list[m.Position.Partition], m.At)
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *results) wait(t *testing.T, n int) {
	t.Helper()
	for end := time.After(2 * time.Minute); ; {
		r.mu.Lock()
		got := len(r.known)
		r.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-r.changed:
		case <-end:
			t.Fatalf("%d of %d results", got, n)
		}
	}
}

// TestMembersDie has members whose connections end at random while they work, and others
// that come: every message has its result, in the order of its partition, and nothing
// stays unacknowledged.
func TestMembersDie(t *testing.T) {
	const partitions, kills, each = 6, 5, 120
	cfg := testConfig(partitions, model.MiB)
	cfg.Backlog, cfg.Timeout = 4096, 2*time.Second
	s, err := Open(t.Context(), connect(t, shared.URL()), cfg)
	if err != nil {
		t.Fatal(err)
	}
	out := &results{list: make([][]model.Time, partitions), known: map[uint64]bool{}, changed: make(chan struct{}, 1)}
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	join := func(name string) (die func()) {
		conn := connect(t, shared.URL())
		theirs, err := Open(ctx, conn, cfg)
		if err != nil {
			t.Fatal(err)
		}
		leases, err := OpenLeases(ctx, conn, "members", time.Second, 1)
		if err != nil {
			t.Fatal(err)
		}
		m, err := member.New(member.Config{Group: cfg.Name, ID: name, Partitions: partitions, Interval: 50 * time.Millisecond}, leases,
			func(ctx context.Context, p int, _ uint64) error { return read(ctx, theirs, p, out) })
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { _ = m.Run(ctx) })
		return conn.Close
	}
	random := rand.New(rand.NewPCG(1, 2))
	members := []func(){join("m0"), join("m1"), join("m2")}
	published := 0
	publish := func(n int) {
		for range n {
			p := published % partitions
			published++
			m := stream.Message{At: model.Time(published), ID: uint64(published)}
			if err := s.Publish(uint64(p), m); err != nil {
				t.Fatal(err)
			}
			if published%7 == 0 { // as a publisher does that took over
				_ = s.Publish(uint64(p), m)
			}
		}
	}
	for k := range kills {
		publish(each)
		out.wait(t, published-each/2)
		i := random.IntN(len(members))
		members[i]()
		members[i] = join(fmt.Sprint("m", 3+k))
	}
	out.wait(t, published)
	for p, list := range out.list {
		for i, at := range list {
			if want := model.Time(i*partitions + p + 1); at != want {
				t.Fatalf("partition %d: result %d is %d; want %d", p, i, at, want)
			}
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		str, err := s.js.Stream(t.Context(), cfg.Name)
		if err != nil {
			t.Fatal(err)
		}
		if n := str.CachedInfo().State.Msgs; n == 0 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%d batches stay unacknowledged", n)
		}
	}
	if st := s.Stats(); st.Duplicate != uint64(published/7) || st.Full != 0 {
		t.Errorf("stats %+v; want %d duplicates", st, published/7)
	}
	t.Logf("%d results, %d written again", published, out.again)
	stop()
	all.Wait()
}

// read works on a partition as an analyzer does: results first, then acknowledgements.
func read(ctx context.Context, s *Stream, p int, out *results) error {
	sub, err := s.Takeover(p)
	if err != nil {
		return err
	}
	defer sub.Close() //nolint:errcheck // the next reader takes over
	for ctx.Err() == nil {
		n, err := sub.Poll(func(m stream.Message) { out.write(&m) })
		if errors.Is(err, stream.ErrTakenOver) {
			return err
		}
		if n > 0 {
			_ = sub.Ack() // if it fails the messages are read again
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

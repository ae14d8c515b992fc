package nats

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
)

// The test program runs as a broker if it has these: a process that can be killed.
const (
	childDir    = "WEFT_TEST_BROKER_DIR"
	childListen = "WEFT_TEST_BROKER_LISTEN"
)

func runChild() int {
	b, err := StartBroker(BrokerConfig{Listen: os.Getenv(childListen), Dir: os.Getenv(childDir)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(b.URL())
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the test ends
	return 0
}

// process is a broker in a process of its own.
type process struct {
	t           *testing.T
	dir, listen string
	cmd         *exec.Cmd
	url         string
}

func startProcess(t *testing.T) *process {
	p := &process{t: t, dir: t.TempDir(), listen: "127.0.0.1:0"}
	p.start()
	p.listen = p.url[len("nats://"):]
	t.Cleanup(p.kill)
	return p
}

func (p *process) start() {
	p.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd = exec.Command(exe)
	p.cmd.Env = append(os.Environ(), childDir+"="+p.dir, childListen+"="+p.listen)
	p.cmd.Stderr = os.Stderr
	if _, err := p.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	line := bufio.NewScanner(out)
	if !line.Scan() {
		p.t.Fatalf("the broker does not start: %v", line.Err())
	}
	p.url = line.Text()
}

// kill kills the broker as a failing machine does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// TestBrokerIsKilled kills the broker while messages are published, read and
// acknowledged: none that was accepted is lost, and each is read once and in order.
func TestBrokerIsKilled(t *testing.T) {
	const kills, each, partitions = 3, 300, 3
	p := startProcess(t)
	conn := connect(t, p.url)
	cfg := testConfig(partitions, model.MiB)
	cfg.Timeout = time.Second
	s, err := Open(t.Context(), conn, cfg)
	if err != nil {
		t.Fatal(err)
	}
	sub, err := s.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	published, got := 0, 0
	var next [partitions]int
	take := func(m stream.Message) {
		key := int(m.Kind)
		if int(m.At) != next[key] {
			t.Fatalf("partition %d: message %d is read; want %d", key, m.At, next[key])
		}
		next[key]++
		got++
	}
	publish := func(n int) {
		for range n {
			key := published % partitions
			m := stream.Message{At: model.Time(published / partitions), Kind: uint32(key)}
			if published%5 == 0 {
				m.ID = uint64(published + 1)
			}
			if err := s.Publish(uint64(key), m); err != nil {
				t.Fatal(err)
			}
			published++
		}
	}
	// Acknowledgements fail while the broker is away, and are repeated.
	poll := func(until int) {
		for end := time.Now().Add(2 * time.Minute); got < until; {
			n, err := sub.Poll(take)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				time.Sleep(time.Millisecond)
			}
			if n > 0 && got%3 == 0 {
				_ = sub.Ack()
			}
			if time.Now().After(end) {
				t.Fatalf("%d of %d messages are read", got, until)
			}
		}
	}
	for range kills {
		publish(each)
		poll(published - each/2)
		p.kill()
		publish(each / 4) // they wait
		p.start()
	}
	poll(published)
	for end := time.Now().Add(time.Minute); ; {
		if err = sub.Ack(); err == nil {
			break
		}
		if _, perr := sub.Poll(take); perr != nil || time.Now().After(end) {
			t.Fatalf("Ack = %v, Poll = %v", err, perr)
		}
	}
	if st := s.Stats(); st.Acknowledged != uint64(published) || st.Read != uint64(published) || st.Waiting != 0 || st.Full != 0 {
		t.Errorf("stats %+v; want %d read and acknowledged", st, published)
	}
	if err := errors.Join(sub.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

// TestReaderDies has a reader that goes without acknowledging: another one takes over
// and reads all that was not acknowledged, from the first.
func TestReaderDies(t *testing.T) {
	conn := connect(t, shared.URL())
	cfg := testConfig(1, model.MiB)
	s, err := Open(t.Context(), conn, cfg)
	if err != nil {
		t.Fatal(err)
	}
	dead := connect(t, shared.URL())
	theirs, err := Open(t.Context(), dead, cfg)
	if err != nil {
		t.Fatal(err)
	}
	sub, err := theirs.Subscribe(0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := errors.Join(s.Publish(0, stream.Message{At: model.Time(i)}), s.Flush(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	var at []stream.Position
	poll(t, sub, func(m stream.Message) { at = append(at, m.Position) }, func() bool { return len(at) >= 10 })
	if err := sub.Ack(at[6]); err != nil {
		t.Fatal(err)
	}
	dead.Close() // as with its process
	if _, err := s.Subscribe(0); !errors.Is(err, stream.ErrHasReader) {
		t.Errorf("Subscribe = %v; want ErrHasReader, as nobody knows yet", err)
	}
	next, err := s.Takeover(0)
	if err != nil {
		t.Fatal(err)
	}
	want := 7
	poll(t, next, func(m stream.Message) {
		if m.At != model.Time(want) {
			t.Fatalf("message %d is read; want %d", m.At, want)
		}
		want++
	}, func() bool { return want >= 20 })
	if err := errors.Join(next.Ack(), next.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

// TestSlowPartition fills one partition, whose reader is away: what does not fit is
// counted, others go on, and what was accepted arrives.
func TestSlowPartition(t *testing.T) {
	cfg := testConfig(2, 2*model.KiB)
	cfg.Backlog = 3
	s, err := Open(t.Context(), connect(t, shared.URL()), cfg)
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.Subscribe(1)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 200)
	full, accepted := 0, 0
	for i := 0; full < 5; i++ {
		switch err := s.Publish(0, stream.Message{At: model.Time(accepted), Data: data}); {
		case errors.Is(err, stream.ErrFull):
			full++
		case err != nil:
			t.Fatal(err)
		default:
			accepted++
		}
		if i > 100_000 {
			t.Fatal("a partition without a reader is never full")
		}
	}
	for i := range 20 {
		if err := s.Publish(1, stream.Message{At: model.Time(i)}); err != nil {
			t.Fatalf("the other partition: %v", err)
		}
	}
	drain(t, other, 20)
	slow, err := s.Subscribe(0)
	if err != nil {
		t.Fatal(err)
	}
	drain(t, slow, accepted)
	if st := s.Stats(); st.Full != 5 || st.Delivered != uint64(accepted+20) {
		t.Errorf("stats %+v; want 5 that did not fit, %d delivered", st, accepted+20)
	}
}

// drain reads and acknowledges n messages, in order.
func drain(t *testing.T, sub stream.Subscription, n int) {
	t.Helper()
	got := 0
	poll(t, sub, func(m stream.Message) {
		if int(m.At) != got {
			t.Fatalf("message %d is read; want %d", m.At, got)
		}
		got++
	}, func() bool {
		if err := sub.Ack(); err != nil {
			t.Fatal(err)
		}
		return got >= n
	})
}

// poll reads until enough has come.
func poll(t *testing.T, sub stream.Subscription, take func(m stream.Message), enough func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !enough(); time.Sleep(100 * time.Microsecond) {
		if _, err := sub.Poll(take); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatal("not enough has come after a minute")
		}
	}
}

// TestCloseWithoutBroker says what is lost when the broker does not come back.
func TestCloseWithoutBroker(t *testing.T) {
	p := startProcess(t)
	cfg := testConfig(1, model.MiB)
	cfg.DrainTimeout = 50 * time.Millisecond
	s, err := Open(context.Background(), connect(t, p.url), cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.kill()
	for range 3 {
		if err := s.Publish(0, stream.Message{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err == nil || s.Stats().Waiting != 3 {
		t.Errorf("Close = %v, stats %+v; want an error about 3 messages", err, s.Stats())
	}
}

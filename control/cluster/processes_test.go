package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	client "github.com/nats-io/nats.go"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/stream/member"
	"github.com/weft-telemetry/weft/stream/nats"
)

// Variables of processes that tests start.
const (
	roleVar  = "WEFT_TEST_ROLE"
	urlVar   = "WEFT_TEST_NATS"
	storeVar = "WEFT_TEST_STORE"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := runMember(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const processPartitions = 4

func openStreams(ctx context.Context, conn *client.Conn) (s Streams, err error) {
	flows, err := nats.Open(ctx, conn, nats.DefaultConfig("flows", processPartitions))
	if err != nil {
		return s, err
	}
	cfg := nats.DefaultConfig("lead", 1+processPartitions)
	cfg.Unacknowledged = 4096
	lead, err := nats.Open(ctx, conn, cfg)
	return Streams{Flows: flows, Lead: lead, Partitions: processPartitions}, err
}

// runMember is a process that analyses or leads until it is killed, or its input ends.
func runMember(role string) error {
	ctx, stop := context.WithCancel(context.Background())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); stop() }() // the test has ended
	cfg := serve.DefaultConfig()
	cfg.Topology = recording + "reports.topology.yaml"
	controller, err := serve.ControllerConfig(&cfg)
	if err != nil {
		return err
	}
	conn, err := nats.Connect(nats.Access{URL: os.Getenv(urlVar)})
	if err != nil {
		return err
	}
	defer conn.Close()
	s, err := openStreams(ctx, conn)
	if err != nil {
		return err
	}
	leases, err := nats.OpenLeases(ctx, conn, "leases", 400*time.Millisecond, 1)
	if err != nil {
		return err
	}
	group, partitions, work := FlowGroup, processPartitions, NewAnalyzers(&controller, s).Work
	if role == LeadGroup {
		c := embedded.DefaultConfig()
		c.Retention = store.Retention{}
		st, err := embedded.Open(os.Getenv(storeVar), c)
		if err != nil {
			return err
		}
		defer st.Close()
		marks, err := nats.OpenMarks(ctx, conn, "marks", 1)
		if err != nil {
			return err
		}
		l := &Leader{Config: controller, Streams: s, Marks: marks, Store: st, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
		l.Applied = func(run, batch uint64) { fmt.Println("applied", run, batch) }
		group, partitions, work = LeadGroup, 1, l.Work
	}
	m, err := member.New(member.Config{Group: group, ID: fmt.Sprint("p", os.Getpid()), Partitions: partitions, Interval: 50 * time.Millisecond}, leases, work)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return m.Run(ctx)
}

// process is a member.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines chan string
}

func startMember(t *testing.T, role, url, path string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0]), lines: make(chan string, 1<<12)}
	p.cmd.Env = append(os.Environ(), roleVar+"="+role, urlVar+"="+url, storeVar+"="+path)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = in
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(p.kill)
	p.wait(t, "ready")
	return p
}

// wait waits for a line.
func (p *process) wait(t *testing.T, prefix string) string {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				t.Fatalf("a member ended before it said %q", prefix)
			}
			if strings.HasPrefix(line, prefix) {
				return line
			}
		case <-deadline:
			t.Fatalf("no member said %q in a minute", prefix)
		}
	}
}

func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		for range p.lines {
		}
		_ = p.cmd.Wait()
	}
}

// TestProcessesFindTheSame replays a recording through processes on NATS, of which two
// analyse and one leads. SIGKILL ends each of them, several times; another follows.
func TestProcessesFindTheSame(t *testing.T) {
	want := alone(t)
	const seed = 7
	random := rand.New(rand.NewPCG(seed, 2))
	broker, err := nats.StartBroker(nats.BrokerConfig{Listen: "127.0.0.1:0", Dir: t.TempDir(), MaxStore: model.GiB})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	conn, err := nats.Connect(nats.Access{URL: broker.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s, err := openStreams(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "weft.duckdb")
	roles := []string{FlowGroup, FlowGroup, LeadGroup}
	members := make([]*process, len(roles))
	for i, role := range roles {
		members[i] = startMember(t, role, broker.URL(), path)
	}
	cfg := config(t)
	controller, err := serve.ControllerConfig(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	pub := NewPublisher(&controller, s, t.Context())
	r, err := serve.NewForwardingReplay(t.Context(), cfg, nil, pub)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	replayed := make(chan error, 1)
	in := openRecording(t, &cfg)
	go func() { _, err := r.Run(t.Context(), in); replayed <- err }()
	for range 6 {
		time.Sleep(time.Duration(random.IntN(150)) * time.Millisecond) // when it dies does not matter
		i := random.IntN(len(roles))
		members[i].kill()
		members[i] = startMember(t, roles[i], broker.URL(), path)
	}
	if err := <-replayed; err != nil {
		t.Fatal(err)
	}
	run, last := pub.Position()
	for batch := uint64(0); batch+1 < last; {
		var of uint64
		if _, err := fmt.Sscanf(members[2].wait(t, "applied"), "applied %d %d", &of, &batch); err != nil || of != run {
			t.Fatalf("run %d, %v; want run %d", of, err, run)
		}
	}
	for _, p := range members {
		_ = p.stdin.Close()
		for range p.lines {
		}
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("a member ends with %v", err)
		}
	}
	c := embedded.DefaultConfig()
	c.Retention = store.Retention{}
	st, err := embedded.Open(path, c)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	got := contents(t, st)
	for kind := range want {
		if diff := cmp.Diff(want[kind], got[kind]); diff != "" {
			t.Errorf("seed %d: %s: alone (-) and in processes (+): %s", seed, kind, diff)
		}
	}
}

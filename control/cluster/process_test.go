package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/clickhouse"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/stream/member"
	"github.com/weft-telemetry/weft/stream/nats"
)

// memberVar has the memberSpec of a process that a test starts.
const memberVar = "WEFT_TEST_MEMBER"

// brokerRole is of a process that is a NATS server. Other roles are groups.
const brokerRole = "broker"

// memberSpec says what a process does.
type memberSpec struct {
	Role     string
	URL      string // of the brokers
	Store    string // DuckDB file, or clickhouse://
	Lease    time.Duration
	Commit   time.Duration
	Replicas int
	Broker   nats.BrokerConfig
}

func TestMain(m *testing.M) {
	if text := os.Getenv(memberVar); text != "" {
		if err := runMember(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const processPartitions = 4

// memberBuffer is what a partition may have in the memory of a process that analyses.
const memberBuffer = 4 * model.MiB

// openStreams opens the streams; buffer is what a partition may have in the publisher's memory.
func openStreams(ctx context.Context, conn *client.Conn, replicas int, buffer model.Bytes) (s Streams, err error) {
	cfg := nats.DefaultConfig("flows", processPartitions)
	cfg.Replicas, cfg.BufferSize = replicas, buffer
	flows, err := nats.Open(ctx, conn, cfg)
	if err != nil {
		return s, err
	}
	cfg = nats.DefaultConfig("lead", 1+processPartitions)
	cfg.Unacknowledged, cfg.Replicas, cfg.BufferSize = 4096, replicas, buffer
	lead, err := nats.Open(ctx, conn, cfg)
	return Streams{Flows: flows, Lead: lead, Partitions: processPartitions}, err
}

// whenElected opens what brokers have, until they have elected one of them.
func whenElected(ctx context.Context, open func() error) error {
	for end := time.Now().Add(patience); ; {
		if err := open(); err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}

type closingStore interface {
	serve.Store
	io.Closer
}

// openStoreAt opens a file, or a database of ClickHouse, without retention: the recording
// is old.
func openStoreAt(ctx context.Context, at string) (closingStore, error) {
	if clickhouse.IsURL(at) {
		c, err := clickhouse.ParseURL(at)
		if err != nil {
			return nil, err
		}
		c.Retention = nil
		return clickhouse.Open(ctx, c)
	}
	c := embedded.DefaultConfig()
	c.Retention = store.Retention{}
	return embedded.Open(at, c)
}

// runMember works until the process is killed, or its input ends.
func runMember(text string) error {
	var spec memberSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); stop() }() // the test has ended
	if spec.Role == brokerRole {
		b, err := nats.StartBroker(spec.Broker)
		if err != nil {
			return err
		}
		fmt.Println("ready", b.URL(), b.Route())
		<-ctx.Done()
		return b.Close()
	}
	cfg := serve.DefaultConfig()
	cfg.Topology = recording + "reports.topology.yaml"
	controller, err := serve.ControllerConfig(&cfg, nil)
	if err != nil {
		return err
	}
	conn, err := nats.Connect(nats.Access{URL: spec.URL})
	if err != nil {
		return err
	}
	defer conn.Close()
	var s Streams
	var leases *nats.Leases
	var marks *nats.Marks
	if err := whenElected(ctx, func() (err error) {
		if s, err = openStreams(ctx, conn, spec.Replicas, memberBuffer); err != nil {
			return err
		}
		if leases, err = nats.OpenLeases(ctx, conn, "leases", spec.Lease, spec.Replicas); err != nil {
			return err
		}
		marks, err = nats.OpenMarks(ctx, conn, "marks", spec.Replicas)
		return err
	}); err != nil {
		return err
	}
	group, partitions, work := FlowGroup, processPartitions, NewAnalyzers(&controller, s).Work
	if spec.Role == LeadGroup {
		st, err := openStoreAt(ctx, spec.Store)
		if err != nil {
			return err
		}
		defer st.Close()
		l := &Leader{Config: controller, Streams: s, Marks: marks, Store: st, Log: slog.New(slog.NewTextHandler(os.Stdout, nil)), Commit: spec.Commit}
		l.Applied = func(run, batch uint64) { fmt.Println("applied", run, batch) }
		group, partitions, work = LeadGroup, 1, l.Work
	}
	begin := work
	work = func(ctx context.Context, partition int, epoch uint64) error {
		fmt.Println("working", partition)
		return begin(ctx, partition, epoch)
	}
	m, err := member.New(member.Config{Group: group, ID: fmt.Sprint("p", os.Getpid()), Partitions: partitions, Interval: spec.Lease / 8}, leases, work)
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

// startMember starts a process, and returns the line with which it says that it is ready.
func startMember(t *testing.T, spec *memberSpec) (*process, string) {
	t.Helper()
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(os.Args[0]), lines: make(chan string, 1<<12)}
	p.cmd.Env = append(os.Environ(), memberVar+"="+string(text))
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
	return p, p.wait(t, "ready")
}

// patience is how long tests wait for what must come: machines that test may be busy.
const patience = 5 * time.Minute

// wait waits for a line.
func (p *process) wait(t *testing.T, prefix string) string {
	t.Helper()
	deadline := time.After(patience)
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
			t.Fatalf("no member said %q in %v", prefix, patience)
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

// end has a process end by itself.
func (p *process) end(t *testing.T) {
	t.Helper()
	_ = p.stdin.Close()
	for range p.lines {
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("a member ends with %v", err)
	}
}

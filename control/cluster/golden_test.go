package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/ingest/bmp"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/stream/inproc"
)

const recording = "../../examples/recording/"

// memoryMarks are Marks of one process.
type memoryMarks struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (m *memoryMarks) Put(_ context.Context, name string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[string][]byte{}
	}
	m.values[name] = slices.Clone(value)
	return nil
}

func (m *memoryMarks) Get(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[name], nil
}

// input is a recording.
type input struct {
	path, topology string
	keepFlows      int // of a slot; 0: the default
	switches       []serve.Switch
}

var shipped = input{path: recording + "reports.pcapng", topology: recording + "reports.topology.yaml"}

func (in *input) config(t *testing.T) serve.Config {
	cfg := serve.DefaultConfig()
	cfg.Topology = in.topology
	if in.keepFlows > 0 {
		cfg.Controller.KeepFlows = in.keepFlows
	}
	cfg.Switches = in.switches
	cfg.Sources[bmp.Source.Kind].(*bmp.Config).Settle = 300 * time.Millisecond // convergence is fast in one machine
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func openStore(t *testing.T) *embedded.Store {
	c := embedded.DefaultConfig()
	c.Retention = store.Retention{}
	s, err := embedded.Open(filepath.Join(t.TempDir(), "weft.duckdb"), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (in *input) open(t *testing.T, cfg *serve.Config) *capture.Reader {
	r, err := capture.Open(cfg.Ports(), capture.Input{Path: in.path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// kinds are those of its reports.
func (in *input) kinds(t *testing.T, cfg *serve.Config) map[source.Kind]uint64 {
	s, err := capture.Summarize(cfg.Ports(), capture.Input{Path: in.path})
	if err != nil {
		t.Fatal(err)
	}
	return s.Kinds
}

// contents is all that a store has, as text, in a fixed order.
func contents(t *testing.T, s core.Store) map[string][]string {
	all := map[string][]string{}
	add(t, all, "flows", s.Flows)
	add(t, all, "losses", s.Losses)
	add(t, all, "ports", s.Ports)
	add(t, all, "traces", s.Traces)
	add(t, all, "diagnoses", s.Diagnoses)
	add(t, all, "incidents", s.Incidents)
	for kind := range all {
		slices.Sort(all[kind])
	}
	return all
}

func add[T any](t *testing.T, all map[string][]string, kind string, query func(context.Context, record.Query) (record.Page[T], error)) {
	q := record.Query{}
	for {
		page, err := query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Items {
			all[kind] = append(all[kind], fmt.Sprintf("%+v", page.Items[i]))
		}
		if q.After = page.Next; q.After == "" {
			return
		}
	}
}

func (in *input) alone(t *testing.T) map[string][]string {
	cfg, s := in.config(t), openStore(t)
	r, err := serve.NewReplay(t.Context(), cfg, in.kinds(t, &cfg), s)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Run(t.Context(), in.open(t, &cfg)); err != nil {
		t.Fatal(err)
	}
	return contents(t, s)
}

// TestClusterFindsTheSame replays a recording alone and through decoder, analyzers and
// leader, which are stopped at random and replaced: what is stored is the same.
func TestClusterFindsTheSame(t *testing.T) {
	want := shipped.alone(t)
	if len(want["incidents"]) != 3 || len(want["flows"]) < 100 {
		t.Fatalf("%d incidents and %d flows alone; want 3, and many", len(want["incidents"]), len(want["flows"]))
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			compare(t, want, throughCluster(t, &shipped, seed))
		})
	}
}

func compare(t *testing.T, alone, cluster map[string][]string) {
	t.Helper()
	for kind := range alone {
		if diff := cmp.Diff(alone[kind], cluster[kind]); diff != "" {
			t.Errorf("%s: alone (-) and in a cluster (+): %s", kind, diff)
		}
	}
}

// TestClusterTakesAllSources replays recordings of other reports than Weft's own: mirrors
// by ERSPAN and labels by INT, what switches on sale export, and routes by BMP.
func TestClusterTakesAllSources(t *testing.T) {
	const sold = "../../examples/incidents/blackhole-commodity/"
	for name, test := range map[string]struct {
		input
		incidents int
	}{
		"ERSPAN and INT": {input{path: "testdata/erspan.pcapng.gz", topology: shipped.topology}, 1},
		"sFlow":          {input{path: sold + "reports.pcapng.gz", topology: sold + "reports.topology.yaml"}, 1},
		"BMP":            {input{path: "testdata/bmp.pcapng.gz", topology: "testdata/bmp.topology.yaml", switches: routers()}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			want := test.alone(t)
			if n := len(want["incidents"]); n != test.incidents {
				t.Fatalf("%d incidents alone; want %d", n, test.incidents)
			}
			compare(t, want, throughCluster(t, &test.input, 0))
		})
	}
}

// routers are the switches of the recording of BMP.
func routers() (list []serve.Switch) {
	for i, name := range []string{"leaf0", "leaf1", "spine0", "spine1"} {
		list = append(list, serve.Switch{Name: name, Values: map[string]string{"address": fmt.Sprint("127.0.1.", 2+i)}})
	}
	return list
}

// TestClusterKeepsLargestFlows: of the flows of a slot, many of which are as large as others,
// no more are stored than configured, and those that findings refer to.
func TestClusterKeepsLargestFlows(t *testing.T) {
	in := shipped
	in.keepFlows = 10
	bySlot, all := map[string]int{}, map[string]int{}
	slot := regexp.MustCompile(`Time:(\S+ \S+)`)
	for _, f := range throughCluster(t, &in, 0)["flows"] {
		bySlot[slot.FindString(f)]++
	}
	for _, f := range shipped.alone(t)["flows"] {
		all[slot.FindString(f)]++
	}
	kept := 0
	for at, n := range all {
		if n > in.keepFlows && bySlot[at] == in.keepFlows {
			kept++
		}
		if bySlot[at] < min(n, in.keepFlows) {
			t.Errorf("%s: %d of %d flows; want at least %d", at, bySlot[at], n, in.keepFlows)
		}
	}
	if kept < len(all)/3 { // in others packets are lost
		t.Errorf("%d of %d slots have %d flows; want most", kept, len(all), in.keepFlows)
	}
}

// bed is a cluster in one process, without members.
type bed struct {
	t          *testing.T
	in         *input
	cfg        serve.Config
	controller control.Config
	streams    Streams
	store      *embedded.Store
	leader     *Leader
	analyzers  *Analyzers
	applied    chan uint64
	ctx        context.Context
	stop       context.CancelFunc
	members    sync.WaitGroup
}

const bedPartitions = 4

func newBed(t *testing.T, in *input) *bed {
	b := &bed{t: t, in: in, cfg: in.config(t), store: openStore(t), applied: make(chan uint64, 1<<16)}
	var err error
	if b.controller, err = serve.ControllerConfig(&b.cfg, nil); err != nil {
		t.Fatal(err)
	}
	open := func(n int) *inproc.Stream {
		c := inproc.DefaultConfig()
		c.Partitions = n
		s, err := inproc.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	b.streams = Streams{Flows: open(bedPartitions), Lead: open(1 + bedPartitions), Partitions: bedPartitions}
	b.leader = &Leader{
		Config: b.controller, Streams: b.streams, Marks: &memoryMarks{}, Store: b.store, Log: slog.New(slog.DiscardHandler), Commit: DefaultCommit,
		Applied: func(_, batch uint64) { b.applied <- batch },
	}
	b.analyzers = NewAnalyzers(&b.controller, b.streams)
	b.ctx, b.stop = context.WithCancel(t.Context())
	return b
}

// works has a member work again and again, until the bed ends, each time for one of its lives;
// after these, to the end.
func (b *bed) works(work func(context.Context, int, uint64) error, part int, lives []time.Duration) {
	b.members.Go(func() {
		for i := 0; b.ctx.Err() == nil; i++ {
			life, end := context.WithCancel(b.ctx)
			if i < len(lives) {
				life, end = context.WithTimeout(b.ctx, lives[i])
			}
			if err := work(life, part, uint64(i)); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
				b.t.Errorf("member of partition %d: %v", part, err)
			}
			end()
		}
	})
}

// replay forwards the recording, waits until it is applied, ends all members, and returns what is
// stored.
func (b *bed) replay() map[string][]string {
	t := b.t
	t.Helper()
	decoder, err := serve.ControllerConfig(&b.cfg, b.in.kinds(t, &b.cfg))
	if err != nil {
		t.Fatal(err)
	}
	pub := NewPublisher(&decoder, b.streams, nil)
	r, err := serve.NewForwardingReplay(t.Context(), b.cfg, b.in.kinds(t, &b.cfg), pub)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Run(t.Context(), b.in.open(t, &b.cfg)); err != nil {
		t.Fatal(err)
	}
	if events, parts := pub.Refused(); events+parts > 0 {
		t.Fatalf("streams refused %d batches of events and %d parts of slots", events, parts)
	}
	_, last := pub.Position()
	deadline := time.After(patience)
	for done := uint64(0); done+1 < last; {
		select {
		case done = <-b.applied:
		case <-deadline:
			n, malformed, missing := b.leader.Counts()
			t.Fatalf("batch %d of %d is applied after %v (%d batches, %d malformed, %d results missing)", done, last, patience, n, malformed, missing)
		}
	}
	b.stop()
	b.members.Wait()
	return contents(t, b.store)
}

// throughCluster replays with members that die as the seed says; 0: none does.
func throughCluster(t *testing.T, in *input, seed uint64) map[string][]string {
	b := newBed(t, in)
	random := rand.New(rand.NewPCG(seed, 1))
	lives := func() (list []time.Duration) {
		if seed > 0 {
			for range 5 {
				list = append(list, time.Duration(random.IntN(60))*time.Millisecond)
			}
		}
		return list
	}
	for p := range bedPartitions {
		b.works(b.analyzers.Work, p, lives())
	}
	b.works(b.leader.Work, 0, lives())
	return b.replay()
}

package serve

import (
	"context"
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// gated is a store that keeps nothing until it is opened, and counts what it keeps.
type gated struct {
	*embedded.Store
	open   chan struct{}
	traces atomic.Uint64
}

func (g *gated) Append(ctx context.Context, b *record.Batch) error {
	<-g.open
	if err := g.Store.Append(ctx, b); err != nil {
		return err
	}
	g.traces.Add(uint64(len(b.Traces)))
	return nil
}

// flood sends mirrors of different packets, one in each datagram, as fast as the
// socket takes them, until it is stopped.
func flood(t *testing.T, b *bed, sw model.NodeID, stop <-chan struct{}) (sent uint64) {
	conn, err := net.Dial("udp", b.Reports().String())
	if err != nil {
		t.Error(err)
		return 0
	}
	defer conn.Close()
	f := b.Fabric()
	hosts := f.Hosts()
	// Few enough different packets that their open traces are a few megabytes, on
	// however slow a machine: the memory that the test bounds is that of queues.
	const packets = 20000
	w := dta.NewWriter(sw, 1)
	buf := make([]byte, 1472)
	for n := 0; ; n++ {
		select {
		case <-stop:
			return sent
		default:
		}
		m := mirror.Mirror{
			Reasons: mirror.Debug, Switch: sw, In: 1, Out: 2, Time: model.TimeOf(time.Now()),
			Frame: frame(f, hosts[0], hosts[5], 1000, uint16(n%packets)),
		}
		m.Length = uint16(len(m.Frame))
		w.Begin(buf)
		if err := w.AddReport(&dta.Report{Primitive: dta.Append, List: b.fabric.lists.Mirrors.First, Data: m.AppendTo(nil)}); err != nil {
			t.Error(err)
			return sent
		}
		if _, err := conn.Write(w.Finish()); err != nil {
			t.Error(err)
			return sent
		}
		sent++
	}
}

// stage finds one of a pipeline's, and its losses by reason.
func stage(h api.Health, name string) (api.Stage, map[string]uint64) {
	for _, st := range h.Stages {
		if st.Name == name {
			lost := map[string]uint64{}
			for _, l := range st.Losses {
				lost[l.Reason] = l.Count
			}
			return st, lost
		}
	}
	return api.Stage{}, nil
}

// TestFloodIsShedByRule: reports far beyond what can be handled come in while the
// analyses are stopped and the store keeps nothing. Each stage sheds by its own
// rule, no report and no record is unaccounted for, memory stays what it was, and
// the API answers all the while.
func TestFloodIsShedByRule(t *testing.T) {
	cfg := testConfig(t)
	set(t, &cfg, "int.listen", "")
	set(t, &cfg, "dta.receive_buffer", "64KiB") // so that the kernel sheds, too
	set(t, &cfg, "store.queue", "1000")
	cfg.Store.Hot = model.MiB
	keep := embedded.DefaultConfig()
	keep.CacheSize = cfg.Store.Hot
	s, err := embedded.Open(cfg.Store.Path, keep)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	g := &gated{Store: s, open: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	svc, err := New(ctx, cfg, Deps{Store: g, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- svc.Run(ctx) }()
	b := &bed{t: t, cfg: cfg, store: s, Service: svc}
	sw := b.Fabric().Node(b.Fabric().Hosts()[0]).Ports[0].Peer.Node
	before := heap()

	asked := ask(t, b.client(""))
	stop, flooded := make(chan struct{}), make(chan uint64, 1)
	go func() { flooded <- flood(t, b, sw, stop) }()
	// The analyses are stopped until the ring has wrapped.
	ring := uint64(16 << 10)
	if err := b.Loop.Call(ctx, func() {
		eventually(t, "a ring that is full", func() bool { st, _ := stage(b.Health(), "translator"); return st.Out > ring+1000 })
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "traces that are shed, and a queue of the kernel that is full", func() bool {
		h := b.Health()
		_, kept := stage(h, "store")
		_, sockets := stage(h, "transport")
		_, memory := stage(h, "memory")
		return kept["shed traces"] > 0 && sockets["queue full"] > 0 && memory["overwritten"] > 0
	})
	close(stop)
	sent := <-flooded
	if grown := heap() - before; grown > 64<<20 {
		t.Errorf("%d bytes of memory more than before the flood; want what the queues may hold", grown)
	}
	close(g.open)
	// The kernel reports what it dropped with the next datagram that it hands over.
	last := b.reporter(sw + 1)
	eventually(t, "an account of every datagram", func() bool {
		sent++
		last.append(b.fabric.lists.Mirrors.First, []byte("no mirror"))
		time.Sleep(20 * time.Millisecond)
		st, _ := stage(b.Health(), "transport")
		return st.In == sent
	})
	eventually(t, "everything to be read and kept", func() bool {
		h := b.Health()
		taken, _ := stage(h, "translator")
		read, lost := stage(h, "memory")
		kept, _ := stage(h, "store")
		return read.Out+lost["overwritten"] == taken.Out && kept.Queued == 0
	})
	if answers, failed := asked(); failed > 0 || answers == 0 {
		t.Errorf("%d of %d questions were not answered during the flood", failed, answers)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	checkAccounts(t, svc, g, sent)
}

// checkAccounts checks that each stage's numbers add up, and that those of one are
// those of the next.
func checkAccounts(t *testing.T, svc *Service, g *gated, sent uint64) {
	t.Helper()
	h := svc.Health()
	transport, dropped := stage(h, "transport")
	translator, refused := stage(h, "translator")
	memory, overwritten := stage(h, "memory")
	analyzers, unused := stage(h, "analyzers")
	kept, shed := stage(h, "store")
	delete(unused, "unproven trace") // its reports were analysed
	t.Logf("sent %d: queue full %d, overwritten %d, malformed %d; records %d: shed %v, kept %d",
		sent, dropped["queue full"], overwritten["overwritten"], unused["malformed mirror"], kept.In, shed, kept.Out)
	sum := func(m map[string]uint64) (n uint64) {
		for _, v := range m {
			n += v
		}
		return n
	}
	for _, c := range []struct {
		what      string
		got, want uint64
	}{
		{"sent = received + dropped by the kernel", transport.Out + dropped["queue full"] + dropped["too long"], sent},
		{"received = taken by the translator", translator.In, transport.Out},
		{"taken = in memory + refused", translator.Out + sum(refused), translator.In},
		{"in memory = read + overwritten", memory.Out + overwritten["overwritten"], translator.Out},
		{"read = analysed + malformed", analyzers.Out + sum(unused), memory.Out},
		{"records = kept + shed + failed", kept.Out + sum(shed), kept.In},
		{"failed", shed["failed"], 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, %d", c.what, c.got, c.want)
		}
	}
	info, err := g.Info(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range info.Kinds {
		if k.Kind == store.Traces && k.Rows != g.traces.Load() {
			t.Errorf("%d traces are in the store; it has accepted %d", k.Rows, g.traces.Load())
		}
	}
}

// ask asks questions of memory, store and controller until it is called, and
// then tells how many there were and how many had no answer.
func ask(t *testing.T, c *client.Client) func() (answers, failed int) {
	stop, done := make(chan struct{}), make(chan [2]int)
	go func() {
		var n [2]int
		for {
			select {
			case <-stop:
				done <- n
				return
			case <-time.After(5 * time.Millisecond):
			}
			_, err1 := c.Health(t.Context())
			_, err2 := c.Traces(t.Context(), api.TracesQuery{})
			_, err3 := c.Incidents(t.Context(), api.IncidentsQuery{})
			_, err4 := c.State(t.Context(), time.Time{})
			for _, err := range []error{err1, err2, err3, err4} {
				n[0]++
				if err != nil {
					t.Logf("during the flood: %v", err)
					n[1]++
				}
			}
		}
	}()
	return func() (int, int) { close(stop); n := <-done; return n[0], n[1] }
}

// heap is the memory in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

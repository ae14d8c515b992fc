package serve

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// traced are the flows of all traces in a store.
func traced(t *testing.T, path string) map[model.FlowKey]bool {
	t.Helper()
	s, err := embedded.Open(path, embedded.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	seen := map[model.FlowKey]bool{}
	for q := (record.Query{}); ; {
		p, err := s.Traces(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Items {
			seen[p.Items[i].Flow] = true
			if age := time.Since(p.Items[i].Time); age < 0 || age > time.Hour {
				t.Fatalf("trace of %v; want one of just now", p.Items[i].Time)
			}
		}
		if p.Next == "" {
			return seen
		}
		q.After = p.Next
	}
}

// mirrorOf is a packet that a switch saw, of the n-th flow.
func (b *bed) mirrorOf(n int) []byte {
	f := b.Fabric()
	hosts := f.Hosts()
	sw := f.Node(hosts[0]).Ports[0].Peer.Node
	m := mirror.Mirror{
		Reasons: mirror.Debug, Switch: sw, In: 1, Out: 2, Time: model.TimeOf(time.Now()),
		Frame: frame(f, hosts[0], hosts[5], uint16(n), uint16(n>>16)),
	}
	m.Length = uint16(len(m.Frame))
	return m.AppendTo(nil)
}

// waiting is how many reports wait for the analyses, or records for the store.
func (b *bed) waiting() uint64 {
	h := b.Health()
	taken, _ := stage(h, "translator")
	read, _ := stage(h, "memory")
	kept, _ := stage(h, "store")
	return max(taken.Out-min(read.Out, taken.Out), uint64(kept.Queued))
}

// TestEndUnderFire ends a service that is being reported to without pause: it
// does end, and everything that it took is in the store, report by report.
func TestEndUnderFire(t *testing.T) {
	b := start(t, testConfig(t))
	r := b.reporter(b.Fabric().Switches()[0])
	r.deaf = true
	// The analyses shall keep up: little waits for them when the end begins, and
	// what is sent from then on fits into a list. Health is not asked any more:
	// the API is closed by then.
	var mu sync.Mutex
	var ending bool
	left := 10_000
	pace := func() bool {
		time.Sleep(time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		for !ending && b.waiting() > 1000 {
			time.Sleep(time.Millisecond)
		}
		if ending {
			left -= 50
		}
		return left > 0
	}
	var over atomic.Bool
	sent := make(chan int)
	go func() {
		n := 0
		for !over.Load() && (n%50 != 0 || pace()) {
			r.append(b.fabric.lists.Mirrors.First, b.mirrorOf(n))
			n++
		}
		sent <- n
	}()
	eventually(t, "reports are taken", func() bool { st, _ := stage(b.Health(), "translator"); return st.Out >= 1000 })
	mu.Lock()
	ending = true
	mu.Unlock()
	err := b.end()
	over.Store(true)
	t.Logf("%d reports were sent", <-sent)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]uint64{}
	out := map[string]uint64{}
	for _, st := range b.Health().Stages {
		in[st.Name], out[st.Name] = st.In, st.Out
		for _, l := range st.Losses {
			if l.Count != 0 && st.Name != "transport" {
				t.Errorf("%s lost %d: %s", st.Name, l.Count, l.Reason)
			}
		}
	}
	took := out["translator"]
	if took < 100 || out["memory"] != took || out["analyzers"] != took || out["store"] != in["store"] {
		t.Errorf("%d reports were taken, %d read, %d used, %d of %d records kept; want all of them", took, out["memory"], out["analyzers"], out["store"], in["store"])
	}
	if got := len(traced(t, b.cfg.Store.Path)); uint64(got) != took {
		t.Errorf("%d traces in the store; want all %d that were taken", got, took)
	}
}

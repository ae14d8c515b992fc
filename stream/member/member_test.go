package member

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/inproc"
)

func TestAssign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "partitions")
		names := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), rapid.ID)
		members := names.Draw(t, "members")
		holders := map[int]string{}
		for p := range n {
			if h := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "gone"}).Draw(t, "holder"); h != "" {
				holders[p] = h
			}
		}
		got := Assign(n, members, holders)
		if len(members) == 0 {
			if len(got) != 0 {
				t.Fatalf("%v without members", got)
			}
			return
		}
		shares, before, kept := map[string]int{}, map[string]int{}, map[string]int{}
		for p := range n {
			if !slices.Contains(members, got[p]) {
				t.Fatalf("partition %d has %q; want one of %v", p, got[p], members)
			}
			shares[got[p]]++
			before[holders[p]]++
			if got[p] == holders[p] {
				kept[got[p]]++
			}
		}
		most := (n + len(members) - 1) / len(members)
		stay, larger := 0, n%len(members)
		for _, m := range members {
			if shares[m] > most || shares[m] < n/len(members) {
				t.Fatalf("shares %v of %d partitions", shares, n)
			}
			// No partition moves that need not: a member keeps what it has, up to its share.
			if kept[m] != min(before[m], shares[m]) {
				t.Fatalf("%s keeps %d of %d, its share is %d", m, kept[m], before[m], shares[m])
			}
			stay += min(before[m], n/len(members))
			if larger > 0 && before[m] > n/len(members) {
				stay++
				larger--
			}
		}
		sum := 0
		for _, k := range kept {
			sum += k
		}
		if sum != stay {
			t.Fatalf("%d partitions stay; want %d, as many as possible", sum, stay)
		}
		settled := Assign(n, members, got)
		if !maps.Equal(settled, got) {
			t.Fatalf("%v becomes %v without a reason", got, settled)
		}
	})
}

// books check that one member works on a partition at a time, with growing epochs.
type books struct {
	t      *testing.T
	mu     sync.Mutex
	worker map[int]string
	epoch  map[int]uint64
	change chan struct{}
}

func newBooks(t *testing.T) *books {
	return &books{t: t, worker: map[int]string{}, epoch: map[int]uint64{}, change: make(chan struct{}, 1)}
}

func (b *books) set(p int, name string, epoch uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if name != "" {
		if b.worker[p] != "" || epoch <= b.epoch[p] {
			b.t.Errorf("%s works on %d, epoch %d; so does %q, epoch %d", name, p, epoch, b.worker[p], b.epoch[p])
		}
		b.epoch[p] = epoch
	}
	b.worker[p] = name
	select {
	case b.change <- struct{}{}:
	default:
	}
}

func (b *books) work(name string) Work {
	return func(ctx context.Context, p int, epoch uint64) error {
		b.set(p, name, epoch)
		<-ctx.Done()
		b.set(p, "", epoch)
		return ctx.Err()
	}
}

// wait waits until the shares are those.
func (b *books) wait(want map[string]int) {
	b.t.Helper()
	deadline := time.After(time.Minute)
	for {
		got := map[string]int{}
		b.mu.Lock()
		for _, name := range b.worker {
			if name != "" {
				got[name]++
			}
		}
		b.mu.Unlock()
		if maps.Equal(got, want) {
			return
		}
		select {
		case <-b.change:
		case <-deadline:
			b.t.Fatalf("shares %v; want %v", got, want)
		}
	}
}

// TestRebalance has members come and go.
func TestRebalance(t *testing.T) {
	leases, b := inproc.NewLeases(), newBooks(t)
	start := func(name string) (*Member, func()) {
		m, err := New(Config{Group: "g", ID: name, Partitions: 12, Interval: 2 * time.Millisecond}, leases, b.work(name))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { _ = m.Run(ctx); close(done) }()
		return m, func() { stop(); <-done }
	}
	first, stopA := start("a")
	b.wait(map[string]int{"a": 12})
	_, stopB := start("b")
	b.wait(map[string]int{"a": 6, "b": 6})
	_, stopC := start("c")
	b.wait(map[string]int{"a": 4, "b": 4, "c": 4})
	if st := first.Stats(); st.Acquired != 12 || st.Released != 8 || st.Held != 4 {
		t.Errorf("stats %+v; want 12 acquired, 8 given to others", st)
	}
	stopB()
	b.wait(map[string]int{"a": 6, "c": 6})
	g, err := Look(t.Context(), leases, "g")
	if err != nil || !slices.Equal(g.Members, []string{"a", "c"}) || len(g.Holders) != 12 {
		t.Errorf("group %+v, %v; want a and c, 12 partitions", g, err)
	}
	stopA()
	b.wait(map[string]int{"c": 12})
	stopC()
	b.wait(map[string]int{})
	if g, _ := Look(t.Context(), leases, "g"); len(g.Members)+len(g.Holders) != 0 {
		t.Errorf("group %+v; want nobody", g)
	}
}

// TestWorkFails lets other members try what one cannot do.
func TestWorkFails(t *testing.T) {
	leases := inproc.NewLeases()
	failed := make(chan struct{}, 100)
	m, err := New(Config{Group: "g", ID: "a", Partitions: 1, Interval: time.Millisecond}, leases,
		func(context.Context, int, uint64) error { failed <- struct{}{}; return errors.New("no disk") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	<-failed
	<-failed // it tries again, as nobody else is there
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if st := m.Stats(); st.Failed < 2 || st.Held != 0 {
		t.Errorf("stats %+v; want two failures, nothing held", st)
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Group: "g", ID: "host-1", Partitions: 1, Interval: 1}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for i, change := range []func(*Config){
		func(c *Config) { c.Group = "" }, func(c *Config) { c.ID = "a.b" }, func(c *Config) { c.ID = "é" },
		func(c *Config) { c.Partitions = 0 }, func(c *Config) { c.Interval = 0 },
	} {
		c := good
		if change(&c); c.Check() == nil {
			t.Errorf("%s: %+v is valid", fmt.Sprint(i), c)
		}
	}
}

// TestShed: a member that is shed has no partitions until that ends, unless all are.
func TestShed(t *testing.T) {
	leases, b := inproc.NewLeases(), newBooks(t)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		m, err := New(Config{Group: "g", ID: name, Partitions: 4, Interval: 2 * time.Millisecond}, leases, b.work(name))
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { _ = m.Run(ctx) })
	}
	b.wait(map[string]int{"a": 2, "b": 2})
	shed := map[string]stream.Lease{}
	for _, name := range []string{"a", "b"} {
		lease, err := Shed(t.Context(), leases, "g", name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Shed(t.Context(), leases, "g", name); !errors.Is(err, stream.ErrHeld) {
			t.Errorf("%s is shed again with %v; want ErrHeld", name, err)
		}
		if shed[name] = lease; name == "a" {
			b.wait(map[string]int{"b": 4})
		} else {
			b.wait(map[string]int{"a": 2, "b": 2})
		}
	}
	g, err := Look(t.Context(), leases, "g")
	if err != nil || !slices.Equal(g.Shed, []string{"a", "b"}) || !slices.Equal(g.Members, g.Shed) {
		t.Errorf("group %+v, %v; want a and b, both shed", g, err)
	}
	if err := shed["a"].Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wait(map[string]int{"a": 4})
	if err := shed["b"].Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wait(map[string]int{"a": 2, "b": 2})
	stop()
	all.Wait()
}

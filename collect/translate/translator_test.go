package translate

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// recorder is an Outlet that writes down what it is asked.
type recorder struct{ lines []string }

func (o *recorder) add(format string, args ...any) {
	o.lines = append(o.lines, fmt.Sprintf(format, args...))
}

func (o *recorder) Serves(*dta.Report) bool { return true }
func (o *recorder) KeyWrite(r *dta.Report) {
	o.add("write %s=%s ×%d %v", r.Key, r.Data, r.Redundancy, r.Immediate)
}

func (o *recorder) KeyIncrement(r *dta.Report) { o.add("add %s+%d ×%d", r.Key, r.Delta, r.Redundancy) }

func (o *recorder) Postcards(p *Path) {
	hops := make([]string, len(p.Values))
	for i, v := range p.Values {
		hops[i] = "-"
		if p.Seen>>i&1 != 0 {
			hops[i] = fmt.Sprint(v)
		}
	}
	o.add("path %s: %s ×%d", p.Key, strings.Join(hops, " "), p.Redundancy)
}

func (o *recorder) Append(l dta.ListID, e []byte, imm bool) { o.add("list %d %s %v", l, e, imm) }
func (o *recorder) Flush(model.Time)                        {}

func (o *recorder) take() []string {
	out := o.lines
	o.lines = nil
	return out
}

func (o *recorder) want(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := o.take(); !slices.Equal(got, want) {
		t.Errorf("%s writes\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func fixture(t testing.TB, change func(*Config)) (*Translator, *recorder) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Rows, cfg.Hops, cfg.Batch = 4, 3, 3
	cfg.Lists = []List{{ID: 0, Entry: 2}, {ID: 1, Entry: 2}}
	if change != nil {
		change(&cfg)
	}
	out := &recorder{}
	tr, err := New(cfg, out)
	if err != nil {
		t.Fatal(err)
	}
	return tr, out
}

func postcard(key string, hop, path uint8, value uint32) dta.Report {
	return dta.Report{Primitive: dta.Postcarding, Redundancy: 2, Hop: hop, Path: path, Key: []byte(key), Data: binary.BigEndian.AppendUint32(nil, value)}
}

func entry(list dta.ListID, data string) dta.Report {
	return dta.Report{Primitive: dta.Append, List: list, Data: []byte(data)}
}

func TestKeyedReportsPassThrough(t *testing.T) {
	tr, out := fixture(t, nil)
	tr.Put(0, []dta.Report{
		{Primitive: dta.KeyWrite, Redundancy: 3, Immediate: true, Key: []byte("k"), Data: []byte("v")},
		{Primitive: dta.KeyIncrement, Redundancy: 2, Key: []byte("c"), Delta: 9},
	})
	out.want(t, "Put", "write k=v ×3 true", "add c+9 ×2")
}

func TestAppendsAreBatched(t *testing.T) {
	tr, out := fixture(t, nil)
	tr.Put(0, []dta.Report{entry(0, "a0"), entry(1, "b0"), entry(0, "a1")})
	out.want(t, "Put")
	tr.Put(1, []dta.Report{entry(0, "a2"), entry(0, "a3")})
	out.want(t, "a third entry", "list 0 a0a1a2 false")
	wait := DefaultConfig().ListWait
	tr.Tick(model.Time(0).Add(wait))
	out.want(t, "Tick when the first has waited", "list 1 b0 false")
	tr.Tick(model.Time(1).Add(wait))
	out.want(t, "Tick when the second has waited", "list 0 a3 false")
	tr.Tick(model.Time(time.Hour))
	out.want(t, "Tick with nothing left")

	now := entry(1, "b2")
	now.Immediate = true
	tr.Put(0, []dta.Report{entry(1, "b1"), now})
	out.want(t, "an immediate entry", "list 1 b1b2 true")
	tr.Put(0, []dta.Report{entry(1, "b3")})
	tr.Drain(0)
	out.want(t, "Drain", "list 1 b3 false")
	if st := tr.Stats(); st.Appends != 8 || st.Batches != 5 {
		t.Errorf("stats %+v; want 8 appends in 5 batches", st)
	}
}

func TestPathsAreGathered(t *testing.T) {
	tr, out := fixture(t, nil)
	tr.Put(0, []dta.Report{postcard("f", 2, 0, 30), postcard("f", 0, 0, 10), postcard("f", 0, 0, 10), postcard("f", 1, 0, 20)})
	out.want(t, "a full path", "path f: 10 20 30 ×2")
	tr.Put(0, []dta.Report{postcard("f", 0, 0, 1), postcard("f", 1, 2, 2)})
	out.want(t, "a path of the told length", "path f: 1 2 - ×2")
	tr.Put(0, []dta.Report{postcard("f", 0, 0, 1), postcard("f", 0, 0, 7)})
	out.want(t, "another value for a hop", "path f: 1 - - ×2")
	wait := DefaultConfig().PathWait
	tr.Tick(model.Time(0).Add(wait))
	out.want(t, "Tick", "path f: 7 - - ×2")
	tr.Put(0, []dta.Report{postcard("f", 1, 0, 3)})
	tr.Drain(0)
	out.want(t, "Drain", "path f: - 3 - ×2")
	want := PostcardStats{Postcards: 9, Gathered: 8, Repeated: 1, Complete: 2, Renewed: 1, Expired: 2}
	if st := tr.Stats().Postcards; st != want {
		t.Errorf("stats %+v; want %+v", st, want)
	}
}

// TestEvictedPathKeepsItsKey: the prototype writes the displaced row to the
// slot of the key that displaced it.
func TestEvictedPathKeepsItsKey(t *testing.T) {
	tr, out := fixture(t, func(c *Config) { c.Rows = 1 })
	tr.Put(0, []dta.Report{postcard("old", 0, 0, 1), postcard("new", 0, 0, 2)})
	out.want(t, "a collision", "path old: 1 - - ×2")
	tr.Drain(0)
	out.want(t, "Drain", "path new: 2 - - ×2")
}

func TestServes(t *testing.T) {
	tr, _ := fixture(t, nil)
	for want, reports := range map[bool][]dta.Report{
		true:  {entry(1, "ab"), postcard("f", 2, 0, 1), postcard("f", 2, 5, 1), {Primitive: dta.KeyWrite}},
		false: {entry(2, "ab"), entry(1, "abc"), entry(1, "a"), postcard("f", 3, 0, 1), postcard("f", 2, 2, 1), {Primitive: dta.Postcarding, Data: []byte("abc")}},
	} {
		for _, r := range reports {
			if got := tr.Serves(&r); got != want {
				t.Errorf("Serves(%+v) = %v; want %v", r, got, want)
			}
		}
	}
}

func TestConfigComplaints(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"translate: 3 rows for postcards, want a power of two":                                           func(c *Config) { c.Rows = 3 },
		"translate: paths of 33 hops, want 1 to 32":                                                      func(c *Config) { c.Hops = 33 },
		"translate: batches of 0 entries, want at least 1":                                               func(c *Config) { c.Batch = 0 },
		"translate: list 4 with entries of 0 bytes, want 1 to 65535":                                     func(c *Config) { c.Lists = []List{{ID: 4}} },
		"translate: list 4 twice":                                                                        func(c *Config) { c.Lists = []List{{4, 1}, {4, 1}} },
		"translate: query sums bits 30 to 34, want 1 to 32 bits of a value":                              func(c *Config) { c.Queries = []Query{{Shift: 30, Bits: 4}} },
		"translate: query answers to list 9, which is not served":                                        func(c *Config) { c.Queries = []Query{{Bits: 4, List: 9}} },
		fmt.Sprintf("translate: query answers to list 1 with entries of 2 bytes, want %d", MatchSize(3)): func(c *Config) { c.Queries = []Query{{Bits: 4, List: 1}} },
	} {
		cfg := DefaultConfig()
		cfg.Hops, cfg.Lists = 3, []List{{0, 2}, {1, 2}}
		change(&cfg)
		if _, err := New(cfg, &recorder{}); err == nil || err.Error() != want {
			t.Errorf("New = %v; want %s", err, want)
		}
	}
}

// TestClaimSlowFlowsAreReportedOnTheWay is the standing query of section 7:
// flow and path, where the latencies of the hops sum up to more than T.
func TestClaimSlowFlowsAreReportedOnTheWay(t *testing.T) {
	const hops, bound = 3, 1000
	tr, out := fixture(t, func(c *Config) {
		c.Rows = 1 << 10
		c.Lists = []List{{ID: 5, Entry: MatchSize(hops)}}
		// The low 16 bits are the latency, the high 16 the switch.
		c.Queries = []Query{{Bits: 16, Above: bound, List: 5}}
	})
	matches := map[string]uint64{}
	truth := map[string]uint64{}
	for i := range 200 {
		key := fmt.Sprintf("flow %d", i)
		sum := uint64(0)
		path := uint8(1 + i%hops)
		for hop := range path {
			latency := uint32(i * int(hop+1) % 700)
			sum += uint64(latency)
			tr.Put(0, []dta.Report{postcard(key, hop, path, uint32(hop+1)<<16|latency)})
		}
		if sum > bound {
			truth[key] = sum
		}
	}
	tr.Put(0, []dta.Report{postcard("half", 0, 0, 1<<16|5000)}) // incomplete: no sum
	tr.Drain(0)
	for _, line := range out.take() {
		body, ok := strings.CutPrefix(line, "list 5 ")
		if !ok {
			continue
		}
		m, err := ParseMatch([]byte(strings.TrimSuffix(body, " true")))
		if err != nil {
			t.Fatal(err)
		}
		for hop, v := range m.Path {
			if v>>16 != uint32(hop+1) {
				t.Errorf("%s has switch %d at hop %d", m.Key, v>>16, hop)
			}
		}
		matches[string(m.Key)] = m.Sum
	}
	if len(truth) == 0 || fmt.Sprint(matches) != fmt.Sprint(truth) {
		t.Errorf("reported %v; want %v", matches, truth)
	}
}

// TestCacheLosesNothing compares with a twin that never evicts: whatever the
// cache's size, each postcard leaves exactly once, under its own key and hop.
func TestCacheLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hops := rapid.IntRange(1, 6).Draw(t, "hops")
		c, err := newCache(1<<rapid.IntRange(0, 4).Draw(t, "rows"), hops, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		var in, out []string
		emit := func(p *Path) {
			for i, v := range p.Values {
				if p.Seen>>i&1 != 0 {
					out = append(out, fmt.Sprint(string(p.Key), i, " ", v))
				} else if v != 0 {
					t.Fatalf("hop %d has %d without being seen", i, v)
				}
			}
		}
		var now model.Time
		for i := range rapid.IntRange(0, 200).Draw(t, "postcards") {
			hop := uint8(rapid.IntRange(0, hops-1).Draw(t, "hop"))
			path := uint8(rapid.IntRange(0, hops+2).Draw(t, "path"))
			key := string(rune('a' + rapid.IntRange(0, 20).Draw(t, "key")))
			r := postcard(key, hop, path, uint32(i+1))
			c.put(now, &r, uint32(i+1), emit)
			in = append(in, fmt.Sprint(key, hop, " ", i+1))
			if rapid.IntRange(0, 20).Draw(t, "tick") == 0 {
				now = now.Add(time.Millisecond)
				c.sweep(now, emit)
			}
		}
		c.drain(emit)
		slices.Sort(in)
		slices.Sort(out)
		if !slices.Equal(in, out) {
			t.Fatalf("out %v; want %v", out, in)
		}
		if st := c.stats; st.Postcards != st.Gathered+st.Repeated || c.filled != 0 {
			t.Fatalf("counts do not add up: %+v, %d filled", st, c.filled)
		}
	})
}

// TestListsKeepOrder compares with one slice per list: entries leave whole and
// in the order they came in, none later than its wait.
func TestListsKeepOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		cfg.Rows, cfg.ListWait = 1, 5
		cfg.Batch = rapid.IntRange(1, 6).Draw(t, "batch")
		base := dta.ListID(rapid.IntRange(0, 1).Draw(t, "base") * 1000) // dense, and not
		for i := range rapid.IntRange(1, 5).Draw(t, "lists") {
			cfg.Lists = append(cfg.Lists, List{ID: base + dta.ListID(i), Entry: 1 + i})
		}
		out := &sheets{got: map[dta.ListID][]byte{}}
		tr, err := New(cfg, out)
		if err != nil {
			t.Fatal(err)
		}
		want := map[dta.ListID][]byte{}
		var now model.Time
		for i := range rapid.IntRange(0, 100).Draw(t, "entries") {
			l := cfg.Lists[rapid.IntRange(0, len(cfg.Lists)-1).Draw(t, "list")]
			data := bytes.Repeat([]byte{byte(i)}, l.Entry)
			want[l.ID] = append(want[l.ID], data...)
			tr.Put(now, []dta.Report{{Primitive: dta.Append, List: l.ID, Data: data}})
			now += model.Time(rapid.IntRange(0, 3).Draw(t, "pause"))
			tr.Tick(now)
			for l := tr.lists.head; l >= 0; l = tr.lists.all[l].next {
				if age := now.Sub(tr.lists.all[l].since); age >= 5 {
					t.Fatalf("an entry waits since %d ns", age)
				}
			}
		}
		tr.Drain(now)
		for id := range want {
			if !bytes.Equal(out.got[id], want[id]) {
				t.Fatalf("list %d has %x; want %x", id, out.got[id], want[id])
			}
		}
	})
}

type sheets struct {
	recorder
	got map[dta.ListID][]byte
}

func (s *sheets) Append(l dta.ListID, e []byte, _ bool) { s.got[l] = append(s.got[l], e...) }

// blind is an Outlet that does nothing.
type blind struct{}

func (blind) Serves(*dta.Report) bool         { return true }
func (blind) KeyWrite(*dta.Report)            {}
func (blind) KeyIncrement(*dta.Report)        {}
func (blind) Postcards(*Path)                 {}
func (blind) Append(dta.ListID, []byte, bool) {}
func (blind) Flush(model.Time)                {}

func TestTranslatorAllocatesNothing(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Lists = []List{{0, 4}, {1, MatchSize(cfg.Hops)}}
	cfg.Queries = []Query{{Bits: 32, List: 1}}
	tr, err := New(cfg, blind{})
	if err != nil {
		t.Fatal(err)
	}
	batch := []dta.Report{
		entry(0, "abcd"), postcard("a", 0, 2, 1), postcard("b", 0, 2, 1), postcard("a", 1, 2, 1),
		{Primitive: dta.KeyWrite, Redundancy: 2, Key: []byte("k"), Data: []byte("abcd")},
	}
	var now model.Time
	if n := testing.AllocsPerRun(1000, func() {
		now = now.Add(time.Millisecond)
		tr.Put(now, batch)
		tr.Tick(now)
	}); n != 0 {
		t.Errorf("a round allocates %v times; want 0", n)
	}
	if tr.Stats().Matches == 0 {
		t.Error("the query was never answered")
	}
}

func BenchmarkTranslator(b *testing.B) {
	for name, make := range map[string]func(i int) dta.Report{
		"append":   func(int) dta.Report { return entry(0, "abcd") },
		"postcard": func(i int) dta.Report { return postcard(fmt.Sprintf("flow %8d", i/5), uint8(i%5), 5, 7) },
	} {
		b.Run(name, func(b *testing.B) {
			cfg := DefaultConfig()
			cfg.Lists = []List{{0, 4}}
			tr, err := New(cfg, blind{})
			if err != nil {
				b.Fatal(err)
			}
			var batch []dta.Report
			for i := range 5 * 1024 {
				batch = append(batch, make(i))
			}
			for b.Loop() {
				tr.Put(0, batch)
			}
			b.ReportMetric(float64(b.N)*float64(len(batch))/1e6/b.Elapsed().Seconds(), "Mreport/s")
		})
	}
}

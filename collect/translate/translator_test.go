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

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// recorder is an Outlet that writes down what it is asked.
type recorder struct{ lines []string }

func (o *recorder) add(format string, args ...any) {
	o.lines = append(o.lines, fmt.Sprintf(format, args...))
}

func (o *recorder) KeyWrite(r *dta.Report) {
	o.add("write %s=%s ×%d %v", r.Key, r.Data, r.Redundancy, r.Immediate)
}

func (o *recorder) KeyIncrement(r *dta.Report) { o.add("add %s+%d ×%d", r.Key, r.Delta, r.Redundancy) }

func (o *recorder) Run(first *dta.Report, run []byte) {
	o.add("run of %v, %d bytes", first.Primitive, len(run))
}

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

// plan is memory for paths of 3 hops and two lists of 2-byte entries, in
// batches of 3.
func plan(t testing.TB, classes ...list.Class) *Plan {
	t.Helper()
	if classes == nil {
		classes = []list.Class{{Lists: 2, Entry: 2, Capacity: 16}}
	}
	kw, err := keywrite.NewScheme(keywrite.Config{Layout: keywrite.Weft, Slots: 64, Value: 1, Check: 32})
	if err != nil {
		t.Fatal(err)
	}
	ki, err := count.NewScheme(count.DefaultConfig(512))
	if err != nil {
		t.Fatal(err)
	}
	pc, err := postcard.NewScheme(postcard.Config{Layout: postcard.Sealed, Chunks: 64, Hops: 3, Bits: 32})
	if err != nil {
		t.Fatal(err)
	}
	l, err := list.NewScheme(list.Config{Layout: list.Weft, Batch: 3, Classes: classes})
	if err != nil {
		t.Fatal(err)
	}
	return &Plan{KeyWrites: []*keywrite.Scheme{kw}, Counts: ki, Postcards: pc, Lists: []*list.Scheme{l}}
}

func fixture(t testing.TB, rows int) (*Translator, *recorder) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Rows = rows
	out := &recorder{}
	tr, err := New(cfg, plan(t), out)
	if err != nil {
		t.Fatal(err)
	}
	return tr, out
}

func card(key string, hop, path uint8, value uint32) dta.Report {
	return dta.Report{Primitive: dta.Postcarding, Redundancy: 2, Hop: hop, Path: path, Key: []byte(key), Data: binary.BigEndian.AppendUint32(nil, value)}
}

func entry(list dta.ListID, data string) dta.Report {
	return dta.Report{Primitive: dta.Append, List: list, Data: []byte(data)}
}

func TestKeyedReportsPassThrough(t *testing.T) {
	tr, out := fixture(t, 4)
	tr.Put(0, []dta.Report{
		{Primitive: dta.KeyWrite, Redundancy: 3, Immediate: true, Key: []byte("k"), Data: []byte("v")},
		{Primitive: dta.KeyIncrement, Redundancy: 2, Key: []byte("c"), Delta: 9},
	})
	out.want(t, "Put", "write k=v ×3 true", "add c+9 ×2")
}

func TestAppendsAreBatched(t *testing.T) {
	tr, out := fixture(t, 4)
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
	tr, out := fixture(t, 4)
	tr.Put(0, []dta.Report{card("f", 2, 0, 30), card("f", 0, 0, 10), card("f", 0, 0, 10), card("f", 1, 0, 20)})
	out.want(t, "a full path", "path f: 10 20 30 ×2")
	tr.Put(0, []dta.Report{card("f", 0, 0, 1), card("f", 1, 2, 2)})
	out.want(t, "a path of the told length", "path f: 1 2 - ×2")
	tr.Put(0, []dta.Report{card("f", 0, 0, 1), card("f", 0, 0, 7)})
	out.want(t, "another value for a hop", "path f: 1 - - ×2")
	wait := DefaultConfig().PathWait
	tr.Tick(model.Time(0).Add(wait))
	out.want(t, "Tick", "path f: 7 - - ×2")
	tr.Put(0, []dta.Report{card("f", 1, 0, 3)})
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
	tr, out := fixture(t, 1)
	tr.Put(0, []dta.Report{card("old", 0, 0, 1), card("new", 0, 0, 2)})
	out.want(t, "a collision", "path old: 1 - - ×2")
	tr.Drain(0)
	out.want(t, "Drain", "path new: 2 - - ×2")
}

func TestAdmit(t *testing.T) {
	tr, _ := fixture(t, 4)
	for want, reports := range map[bool][]dta.Report{
		true: {
			entry(1, "ab"), entry(1, "a"), card("f", 2, 0, 1), card("f", 2, 5, 1),
			{Primitive: dta.KeyWrite, Key: []byte("k"), Data: []byte("v")},
			{Primitive: dta.KeyIncrement, Key: []byte("k")},
		},
		false: {
			entry(2, "ab"), entry(1, "abc"), card("f", 3, 0, 1), card("f", 2, 2, 1), card("f", 0, 0, postcard.Blank),
			{Primitive: dta.Postcarding, Key: []byte("f"), Data: []byte("abc")},
			{Primitive: dta.KeyWrite, Key: []byte("k"), Data: []byte("vv")},
			{Primitive: 9},
		},
	} {
		for _, r := range reports {
			if got := tr.Admit(&r) == dta.Stored; got != want {
				t.Errorf("Admit(%+v) is stored: %v; want %v", r, got, want)
			}
		}
	}
}

func TestConfigComplaints(t *testing.T) {
	for want, change := range map[string]func(*Config, *Plan){
		"translate: 3 rows for postcards, want a power of two":              func(c *Config, _ *Plan) { c.Rows = 3 },
		"translate: query sums bits 30 to 34, want 1 to 32 bits of a value": func(c *Config, _ *Plan) { c.Queries = []Query{{Shift: 30, Bits: 4}} },
		"translate: query answers to list 9, which is not served":           func(c *Config, _ *Plan) { c.Queries = []Query{{Bits: 4, List: 9}} },
		"translate: query without memory for postcards":                     func(c *Config, p *Plan) { c.Queries, p.Postcards = []Query{{Bits: 4}}, nil },
		"translate: two key-write memories for values of 1 bytes":           func(_ *Config, p *Plan) { p.KeyWrites = append(p.KeyWrites, p.KeyWrites[0]) },
		"translate: no memory": func(_ *Config, p *Plan) { *p = Plan{} },
		fmt.Sprintf("translate: query answers to list 1 with entries of 2 bytes, want at least %d", MatchSize(3)): func(c *Config, _ *Plan) {
			c.Queries = []Query{{Bits: 4, List: 1}}
		},
	} {
		cfg, p := DefaultConfig(), plan(t)
		change(&cfg, p)
		if _, err := New(cfg, p, &recorder{}); err == nil || err.Error() != want {
			t.Errorf("New = %v; want %s", err, want)
		}
	}
}

// TestClaimSlowFlowsAreReportedOnTheWay is the standing query of section 7:
// flow and path, where the latencies of the hops sum up to more than T.
func TestClaimSlowFlowsAreReportedOnTheWay(t *testing.T) {
	const hops, bound = 3, 1000
	cfg := DefaultConfig()
	// The low 16 bits are the latency, the high 16 the switch.
	cfg.Queries = []Query{{Bits: 16, Above: bound, List: 2}}
	out := &recorder{}
	tr, err := New(cfg, plan(t, list.Class{Lists: 2, Entry: 4, Capacity: 16}, list.Class{Lists: 1, Entry: MatchSize(hops), Capacity: 16}), out)
	if err != nil {
		t.Fatal(err)
	}
	matches := map[string]uint64{}
	truth := map[string]uint64{}
	for i := range 200 {
		key := fmt.Sprintf("flow %d", i)
		sum := uint64(0)
		path := uint8(1 + i%hops)
		for hop := range path {
			latency := uint32(i * int(hop+1) % 700)
			sum += uint64(latency)
			tr.Put(0, []dta.Report{card(key, hop, path, uint32(hop+1)<<16|latency)})
		}
		if sum > bound {
			truth[key] = sum
		}
	}
	tr.Put(0, []dta.Report{card("half", 0, 0, 1<<16|5000)}) // incomplete: no sum
	tr.Drain(0)
	for _, line := range out.take() {
		body, ok := strings.CutPrefix(line, "list 2 ")
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
		emit := func(_ model.Time, p *Path) {
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
			r := card(key, hop, path, uint32(i+1))
			c.put(now, &r, c.row(r.Key), emit)
			in = append(in, fmt.Sprint(key, hop, " ", i+1))
			if rapid.IntRange(0, 20).Draw(t, "tick") == 0 {
				now = now.Add(time.Millisecond)
				c.sweep(now, emit)
			}
		}
		c.drain(now, emit)
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
// TestRunsOfPostcardsAreThePostcards: runs and single reports let the same paths
// leave, in the same order, and those are refused whole of which one would be.
func TestRunsOfPostcardsAreThePostcards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pc, err := postcard.NewScheme(postcard.Config{Layout: postcard.Sealed, Chunks: 64, Hops: 3, Bits: 32})
		if err != nil {
			t.Fatal(err)
		}
		cfg := DefaultConfig()
		cfg.Rows = 4
		var outs [2]recorder
		var trs [2]*Translator
		for i := range trs {
			if trs[i], err = New(cfg, &Plan{Postcards: pc}, &outs[i]); err != nil {
				t.Fatal(err)
			}
		}
		keyLen := rapid.SampledFrom([]int{1, 7, 8, 13, 16, 17, dta.MaxKey}).Draw(t, "key length")
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			var run []byte
			var reports []dta.Report
			served := true
			for range rapid.SampledFrom([]int{1, 2, 3, 5, 9, 70}).Draw(t, "reports") {
				key := bytes.Repeat([]byte{'k'}, keyLen)
				key[rapid.IntRange(0, keyLen-1).Draw(t, "where")] = byte(rapid.IntRange('a', 'c').Draw(t, "what"))
				r := card(string(key), uint8(rapid.IntRange(0, 2).Draw(t, "hop")), uint8(rapid.SampledFrom([]int{0, 3}).Draw(t, "path")), uint32(rapid.IntRange(0, 1).Draw(t, "value")))
				switch rapid.IntRange(0, 300).Draw(t, "fault") {
				case 0:
					r.Hop = 3
				case 1:
					r.Hop, r.Path = 2, 2
				case 2:
					r.Data = []byte{255, 255, 255, 255}
				}
				served = served && trs[0].Admit(&r) == dta.Stored
				run, reports = r.AppendTo(run), append(reports, r)
			}
			if got := trs[1].AdmitRun(&reports[0], run, len(reports)) == dta.Stored; got != served {
				t.Fatalf("a run is served: %v; want %v as its reports", got, served)
			}
			if served {
				trs[0].Put(0, reports)
				trs[1].PutRun(0, &reports[0], run, len(reports))
			}
		}
		for i := range trs {
			trs[i].Drain(0)
		}
		if got, want := outs[1].take(), outs[0].take(); !slices.Equal(got, want) {
			t.Fatalf("runs left\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got, want := trs[1].Stats(), trs[0].Stats(); got != want {
			t.Fatalf("after runs %+v; want %+v", got, want)
		}
	})
}

// TestRunsOfEntriesAreTheEntries: runs and single reports leave the same batches
// at the same times, whatever the entries are like.
func TestRunsOfEntriesAreTheEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layout, classes := list.Weft, []list.Class{
			{Lists: 2, Entry: 4, Capacity: 100}, {Lists: 1, Entry: 4, Capacity: 100, Sized: true}, {Lists: 1, Entry: 7, Capacity: 100},
		}
		if rapid.Bool().Draw(t, "prototype") {
			layout, classes = list.Prototype, []list.Class{{Lists: 1, Entry: 4, Capacity: 128}}
		}
		s, err := list.NewScheme(list.Config{Layout: layout, Batch: rapid.SampledFrom([]int{1, 4}).Draw(t, "batch"), Classes: classes})
		if err != nil {
			t.Fatal(err)
		}
		var outs [2]recorder
		var trs [2]*Translator
		for i := range trs {
			if trs[i], err = New(DefaultConfig(), &Plan{Lists: []*list.Scheme{s}}, &outs[i]); err != nil {
				t.Fatal(err)
			}
		}
		var now model.Time
		for range rapid.IntRange(1, 8).Draw(t, "runs") {
			now = now.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "pause")) * time.Millisecond)
			id := uint32(rapid.IntRange(0, int(s.Lists())-1).Draw(t, "list"))
			class, err := s.Class(id)
			if err != nil {
				t.Fatal(err)
			}
			size := rapid.IntRange(1, class.Entry).Draw(t, "size")
			if layout == list.Prototype {
				size = class.Entry
			}
			var run []byte
			var reports []dta.Report
			for range rapid.IntRange(1, 12).Draw(t, "reports") {
				r := entry(dta.ListID(id), string(rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "data")))
				run, reports = r.AppendTo(run), append(reports, r)
			}
			trs[0].Put(now, reports)
			trs[1].PutRun(now, &reports[0], run, len(reports))
			for i := range trs {
				trs[i].Tick(now)
			}
		}
		for i := range trs {
			trs[i].Drain(now)
		}
		if got, want := outs[1].take(), outs[0].take(); !slices.Equal(got, want) {
			t.Fatalf("runs left\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got, want := trs[1].Stats(), trs[0].Stats(); got != want {
			t.Fatalf("after runs %+v; want %+v", got, want)
		}
	})
}

func TestListsKeepOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		cfg.Rows, cfg.ListWait = 1, 5
		var classes []list.Class
		for i := range rapid.IntRange(1, 5).Draw(t, "lists") {
			classes = append(classes, list.Class{Lists: 1 + i, Entry: 1 + i, Capacity: 100})
		}
		batch := rapid.IntRange(1, 6).Draw(t, "batch")
		var p Plan // two memories of lists, numbered through
		for range 2 {
			s, err := list.NewScheme(list.Config{Layout: list.Weft, Batch: batch, Classes: classes})
			if err != nil {
				t.Fatal(err)
			}
			p.Lists = append(p.Lists, s)
		}
		out := &sheets{got: map[dta.ListID][]byte{}}
		tr, err := New(cfg, &p, out)
		if err != nil {
			t.Fatal(err)
		}
		half := int(p.Lists[0].Lists())
		want := map[dta.ListID][]byte{}
		var now model.Time
		for i := range rapid.IntRange(0, 100).Draw(t, "entries") {
			id := rapid.IntRange(0, 2*half-1).Draw(t, "list")
			class, err := p.Lists[0].Class(uint32(id % half))
			if err != nil {
				t.Fatal(err)
			}
			data := bytes.Repeat([]byte{byte(i)}, class.Entry)
			want[dta.ListID(id)] = append(want[dta.ListID(id)], data...)
			tr.Put(now, []dta.Report{{Primitive: dta.Append, List: dta.ListID(id), Data: data}})
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

func (blind) KeyWrite(*dta.Report)            {}
func (blind) KeyIncrement(*dta.Report)        {}
func (blind) Run(*dta.Report, []byte)         {}
func (blind) Postcards(*Path)                 {}
func (blind) Append(dta.ListID, []byte, bool) {}
func (blind) Flush(model.Time)                {}

func TestTranslatorAllocatesNothing(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Queries = []Query{{Bits: 32, List: 0}}
	tr, err := New(cfg, plan(t, list.Class{Lists: 1, Entry: MatchSize(3), Capacity: 16}), blind{})
	if err != nil {
		t.Fatal(err)
	}
	batch := []dta.Report{
		entry(0, "abcd"), card("a", 0, 2, 1), card("b", 0, 2, 1), card("a", 1, 2, 1),
		{Primitive: dta.KeyWrite, Redundancy: 2, Key: []byte("k"), Data: []byte("a")},
	}
	run, cards := batch[0].AppendTo(batch[0].AppendTo(nil)), batch[1].AppendTo(batch[2].AppendTo(nil))
	var now model.Time
	if n := testing.AllocsPerRun(1000, func() {
		now = now.Add(time.Millisecond)
		tr.Put(now, batch)
		tr.PutRun(now, &batch[0], run, 2)
		tr.PutRun(now, &batch[2], cards, 2)
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
		"postcard": func(i int) dta.Report { return card(fmt.Sprintf("flow %8d", i/3), uint8(i%3), 3, 7) },
	} {
		b.Run(name, func(b *testing.B) {
			tr, err := New(DefaultConfig(), plan(b, list.Class{Lists: 1, Entry: 4, Capacity: 64}), blind{})
			if err != nil {
				b.Fatal(err)
			}
			var batch []dta.Report
			for i := range 6 * 1024 {
				batch = append(batch, make(i))
			}
			for b.Loop() {
				tr.Put(0, batch)
			}
			b.ReportMetric(float64(b.N)*float64(len(batch))/1e6/b.Elapsed().Seconds(), "Mreport/s")
		})
	}
}

package translate

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// recorder is a MemoryWriter that records its calls.
type recorder struct{ lines []string }

func (o *recorder) add(format string, args ...any) {
	o.lines = append(o.lines, fmt.Sprintf(format, args...))
}

func (o *recorder) KeyWrite(r *dta.Report) {
	o.add("write %s=%s ×%d %v", r.Key, r.Data, r.Redundancy, r.Immediate)
}

func (o *recorder) KeyIncrement(r *dta.Report) { o.add("add %s+%d ×%d", r.Key, r.Delta, r.Redundancy) }

func (o *recorder) WriteRun(first *dta.Report, run []byte) {
	o.add("run of %v, %d bytes", first.Primitive, len(run))
}

func (o *recorder) WritePath(p *Path) {
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

func TestConfigErrors(t *testing.T) {
	for want, change := range map[string]func(*Config, *Plan){
		"translate: 3 rows for postcards, want a power of two":              func(c *Config, _ *Plan) { c.Rows = 3 },
		"translate: query sums bits 30 to 34, want 1 to 32 bits of a value": func(c *Config, _ *Plan) { c.Queries = []Query{{Shift: 30, Bits: 4}} },
		"translate: query answers to list 9, which does not exist":          func(c *Config, _ *Plan) { c.Queries = []Query{{Bits: 4, List: 9}} },
		"translate: query needs memory for postcards":                       func(c *Config, p *Plan) { c.Queries, p.Postcards = []Query{{Bits: 4}}, nil },
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

// blind is a MemoryWriter that does nothing.
type blind struct{}

func (blind) KeyWrite(*dta.Report)            {}
func (blind) KeyIncrement(*dta.Report)        {}
func (blind) WriteRun(*dta.Report, []byte)    {}
func (blind) WritePath(*Path)                 {}
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

package tracewatch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/analyze/filter/headers"
	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// TestAnyNumberOfAnalyzersSayTheSame: counters of every period, what is kept
// and what is found do not depend on how many share the work. The reference is one
// analyzer.
func TestAnyNumberOfAnalyzersSayTheSame(t *testing.T) {
	l := newLab(t)
	rapid.Check(t, func(t *rapid.T) {
		var packets []sent
		for i := range rapid.IntRange(1, 60).Draw(t, "packets") {
			s := sent{
				from: model.NodeID(rapid.IntRange(0, 3).Draw(t, "from")), to: model.NodeID(rapid.IntRange(4, 15).Draw(t, "to")), id: uint16(i),
				port: uint16(rapid.IntRange(1, 3).Draw(t, "port")), at: model.Time(i) * model.Time(rapid.IntRange(1, 2000).Draw(t, "µs")) * 1000,
				why: mirror.Reasons(rapid.SampledFrom([]int{0, 0, int(mirror.Debug), int(mirror.Protocol)}).Draw(t, "why")),
			}
			if s.port == 2 {
				s.hops = 2 // a broken port of some leaf
			}
			packets = append(packets, s)
		}
		slices.SortStableFunc(packets, func(a, b sent) int { return cmp.Compare(a.at, b.at) })
		say := func(n int) (lines []string) {
			cfg := l.config()
			cfg.Analyzers = n
			w, err := New(cfg, nil, Output{})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.AddCounter("two", "tcp.srcport == 2"); err != nil {
				t.Fatal(err)
			}
			for _, s := range packets {
				for _, m := range l.mirrors(t, s) {
					w.AddMirror(m.Time, &m)
				}
				w.Advance(s.at)
			}
			finish(w)
			for _, name := range w.Counters() {
				list, err := w.QueryCounter(name, 0, forever)
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, fmt.Sprint(name, list))
			}
			kept, err := w.QueryTraces("", 0, forever, "ip.id", "ip.src", "trace.end", "hop.switch")
			if err != nil {
				t.Fatal(err)
			}
			var rows []string
			for _, r := range kept.Rows {
				rows = append(rows, strings.Join(r, " "))
			}
			slices.Sort(rows)
			for _, f := range w.Findings() {
				lines = append(lines, fmt.Sprint(f.Kind, f.Switch, f.Next, f.Ended, f.Packets))
			}
			return append(lines, rows...)
		}
		if diff := gocmp.Diff(say(1), say(rapid.IntRange(2, 7).Draw(t, "analyzers"))); diff != "" {
			t.Fatalf("one analyzer and several differ:\n%s", diff)
		}
	})
}

func TestPeriodsAndFindings(t *testing.T) {
	l := newLab(t)
	cfg := l.config()
	cfg.Analyzers, cfg.Window = 3, 2
	var told []string
	var periods []model.Time
	w := l.watch(t, cfg, nil, Output{
		Period: func(p *Period) { periods = append(periods, p.From) },
		Finding: func(from, _ model.Time, f trace.Finding) {
			told = append(told, fmt.Sprint(from, f.Kind, l.fabric.Node(f.Switch).Name))
		},
	})
	bad := l.mirrors(t, sent{from: 0, to: 15, port: 1})[1].Switch
	id := uint16(0)
	for ms := range 80 { // the leaf drops what it gets from 20 to 30 ms
		for k := range 10 {
			s := sent{from: 0, to: 15, port: 1, id: id, at: model.Time(ms)*1e6 + model.Time(k)*1e4}
			id++
			if ms >= 20 && ms < 30 {
				s.hops = 2
			}
			l.send(t, w, s)
		}
		w.Advance(model.Time(ms+1) * 1e6)
	}
	// In the third period traces end short; with a window of two it is over in
	// the fifth.
	if want := []string{fmt.Sprint(model.Time(20e6), trace.Drop, l.fabric.Node(bad).Name)}; !slices.Equal(told, want) {
		t.Errorf("told %v; want %v, once", told, want)
	}
	if got := w.Findings(); len(got) != 0 {
		t.Errorf("findings %+v are still there", got)
	}
	if want := []model.Time{0, 10e6, 20e6, 30e6, 40e6, 50e6, 60e6, 70e6}; !slices.Equal(periods, want[:len(periods)]) || len(periods) < 7 {
		t.Errorf("periods %v; want %v, the last perhaps open", periods, want)
	}
	finish(w)
	// A trace is complete a millisecond after it was last seen.
	list, err := w.QueryCounter("lost", 0, forever)
	if err != nil || len(list) != 9 || list[2].Count != 90 || list[3].Count != 10 || list[4].Count != 0 {
		t.Errorf("short by period: %+v, %v; want 90 in the third, 10 in the fourth", list, err)
	}
	if n := count(t, w, "traces"); n != 800 {
		t.Errorf("%d traces; want 800", n)
	}
	link := "link/" + l.fabric.LinkName(model.Port{Node: l.fabric.Node(0).Ports[0].Peer.Node, Port: l.mirrors(t, sent{to: 15, port: 1})[0].Out})
	if list, err := w.QueryCounter(link, 20e6, 40e6); err != nil || len(list) != 2 || list[0].Bytes != model.Bytes(1500*list[0].Count) || list[0].Flows < 0.9 || list[0].Flows > 1.1 {
		t.Errorf("%s from 20 to 40 ms: %+v, %v", link, list, err)
	}
	if s := w.Stats(); s.Mirrors != 700*5+100*2 || s.Closed != 800 || s.Kept[Abnormal] != 100 || s.Forced != 0 {
		t.Errorf("%+v", s)
	}
}

func TestRemembersSoManyPeriods(t *testing.T) {
	l := newLab(t)
	cfg := l.config()
	cfg.Periods, cfg.Analyzers = 3, 2
	w := l.watch(t, cfg, nil, Output{})
	// The second analyzer learns the time only at the end.
	s := sent{from: 0, to: 15, port: 1}
	list := int(mirror.Shard(&model.FlowKey{Src: l.fabric.Node(0).IPv4, Dst: l.fabric.Node(15).IPv4, SrcPort: 1, DstPort: 80, Proto: model.TCP}, 2))
	for i := range 8 {
		s.id, s.at = uint16(i), model.Time(i)*10e6
		l.send(t, w, s)
	}
	if got, _ := w.QueryCounter("traces", 0, forever); len(got) == 0 || w.Stats().Forced == 0 {
		t.Errorf("%+v, %d forced; want periods to close without the other analyzer", got, w.Stats().Forced)
	}
	finish(w)
	got, err := w.QueryCounter("traces", 0, forever)
	if err != nil || len(got) != 3 || got[2].Count+got[1].Count+got[0].Count < 2 {
		t.Errorf("after %d of list %d: %+v, %v; want the last three periods", 8, list, got, err)
	}
}

func TestGetTrace(t *testing.T) {
	l := newLab(t)
	var streamed int
	w := l.watch(t, l.config(), nil, Output{Trace: func(*trace.Trace) { streamed++ }})
	for i := range 10 {
		l.send(t, w, sent{from: 0, to: 15, port: 1, id: uint16(i), hops: 1 + i%5, at: model.Time(i) * 1e6})
	}
	l.send(t, w, sent{from: 1, to: 14, port: 2, id: 77, why: mirror.Debug, at: 20e6})
	finish(w)
	got, err := w.QueryTraces("trace.drop && trace.hops >= 3", 0, forever, "ip.id", "trace.last", "trace.hops")
	if err != nil {
		t.Fatal(err)
	}
	last := l.fabric.Node(l.mirrors(t, sent{from: 0, to: 15, port: 1})[2].Switch).Name
	if len(got.Rows) != 4 || strings.Join(got.Rows[0], " ") != "2 "+last+" 3" || len(got.Traces) != 4 || got.Evicted != 0 {
		t.Errorf("%+v", got)
	}
	if got, _ := w.QueryTraces("", 5e6, 8e6); len(got.Traces) != 3 {
		t.Errorf("%d traces from 5 to 8 ms; want 3", len(got.Traces))
	}
	if got, _ := w.QueryTraces("ip.src == h1 && trace.debug", 0, forever); len(got.Traces) != 1 || got.Traces[0].End != trace.Arrived {
		t.Errorf("marked: %+v", got)
	}
	if streamed != 9 { // eight ended short, one is marked; two arrived
		t.Errorf("%d traces were handed out; want 9", streamed)
	}
	for _, bad := range []func() error{
		func() error { _, err := w.QueryTraces("trace.dorp", 0, forever); return err },
		func() error { _, err := w.QueryTraces("", 0, forever, "ip.id", "nonsense"); return err },
	} {
		var e *filter.Error
		if err := bad(); !errors.As(err, &e) {
			t.Errorf("%v; want a *filter.Error", err)
		}
	}
}

func TestCustomCounters(t *testing.T) {
	l := newLab(t)
	cfg := l.config()
	cfg.MaxNamed, cfg.Analyzers = 2, 2
	w := l.watch(t, cfg, nil, Output{})
	send := func(ms int) {
		for i := range 20 {
			l.send(t, w, sent{from: model.NodeID(i % 4), to: 15, port: uint16(1 + i%2), id: uint16(ms + i), at: model.Time(ms) * 1e6})
		}
		w.Advance(model.Time(ms+5) * 1e6)
	}
	send(1)
	for name, text := range map[string]string{"leaf0_TCP": "tcp && hop.switch == leaf0", "from h1": "ip.src == h1"} {
		if err := w.AddCounter(name, text); err != nil {
			t.Fatal(err)
		}
	}
	send(11)
	if err := w.AddCounter("third", "tcp"); !errors.Is(err, ErrFull) {
		t.Errorf("a third counter: %v; want ErrFull", err)
	}
	if err := w.AddCounter("from h1", "ip.src in {h1, h2}"); err != nil { // in place of the one before
		t.Fatal(err)
	}
	send(21)
	if err := w.RemoveCounter("from h1"); err != nil {
		t.Fatal(err)
	}
	send(31)
	finish(w)
	list, err := w.QueryCounter("from h1", 0, forever)
	if err != nil || len(list) != 4 || list[0].Count != 0 || list[1].Count != 5 || list[2].Count != 10 || list[3].Count != 0 {
		t.Errorf("from h1: %+v, %v; want 0, 5, 10, 0", list, err)
	}
	if n := count(t, w, "leaf0_TCP"); n == 0 || n >= 60 {
		t.Errorf("leaf0_TCP counts %d; want some of 60", n)
	}
	if !slices.Contains(w.Counters(), "leaf0_TCP") {
		t.Errorf("%v lacks leaf0_TCP", w.Counters())
	}
	for _, bad := range []error{
		w.AddCounter("", "tcp"), w.AddCounter("traces", "tcp"), w.AddCounter("link/x", "tcp"), w.AddCounter("x", "tcp &&"),
		w.RemoveCounter("nobody"), second(w.QueryCounter("nobody", 0, forever)), second(w.QueryCounter("link/nobody", 0, forever)), second(w.QueryCounter("mux/nobody", 0, forever)),
	} {
		if bad == nil {
			t.Error("a mistake is not answered")
		}
	}
}

func second[T any](_ T, err error) error { return err }

// marker remembers what hosts are sent.
type marker struct {
	on   map[string]bool
	fail string
}

func (m *marker) Mark(host model.NodeID, f *filter.Filter[headers.Frame]) error {
	if m.fail != "" && fmt.Sprint(host) == m.fail {
		return errors.New("host is down")
	}
	m.on[fmt.Sprint(host, " ", f)] = true
	return nil
}

func (m *marker) Unmark(host model.NodeID, f *filter.Filter[headers.Frame]) error {
	delete(m.on, fmt.Sprint(host, " ", f))
	return nil
}

func TestDebugMarks(t *testing.T) {
	l := newLab(t)
	m := &marker{on: map[string]bool{}}
	cfg := l.config()
	cfg.MaxNamed = 2
	w := l.watch(t, cfg, m, Output{})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.EnableDebug([]string{"h0", "h1"}, "tcp.dstport==80"))
	must(w.EnableDebug([]string{"h1", "h2"}, "(tcp.dstport == 80)")) // the same filter
	if len(m.on) != 3 || !m.on["1 tcp.dstport == 80"] {
		t.Errorf("%v; want the filter at three hosts", m.on)
	}
	if err := w.EnableDebug(nil, "udp"); !errors.Is(err, ErrFull) {
		t.Errorf("a third mark: %v; want ErrFull", err)
	}
	must(w.DisableDebug([]string{"h1", "h3"}, "tcp.dstport == 80"))
	if want := []Mark{{[]string{"h0"}, "tcp.dstport == 80"}, {[]string{"h2"}, "tcp.dstport == 80"}}; gocmp.Diff(want, w.Marks()) != "" || len(m.on) != 2 {
		t.Errorf("%v, %v; want %v", w.Marks(), m.on, want)
	}
	must(w.DisableDebug(nil, "tcp.dstport == 80"))
	if len(m.on)+len(w.Marks()) != 0 {
		t.Errorf("%v, %v; want none", w.Marks(), m.on)
	}
	m.fail = "1"
	if err := w.EnableDebug(nil, "udp"); err == nil || !strings.Contains(err.Error(), "mark packets of h1: host is down") || len(w.Marks()) != 1 {
		t.Errorf("a host that is down: %v, %v", err, w.Marks())
	}
	for _, err := range []error{w.EnableDebug([]string{"tor0"}, ""), w.EnableDebug([]string{"h99"}, ""), w.EnableDebug(nil, "trace.drop")} {
		if err == nil {
			t.Error("a mistake is not answered")
		}
	}
	if err := l.watch(t, cfg, nil, Output{}).EnableDebug(nil, ""); !errors.Is(err, ErrNoMarker) {
		t.Errorf("without a marker: %v", err)
	}
}

// TestManyAtOnce feeds, asks and changes at the same time; the race detector
// judges.
func TestManyAtOnce(t *testing.T) {
	l := newLab(t)
	cfg := l.config()
	cfg.Analyzers = 3
	w := l.watch(t, cfg, &marker{on: map[string]bool{}}, Output{Trace: func(*trace.Trace) {}, Period: func(*Period) {}})
	var wg sync.WaitGroup
	for k := range 3 {
		wg.Go(func() {
			for i := range 200 {
				l.send(t, w, sent{from: model.NodeID(k), to: 15, port: 1, id: uint16(i), hops: 3, at: model.Time(i) * 1e5})
			}
		})
	}
	wg.Go(func() {
		for i := range 50 {
			_ = w.AddCounter("x", "tcp")
			_, _ = w.QueryTraces("trace.drop", 0, forever, "hop.switch")
			_, _ = w.QueryCounter("x", 0, forever)
			_ = w.Counters()
			_ = w.RemoveCounter("x")
			_ = w.EnableDebug([]string{"h0"}, "tcp")
			_ = w.DisableDebug(nil, "tcp")
			_, _, _ = w.Findings(), w.Stats(), w.Marks()
			w.Advance(model.Time(i) * 4e5)
		}
	})
	wg.Wait()
	finish(w)
	if n := count(t, w, "traces"); n < 600 {
		t.Errorf("%d traces; want 600 or, where clocks ran apart, more", n)
	}
}

func TestChecks(t *testing.T) {
	l := newLab(t)
	for want, change := range map[string]func(*Config){
		"no intended routes":       func(c *Config) { c.Intent = nil },
		"0 analyzers":              func(c *Config) { c.Analyzers = 0 },
		"flush period 0s":          func(c *Config) { c.Period = 0 },
		"0 periods":                func(c *Config) { c.Periods = 0 },
		"window of -1":             func(c *Config) { c.Window = -1 },
		"-1B of traces":            func(c *Config) { c.Memory = -1 },
		"-1 user-defined counters": func(c *Config) { c.MaxNamed = -1 },
		"close after 0s":           func(c *Config) { c.Trace.CloseAfter = 0 },
		"alpha 2":                  func(c *Config) { c.Judge.Alpha = 2 },
	} {
		cfg := l.config()
		change(&cfg)
		if _, err := New(cfg, nil, Output{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	w := l.watch(t, l.config(), nil, Output{})
	if err := w.Partition(0).IngestReport(0, []byte("nonsense")); err == nil || w.Stats().Unreadable != 1 {
		t.Errorf("%v, %+v; want it counted", err, w.Stats())
	}
}

// TestStoreEvicts compares with a plain list: when it is too large, the oldest
// of the class that takes most room goes.
func TestStoreEvicts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type item struct {
			t *trace.Trace
			c Class
		}
		limit := rapid.IntRange(0, 5000).Draw(t, "limit")
		s := newStore(model.Bytes(limit))
		var list []item
		for i := range rapid.IntRange(0, 40).Draw(t, "traces") {
			c := Class(rapid.IntRange(0, 3).Draw(t, "class"))
			tr := &trace.Trace{Last: model.Time(i), Frame: make([]byte, rapid.IntRange(0, 300).Draw(t, "bytes"))}
			switch c {
			case Abnormal:
				tr.End = trace.Lost
			case Marked:
				tr.Why = mirror.Debug
			case Protocol:
				tr.Why = mirror.Protocol
			}
			s.add(tr)
			list = append(list, item{tr, c})
			for {
				used, all := [classes]int{}, 0
				for _, x := range list {
					used[x.c] += sizeOf(x.t)
					all += sizeOf(x.t)
				}
				if all <= limit {
					break
				}
				most := Abnormal
				for c := range classes {
					if used[c] > used[most] {
						most = c
					}
				}
				i := slices.IndexFunc(list, func(x item) bool { return x.c == most })
				list = slices.Delete(list, i, i+1)
			}
		}
		got := s.between(0, forever)
		if !slices.EqualFunc(got, list, func(a *trace.Trace, b item) bool { return a == b.t }) {
			t.Fatalf("%d traces are kept; want the %d of the list", len(got), len(list))
		}
		if part := s.between(5, 15); len(part) > 10 || len(part) > len(got) {
			t.Fatalf("%d traces from 5 to 15", len(part))
		}
	})
}

// TestFinishJudgesNothingInFlight: a run that ends while packets are in flight
// does not make them lost.
func TestFinishJudgesNothingInFlight(t *testing.T) {
	l := newLab(t)
	cfg := l.config()
	cfg.KeepAll = true
	w := l.watch(t, cfg, nil, Output{})
	for i := range 20 {
		l.send(t, w, sent{from: 0, to: 15, port: 1, id: uint16(i), hops: 2, at: model.Time(i)})
	}
	l.send(t, w, sent{from: 0, to: 15, port: 1, id: 99, at: 20})
	w.Finish()
	if n := count(t, w, "unsettled"); n != 20 || count(t, w, "arrived") != 1 || len(w.Findings()) != 0 {
		t.Errorf("%d unsettled, %d arrived, findings %+v; want 20, 1 and none", n, count(t, w, "arrived"), w.Findings())
	}
	if got, _ := w.QueryTraces("", 0, forever); len(got.Traces) != 21 || w.Stats().Kept[Ordinary] != 21 {
		t.Errorf("%d traces, %+v; want all 21 kept", len(got.Traces), w.Stats())
	}
}

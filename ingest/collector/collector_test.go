package collector

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/inswitch/reporter"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// TestShutdownWithAClientThatDoesNotRead: a client that requests notices and does
// not read them does not block the shutdown of a collector.
func TestShutdownWithAClientThatDoesNotRead(t *testing.T) {
	c, stop := start(t, small(""))
	conn, err := net.Dial("tcp", c.StatusAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /notices HTTP/1.1\r\nHost: x\r\n\r\n")
	for !c.notices.any.Load() {
		time.Sleep(time.Millisecond)
	}
	key := make([]byte, 64<<10)
	for range 500 { // 64 MB as text: more than sockets hold
		c.notices.publish(translate.ImmediateNotice{Primitive: dta.KeyWrite, Key: key})
	}
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Run = %v; want nil", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a collector with a client that does not read has not ended after a minute")
	}
}

// small is a collector's configuration that opens quickly.
func small(dir string) Config {
	cfg := DefaultConfig()
	cfg.Listen = netip.MustParseAddrPort("127.0.0.1:0")
	cfg.Status = netip.MustParseAddrPort("127.0.0.1:0")
	counts, postcards := count.DefaultConfig(1<<18), postcard.DefaultConfig(1<<18)
	cfg.Memory = MemoryConfig{
		Dir:       dir,
		KeyWrites: []keywrite.Config{keywrite.DefaultConfig(1 << 20)},
		Counts:    &counts,
		Postcards: &postcards,
		Lists: []list.Config{{Layout: list.Weft, Batch: 16, Classes: []list.Class{
			{Lists: 8, Entry: 8, Capacity: 1 << 12},
			{Lists: 1, Entry: translate.MatchSize(5), Capacity: 1 << 10},
		}}},
	}
	return cfg
}

// start runs a collector until the test ends; stop ends it earlier and returns
// the error of Run.
func start(t testing.TB, cfg Config) (c *Collector, stop func() error) {
	t.Helper()
	c, err := New(context.Background(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Run = %v; want nil", err)
		}
	})
	return c, stop
}

// testReporter is a reporter with a socket.
type testReporter struct {
	t    testing.TB
	rep  *reporter.Reporter
	conn *udp.Conn
	to   netip.AddrPort
}

func newReporter(t testing.TB, id model.NodeID, to netip.AddrPort) *testReporter {
	t.Helper()
	cfg := udp.DefaultConfig(netip.MustParseAddrPort("127.0.0.1:0"))
	cfg.Timeout = time.Millisecond
	conn, err := udp.Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	rep, err := reporter.New(reporter.DefaultConfig(id, dta.Seq(id)*1e6))
	if err != nil {
		t.Fatal(err)
	}
	return &testReporter{t, rep, conn, to}
}

func (s *testReporter) add(r dta.Report) {
	s.t.Helper()
	if err := s.rep.AddReport(model.TimeOf(time.Now()), &r); err != nil {
		s.t.Fatal(err)
	}
	s.send()
}

// send sends ready datagrams to the socket and handles answers.
func (s *testReporter) send() {
	for s.rep.ReadyDatagrams() > 0 {
		if _, err := s.conn.Send(s.to, s.rep.Datagram(0)); err == nil {
			s.rep.Release(1)
		}
	}
}

func (s *testReporter) flush() {
	s.rep.Flush(model.TimeOf(time.Now()))
	s.send()
}

// answers handles the collector's acks, and retransmits what they request.
func (s *testReporter) answers() {
	s.t.Helper()
	if _, err := s.conn.Receive(func(_ netip.AddrPort, d []byte) {
		if err := s.rep.HandleAcks(model.TimeOf(time.Now()), d); err != nil {
			s.t.Errorf("answer %x: %v", d, err)
		}
	}); err != nil {
		s.t.Fatal(err)
	}
	s.rep.Tick(model.TimeOf(time.Now()))
	s.send()
}

// await polls until a condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute in vain for %s", what)
		}
	}
}

func word(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) }

// reports are some of every primitive.
func reports(n int) (all []dta.Report) {
	for i := range n {
		key := fmt.Appendf(nil, "flow %d", i)
		all = append(
			all,
			dta.Report{Primitive: dta.KeyWrite, Redundancy: 2, Key: key, Data: word(i)},
			dta.Report{Primitive: dta.KeyIncrement, Retransmit: true, Redundancy: 4, Key: key, Delta: uint64(i)},
			dta.Report{Primitive: dta.Append, Retransmit: true, List: dta.ListID(i % 8), Data: append(word(i), word(i)...)},
		)
		for hop := range uint8(5) {
			all = append(all, dta.Report{Primitive: dta.Postcarding, Redundancy: 2, Hop: hop, Path: 5, Key: key, Data: word(i + int(hop))})
		}
	}
	return all
}

// directMemory is the reference: it writes the same reports into memory directly.
func directMemory(t testing.TB, m MemoryConfig, all []dta.Report) *translate.Memory {
	t.Helper()
	m.Dir = ""
	mem, err := m.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(mem) })
	for _, r := range all {
		switch r.Primitive {
		case dta.KeyWrite:
			err = mem.KeyWrites[0].Writer(0).Write(r.Key, r.Data, int(r.Redundancy))
		case dta.KeyIncrement:
			err = mem.Counts.Writer(0).Add(r.Key, r.Delta, int(r.Redundancy))
		case dta.Append:
			err = mem.Lists[0].Writer(0).Append(uint32(r.List), r.Data)
		case dta.Postcarding:
			if r.Hop == 4 {
				i := binary.BigEndian.Uint32(r.Data) - 4
				err = mem.Postcards.Writer(0).Write(r.Key, []uint32{i, i + 1, i + 2, i + 3, i + 4}, int(r.Redundancy))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return mem
}

// same compares the data of all regions.
func same(t testing.TB, got, want *translate.Memory) {
	t.Helper()
	a, b := got.Regions(), want.Regions()
	for i := range a {
		x, y := make([]byte, a[i].Size()), make([]byte, b[i].Size())
		if a[i].Read(0, x) != nil || b[i].Read(0, y) != nil {
			t.Fatal("region cannot be read")
		}
		if !bytes.Equal(x, y) {
			t.Errorf("%s differs from what a direct writer leaves", a[i].Header().Kind)
		}
	}
}

func TestReportsReachMemory(t *testing.T) {
	for _, tc := range []struct {
		workers int
		runs    bool // packed reports of one format
	}{{1, false}, {1, true}, {3, false}} {
		t.Run(fmt.Sprintf("%+v", tc), func(t *testing.T) {
			cfg := small("")
			cfg.Workers = tc.workers
			// With several workers the order in which paths are written is undefined:
			// in this much memory no two of the test's share a chunk.
			postcards := postcard.DefaultConfig(1 << 24)
			cfg.Memory.Postcards = &postcards
			// The halves of a path arrive on two sockets, on a busy machine long
			// after each other.
			cfg.Translate.PathWait = time.Hour
			c, _ := start(t, cfg)
			all := reports(200)
			if tc.runs {
				slices.SortStableFunc(all, func(a, b dta.Report) int { return int(a.Primitive) - int(b.Primitive) })
			}
			// All reports of a key go to one translator; the order of a list's
			// entries, and of keys that share a slot, is one reporter's.
			sources := []*testReporter{newReporter(t, 1, c.Addr()), newReporter(t, 2, c.Addr()), newReporter(t, 3, c.Addr())}
			for i, r := range all {
				switch r.Primitive {
				case dta.KeyWrite, dta.Append:
					sources[2].add(r)
				default:
					sources[i%2].add(r)
				}
			}
			for _, s := range sources {
				s.flush()
			}
			await(t, "all reports", func() bool {
				st := c.Status()
				return st.Stored() == uint64(len(all)) && st.Memory[len(st.Memory)-1].Entries == 200
			})
			same(t, c.Memory(), directMemory(t, cfg.Memory, all))
			sent := model.TimeOf(time.Now())
			await(t, "idle sockets are read through", func() bool { return c.ReadThrough() > sent })
			for _, l := range c.Status().Losses() {
				if l.Count != 0 {
					t.Errorf("lost %+v", l)
				}
			}
		})
	}
}

func TestLostDatagramsAreRetransmitted(t *testing.T) {
	c, _ := start(t, small(""))
	s := newReporter(t, 7, c.Addr())
	const n = 500
	for i := range n {
		s.rep.AddReport(model.TimeOf(time.Now()), &dta.Report{Primitive: dta.Append, Retransmit: true, List: 1, Data: append(word(i), word(i)...)})
		s.rep.Flush(model.TimeOf(time.Now()))
		if i%3 == 1 {
			s.rep.Release(s.rep.ReadyDatagrams()) // the network loses it
		}
		s.send()
	}
	await(t, "every entry", func() bool {
		s.answers()
		head, _ := c.Memory().Lists[0].Head(1)
		return head == n
	})
	if st := s.rep.Stats(); st.Resent < n/3 {
		t.Errorf("%d reports sent again; want at least %d", st.Resent, n/3)
	}
	in := c.Status().Workers[0].Intake
	if in.Missing != in.Late {
		t.Errorf("missing %d, late %d; want the same", in.Missing, in.Late)
	}
}

func TestRateLimitIsReportedToTheReporter(t *testing.T) {
	cfg := small("")
	cfg.Rate, cfg.Burst = 10000, 20
	c, _ := start(t, cfg)
	s := newReporter(t, 7, c.Addr())
	const n = 400
	for i := range n {
		s.add(dta.Report{Primitive: dta.Append, Retransmit: true, List: 1, Data: append(word(i), word(i)...)})
	}
	s.flush()
	await(t, "the reporter's patience", func() bool {
		s.answers()
		st := s.rep.Stats()
		head, _ := c.Memory().Lists[0].Head(1)
		return st.Refused[dta.RateLimited] > 0 && head+st.Abandoned == n
	})
}

func TestStatusPages(t *testing.T) {
	cfg := small("")
	cfg.Translate.Queries = []translate.Query{{Bits: 16, Above: 100, List: 8}}
	c, _ := start(t, cfg)
	base := "http://" + c.StatusAddr().String()
	notices, err := http.Get(base + "/notices")
	if err != nil {
		t.Fatal(err)
	}
	defer notices.Body.Close()
	s := newReporter(t, 7, c.Addr())
	for _, r := range reports(10) {
		s.add(r)
	}
	s.add(dta.Report{Primitive: dta.Append, List: 99, Data: word(1)}) // no such list
	s.conn.Send(c.Addr(), []byte("nonsense"))
	s.add(dta.Report{Primitive: dta.KeyWrite, Immediate: true, Redundancy: 1, Key: []byte("k"), Data: word(1)})
	for hop := range uint8(2) {
		s.add(dta.Report{Primitive: dta.Postcarding, Immediate: true, Redundancy: 1, Hop: hop, Path: 2, Key: []byte("slow"), Data: word(60)})
	}
	await(t, "all reports", func() bool {
		st := c.Status()
		return st.Workers[0].Intake.UnknownFormat == 1 && st.Stored() == 83
	})
	lines := bufio.NewScanner(notices.Body)
	var got []string
	for len(got) < 6 && lines.Scan() {
		if lines.Text() != "" {
			got = append(got, lines.Text())
		}
	}
	want := "event: key-write\ndata: key 6b\nevent: postcarding\ndata: key 736c6f77\nevent: append\ndata: list 8"
	if strings.Join(got, "\n") != want {
		t.Errorf("notices\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	get := func(path string) string {
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("GET %s: %d, %v", path, resp.StatusCode, err)
		}
		return string(b)
	}
	metrics := get("/metrics")
	for _, want := range []string{
		`weft_collect_lost_total{reason="unknown format",stage="intake",unit="datagrams"} 1`,
		`weft_collect_lost_total{reason="no memory",stage="intake",unit="reports"} 1`,
		`weft_collect_lost_total{reason="queue full",stage="kernel",unit="datagrams"} 0`,
		`weft_collect_reports_total{primitive="postcarding"} 52`,
		`weft_collect_paths_total{reason="complete"} 11`,
		`weft_collect_query_matches_total 1`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("metrics lack %s:\n%s", want, metrics)
		}
	}
	var st Status
	if err := json.Unmarshal([]byte(get("/status")), &st); err != nil || st.Stored() != 83 {
		t.Errorf("status has %d stored, %v; want 83", st.Stored(), err)
	}
	if got := get("/healthz"); got != "ok\n" {
		t.Errorf("healthz = %q", got)
	}
}

func TestShutdownWritesWhatWasGathered(t *testing.T) {
	cfg := small(t.TempDir())
	cfg.Translate.ListWait, cfg.Translate.PathWait = time.Hour, time.Hour
	c, stop := start(t, cfg)
	s := newReporter(t, 7, c.Addr())
	all := reports(20)[:20*8-1] // the last path lacks a hop
	for _, r := range all {
		s.add(r)
	}
	s.flush()
	await(t, "all reports", func() bool { return c.Status().Stored() == uint64(len(all)) })
	if err := stop(); err != nil {
		t.Fatalf("Run = %v; want nil", err)
	}
	mem, err := cfg.Memory.open()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(mem)
	want := directMemory(t, cfg.Memory, all)
	blank := uint32(postcard.Blank)
	if err := want.Postcards.Writer(0).Write([]byte("flow 19"), []uint32{19, 20, 21, 22, blank}, 2); err != nil {
		t.Fatal(err)
	}
	same(t, mem, want)
}

func TestNewErrors(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"collector: 0 workers, want 1 to 31":      func(c *Config) { c.Workers = 0 },
		"collector: 0 reporters, want at least 1": func(c *Config) { c.Reporters = 0 },
		"translate: no memory":                    func(c *Config) { c.Memory = MemoryConfig{} },
		"translate: rate of -1 reports/s in bursts of 65536, want 0.001 to 1e9 in bursts of at least 1": func(c *Config) { c.Rate = -1 },
		"udp: listen on 192.0.2.1:40040: bind: cannot assign requested address":                         func(c *Config) { c.Listen = netip.MustParseAddrPort("192.0.2.1:40040") },
	} {
		cfg := small("")
		change(&cfg)
		if _, err := New(context.Background(), cfg, slog.New(slog.DiscardHandler)); err == nil || err.Error() != want {
			t.Errorf("New = %v; want %s", err, want)
		}
	}
}

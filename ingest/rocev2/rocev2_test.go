package rocev2

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

var quiet = slog.New(slog.DiscardHandler)

func memory(t testing.TB) *translate.Memory {
	t.Helper()
	kw, err1 := keywrite.Open("", keywrite.DefaultConfig(1<<20))
	ki, err2 := count.Open("", count.DefaultConfig(1<<20))
	pc, err3 := postcard.Open("", postcard.DefaultConfig(1<<20))
	ls, err4 := list.Open("", list.Config{Layout: list.Weft, Batch: 16, Classes: []list.Class{
		{Lists: 3, Entry: 8, Capacity: 37}, {Lists: 1, Entry: 1400, Capacity: 33, Sized: true},
	}})
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	m := &translate.Memory{KeyWrites: []*keywrite.Table{kw}, Counts: ki, Postcards: pc, Lists: []*list.Table{ls}}
	t.Cleanup(func() {
		for _, r := range m.Regions() {
			r.Close()
		}
	})
	return m
}

// serve runs a Server until stop, or the test's end.
func serve(t testing.TB, control string, m *translate.Memory, notify func(dta.Primitive, uint32)) (s *Server, stop func()) {
	t.Helper()
	return serveConfig(t, ServerConfig{Control: netip.MustParseAddrPort(control)}, m, notify)
}

// serveConfig is serve with keys and limits. On a busy machine an exchange may
// take long.
func serveConfig(t testing.TB, cfg ServerConfig, m *translate.Memory, notify func(dta.Primitive, uint32)) (s *Server, stop func()) {
	t.Helper()
	cfg.RoCE = netip.MustParseAddrPort("127.0.0.1:0")
	if !cfg.Control.IsValid() {
		cfg.Control = cfg.RoCE
	}
	cfg.ExchangeTime = cmp.Or(cfg.ExchangeTime, time.Minute)
	s, err := NewServer(cfg, m, notify, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return s, run(t, s.Run)
}

func run(t testing.TB, f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("Run = %v; want nil", err)
				}
			case <-time.After(time.Minute):
				t.Error("Run hangs")
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// dial connects with longer timeouts than by default: on a busy machine the other
// side may not run for longer than seven timeouts of 20 ms.
func dial(t testing.TB, s *Server, name string) *Client {
	t.Helper()
	c, err := dialFrom(t, s, name, "127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// dialFrom connects from an address with keys. The client is closed with the
// test.
func dialFrom(t testing.TB, s *Server, name, from string, keys Keys) (*Client, error) {
	t.Helper()
	cfg := ClientConfig{
		Name: name, Collector: s.Control().String(), Local: netip.AddrPortFrom(netip.MustParseAddr(from), 0), Keys: keys,
		Translate: translate.DefaultConfig(), Requester: rdma.DefaultRequesterConfig(), ExchangeTime: time.Minute,
	}
	cfg.Requester.Timeout, cfg.Requester.Retries = 250*time.Millisecond, 1000
	cfg.Translate.PathWait = time.Minute // nor may an incomplete path expire
	c, err := Dial(t.Context(), cfg, quiet)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute in vain for %s", what)
		}
	}
}

func word(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) }

func reports(from, to int) (all []dta.Report) {
	for i := from; i < to; i++ {
		key := fmt.Appendf(nil, "flow %d", i)
		all = append(all,
			dta.Report{Primitive: dta.KeyWrite, Redundancy: 1 + uint8(i)%4, Key: key, Data: word(i)},
			dta.Report{Primitive: dta.KeyIncrement, Redundancy: 2, Key: key, Delta: uint64(i)},
			dta.Report{Primitive: dta.Append, List: dta.ListID(i % 3), Data: append(word(i), word(i)...)},
			dta.Report{Primitive: dta.Append, List: 3, Data: bytes.Repeat([]byte{byte(i)}, 1000+i%401)},
			dta.Report{Primitive: dta.Postcarding, Redundancy: 2, Hop: 0, Path: 2, Key: key, Data: word(i)},
			dta.Report{Primitive: dta.Postcarding, Redundancy: 2, Hop: 1, Path: 2, Key: key, Data: word(i + 1)},
		)
	}
	return all
}

// put puts reports into a target as a Router does.
func put(c translate.Target, all []dta.Report) (refused int) {
	for _, r := range all {
		for c.Admit(&r) == dta.RateLimited {
			refused++
			time.Sleep(time.Millisecond)
		}
		c.Put(model.TimeOf(time.Now()), []dta.Report{r})
	}
	return refused
}

// TestBothWritersWriteTheSame: memory written over RDMA is, byte for byte, the
// memory that the local writer writes.
func TestBothWritersWriteTheSame(t *testing.T) {
	far, near := memory(t), memory(t)
	s, _ := serve(t, "127.0.0.1:0", far, nil)
	c := dial(t, s, "tor1")
	stop := run(t, c.Run)
	out, err := translate.NewLocalWriter(near, 0, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	local, err := translate.New(translate.DefaultConfig(), out.Plan, out)
	if err != nil {
		t.Fatal(err)
	}
	all := reports(0, 400)
	put(c, all)
	put(local, all)
	now := model.TimeOf(time.Now())
	c.Drain(now)
	local.Drain(now)
	await(t, "acknowledgements", func() bool {
		_, cs := c.Stats()
		return cs.Requester.Acked == cs.Requester.Writes+cs.Requester.Adds
	})
	stop()
	a, b := far.Regions(), near.Regions()
	for i := range a {
		x, y := make([]byte, a[i].Size()), make([]byte, b[i].Size())
		if a[i].Read(0, x) != nil || b[i].Read(0, y) != nil || !bytes.Equal(x, y) {
			t.Errorf("%s: RDMA and the local outlet leave different bytes", a[i].Header().Kind)
		}
	}
	if w, want := far.KeyWrites[0].Region().Counts().Writes, near.KeyWrites[0].Region().Counts().Writes; w != want {
		t.Errorf("%d writes counted; want %d", w, want)
	}
	st, cs := c.Stats()
	if cs.Remote.Dropped != 0 || cs.Requester.Lost != 0 || st.Appends != 800 {
		t.Errorf("client %+v; want nothing dropped or lost", cs)
	}
	if rs := s.Stats().Responder; rs.Refused[rdma.BadICRC]+rs.Refused[rdma.OutOfBounds]+rs.Refused[rdma.BadRKey] != 0 {
		t.Errorf("responder %+v; want nothing refused", rs)
	}
}

func TestImmediateReachesTheProgram(t *testing.T) {
	var mu sync.Mutex
	var got []string
	s, _ := serve(t, "127.0.0.1:0", memory(t), func(p dta.Primitive, where uint32) {
		mu.Lock()
		defer mu.Unlock()
		if p == dta.Append {
			got = append(got, fmt.Sprint(p, " ", where))
		} else {
			got = append(got, p.String())
		}
	})
	c := dial(t, s, "tor1")
	run(t, c.Run)
	all := reports(0, 1)
	for i := range all {
		all[i].Immediate = true
	}
	put(c, all)
	want := "key-write key-increment append 0 append 3 postcarding"
	await(t, want, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(got, " ") == want
	})
}

// TestReconnectToRestartedCollector: the collector restarts, with memory at other
// addresses and other keys. The queue pair is set up again, and lists continue.
func TestReconnectToRestartedCollector(t *testing.T) {
	m := memory(t)
	s, stop := serve(t, "127.0.0.1:0", m, nil)
	control := s.Control().String()
	c := dial(t, s, "tor1")
	run(t, c.Run)
	head := func() uint64 { h, _ := m.Lists[0].Head(0); return h }
	put(c, reports(0, 300))
	await(t, "the first entries", func() bool { return head() == 100 })
	stop()
	// While the collector is unreachable, reports are refused, not dropped.
	r := reports(0, 1)[0]
	await(t, "a refusal", func() bool { return c.Admit(&r) == dta.RateLimited })
	s2, _ := serve(t, control, m, nil)
	put(c, reports(300, 600))
	await(t, "the others", func() bool { return head() == 200 })
	if _, cs := c.Stats(); cs.Requester.Connections < 2 || !cs.Connected {
		t.Errorf("client %+v; want up, in a second connection", cs)
	}
	if rs := s2.Stats().Responder; rs.Writes == 0 {
		t.Errorf("responder %+v; want writes", rs)
	}
}

func TestListsHaveOneWriter(t *testing.T) {
	s, _ := serve(t, "127.0.0.1:0", memory(t), nil)
	a, b := dial(t, s, "tor1"), dial(t, s, "tor2")
	run(t, b.Run)
	entry := reports(0, 1)[2]
	if v := a.Admit(&entry); v != dta.Stored {
		t.Errorf("the first translator's entry is %v; want stored", v)
	}
	if v := b.Admit(&entry); v != dta.Unserved {
		t.Errorf("the second translator's entry is %v; want unserved", v)
	}
	// The same name again replaces the first.
	again := dial(t, s, "tor1")
	run(t, again.Run)
	if v := again.Admit(&entry); v != dta.Stored || s.Stats().Peers != 2 {
		t.Errorf("the translator that came again: %v, %d peers; want stored, 2", v, s.Stats().Peers)
	}
	a.Close()
	put(again, reports(0, 30))
	await(t, "entries", func() bool { st := s.Stats().Responder; return st.Adds == 60 })
}

// request sends lines and returns the answer.
func request(t testing.TB, s *Server, lines string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.Control().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	conn.Write([]byte(lines))
	var b bytes.Buffer
	b.ReadFrom(conn)
	return b.String()
}

// lines is what a translator without a key sends.
func lines(name, req string) string {
	hello, _ := json.Marshal(Hello{Version: Version, Name: name, Nonce: make([]byte, nonceSize)})
	return string(hello) + "\n" + req + "\n" + `{"hmac":""}` + "\n"
}

// TestRefusedRequestKeepsOtherConnections: a request without an address does not
// close the connection of the translator with the same name.
func TestRefusedRequestKeepsOtherConnections(t *testing.T) {
	s, _ := serve(t, "127.0.0.1:0", memory(t), nil)
	dial(t, s, "x")
	for req, want := range map[string]string{
		`{}`:                                    "without address",
		`{"addr":"127.0.0.1:5","qpn":16777216}`: "24 bits",
		`{"addr":"127.0.0.9:5"}`:                "packets from 127.0.0.9, want 127.0.0.1",
	} {
		if got := request(t, s, lines("x", req)); !strings.Contains(got, want) {
			t.Errorf("request %s is answered by %q; want %s", req, got, want)
		}
	}
	if n := s.Stats().Peers; n != 1 {
		t.Errorf("%d queue pairs; want that of x", n)
	}
}

func TestConnectionSetupRefuses(t *testing.T) {
	s, _ := serve(t, "127.0.0.1:0", memory(t), nil)
	for in, want := range map[string]string{
		`{"name":"` + strings.Repeat("x", maxRequest) + `"}` + "\n": "",
		`{"name":"x","addr":"127.0.0.1:5","qpn":1}` + "\n":          "version 0 of the exchange, want 2",
		`{"version":2,"name":"x"}` + "\n":                           "without name or nonce",
		lines("", `{"addr":"127.0.0.1:5"}`):                         "without name or nonce",
		"nonsense\n":                                                "",
	} {
		if got := request(t, s, in); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%.80q is answered by %q; want %q", in, got, want)
		}
	}
	if n := s.Stats().Peers; n != 0 {
		t.Errorf("%d queue pairs; want none", n)
	}
	cfg := ClientConfig{Name: "x", Collector: "127.0.0.1:1", Local: netip.MustParseAddrPort("127.0.0.1:0"), Translate: translate.DefaultConfig(), Requester: rdma.DefaultRequesterConfig()}
	if _, err := Dial(t.Context(), cfg, quiet); err == nil || !strings.Contains(err.Error(), "reach collector") {
		t.Errorf("Dial without a listener = %v; want an error", err)
	}
	if _, err := NewServer(ServerConfig{RoCE: netip.MustParseAddrPort("0.0.0.0:0")}, memory(t), nil, quiet); err == nil {
		t.Error("NewServer on every address = nil; want an error")
	}
}

// TestDialRefusesItsConfiguration: a connection that was never made is closed again,
// whatever was missing.
func TestDialRefusesItsConfiguration(t *testing.T) {
	for name, change := range map[string]func(*ClientConfig){
		"no source address": func(c *ClientConfig) { c.Local = netip.MustParseAddrPort("0.0.0.0:0") },
		"no requester":      func(c *ClientConfig) { c.Requester.Window = -1 },
	} {
		cfg := ClientConfig{Name: "t", Collector: "127.0.0.1:1", Local: netip.MustParseAddrPort("127.0.0.1:0"), Requester: rdma.DefaultRequesterConfig(), Translate: translate.DefaultConfig()}
		change(&cfg)
		if c, err := Dial(t.Context(), cfg, quiet); err == nil {
			t.Errorf("%s: Dial succeeds; want an error", name)
			_ = c.Close()
		}
	}
}

package rocev2

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/ingest/keyfile"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/wire/dta"
)

// refusedFor waits until a server has refused want connections for a reason.
func refusedFor(t testing.TB, s *Server, why Refusal, want uint64) {
	t.Helper()
	await(t, fmt.Sprintf("%d refusals for %q", want, why), func() bool { return s.Stats().Setup.Refused[why] >= want })
}

// TestStrangersGetNoRegions: whatever a stranger without a key sends, it learns
// no address, length or key of the memory, and whether a name exists neither.
func TestStrangersGetNoRegions(t *testing.T) {
	keys := keyfile.Generate([]string{"tor1"}, nil)
	s, _ := serveConfig(t, ServerConfig{Keys: keys}, memory(t), nil)
	other := keyfile.Generate([]string{"tor1", "tor2"}, nil)
	one, wrong := uint8(1), uint8(9)
	nonce := make([]byte, nonceSize)
	hello := func(h Hello) string { b, _ := json.Marshal(h); return string(b) + "\n" }
	rest := `{"addr":"127.0.0.1:5"}` + "\n" + `{"hmac":"` + strings.Repeat("00", 32) + `"}` + "\n"
	secret := fmt.Sprint(s.adverts[0].RKey)
	answers := map[string]bool{}
	for why, in := range map[Refusal]string{
		NoKey:       lines("tor1", `{"addr":"127.0.0.1:5"}`),
		UnknownName: hello(Hello{Version, "tor2", &one, nonce}) + rest,
		UnknownKey:  hello(Hello{Version, "tor1", &wrong, nonce}) + rest,
		WrongProof:  hello(Hello{Version, "tor1", &one, nonce}) + rest,
		Malformed:   "GET / HTTP/1.1\r\n\r\n",
	} {
		got := request(t, s, in)
		if strings.Contains(got, "rkey") || strings.Contains(got, secret) || strings.Contains(got, "regions\":[") {
			t.Errorf("%v: a stranger gets %s", why, got)
		}
		if _, reply, ok := strings.Cut(got, "\n"); ok && why != NoKey {
			answers[reply] = true
		}
		refusedFor(t, s, why, 1)
	}
	if len(answers) != 1 {
		t.Errorf("unknown names, keys and proofs are answered by %v; want the same answer", answers)
	}
	for name, with := range map[string]Keys{"tor1": other, "tor2": other, "tor3": nil} {
		if _, err := dialFrom(t, s, name, "127.0.0.1", with); err == nil {
			t.Errorf("%s connects with a key of its own making", name)
		}
	}
	st := s.Stats()
	if st.Peers != 0 || st.Setup.Admitted != 0 || len(st.Setup.Sources) != 1 || st.Setup.Sources[0].Count != 8 {
		t.Errorf("stats %+v; want no queue pair, and 8 refusals of one source", st.Setup)
	}
	if _, err := dialFrom(t, s, "tor1", "127.0.0.1", keys); err != nil {
		t.Errorf("the owner of the key: %v", err)
	}
}

// TestNameCannotBeTakenOver: a connected translator stays connected, and writes,
// whatever another without its key sends under its name.
func TestNameCannotBeTakenOver(t *testing.T) {
	for mode, keys := range map[string]Keys{"keys": keyfile.Generate([]string{"tor1"}, nil), "no keys": nil} {
		t.Run(mode, func(t *testing.T) {
			m := memory(t)
			s, _ := serveConfig(t, ServerConfig{Keys: keys}, m, nil)
			c, err := dialFrom(t, s, "tor1", "127.0.0.1", keys)
			if err != nil {
				t.Fatal(err)
			}
			run(t, c.Run)
			for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
				if _, err := dialFrom(t, s, "tor1", from, nil); err == nil {
					t.Errorf("%s takes the name of a connected translator", from)
				}
			}
			put(c, reports(0, 30))
			await(t, "entries", func() bool { h, _ := m.Lists[0].Head(0); return h == 10 })
			if _, cs := c.Stats(); cs.Requester.Connections != 1 || s.Stats().Peers != 1 {
				t.Errorf("the first translator %+v; want its first connection", cs)
			}
		})
	}
}

// TestOwnerOfTheKeyReplacesItsConnection: a translator that moved to another
// address proves its key and gets its name at once.
func TestOwnerOfTheKeyReplacesItsConnection(t *testing.T) {
	keys := keyfile.Generate([]string{"tor1"}, nil)
	s, _ := serveConfig(t, ServerConfig{Keys: keys}, memory(t), nil)
	if _, err := dialFrom(t, s, "tor1", "127.0.0.1", keys); err != nil {
		t.Fatal(err)
	}
	again, err := dialFrom(t, s, "tor1", "127.0.0.2", keys)
	if err != nil {
		t.Fatal(err)
	}
	run(t, again.Run)
	entry := reports(0, 1)[2]
	if v := again.Admit(&entry); v != dta.Stored || s.Stats().Peers != 1 {
		t.Errorf("the owner: %v with %d peers; want the lists, and one queue pair", v, s.Stats().Peers)
	}
	put(again, reports(0, 3))
	await(t, "writes", func() bool { return s.Stats().Responder.Adds == 6 })
}

// invent connects n times under invented names, with 8 connections at a time.
func invent(t testing.TB, s *Server, n int, line func(i int) string) {
	t.Helper()
	var wg sync.WaitGroup
	const workers = 8
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				conn, err := net.Dial("tcp", s.Control().String())
				if err != nil {
					t.Errorf("stranger %d: %v", i, err)
					return
				}
				conn.SetDeadline(time.Now().Add(time.Minute))
				io.WriteString(conn, line(i))
				io.Copy(io.Discard, conn)
				conn.Close()
			}
		})
	}
	wg.Wait()
}

// TestInventedNamesKeepNobodyOut: ten thousand invented names, with and without
// a key id, leave no state but counters, and the honest translator connects.
func TestInventedNamesKeepNobodyOut(t *testing.T) {
	keys := keyfile.Generate([]string{"tor1"}, nil)
	s, _ := serveConfig(t, ServerConfig{Keys: keys}, memory(t), nil)
	one := uint8(1)
	n := 10_000
	if race.Enabled {
		n = 2000
	}
	invent(t, s, n, func(i int) string {
		name := fmt.Sprintf("invented%d", i)
		if i%2 == 0 {
			return lines(name, `{"addr":"127.0.0.1:5"}`)
		}
		hello, _ := json.Marshal(Hello{Version, name, &one, make([]byte, nonceSize)})
		return string(hello) + "\n" + `{"addr":"127.0.0.1:5"}` + "\n" + `{"hmac":""}` + "\n"
	})
	if _, err := dialFrom(t, s, "tor1", "127.0.0.1", keys); err != nil {
		t.Errorf("after %d invented names: %v", n, err)
	}
	st := s.Stats()
	if st.Setup.Refused[NoKey] != uint64(n/2) || st.Setup.Refused[UnknownName] != uint64(n/2) || st.Peers != 1 {
		t.Errorf("%d peers, refused %v; want 1, and every stranger counted", st.Peers, st.Setup.Refused)
	}
}

// TestInventedNamesWithoutKeysFillOneShare: without keys, 256 invented names of one
// address get no more than its share of the queue pairs.
func TestInventedNamesWithoutKeysFillOneShare(t *testing.T) {
	s, _ := serve(t, "127.0.0.1:0", memory(t), nil)
	admitted := 0
	for i := range 256 {
		conn, err := net.Dial("tcp", s.Control().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() // stays connected until then
		conn.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(conn, lines(fmt.Sprintf("invented%d", i), `{"addr":"127.0.0.1:5"}`))
		in := bufio.NewReader(conn)
		in.ReadString('\n')
		if reply, err := in.ReadString('\n'); err != nil {
			t.Fatal(err)
		} else if strings.Contains(reply, "rkey") {
			admitted++
		}
	}
	if admitted != maxQueuesAddress {
		t.Errorf("%d invented names were admitted; want %d", admitted, maxQueuesAddress)
	}
	if _, err := dialFrom(t, s, "tor1", "127.0.0.2", nil); err != nil {
		t.Errorf("a translator at another address: %v", err)
	}
}

// TestIdleStrangersKeepNobodyOut: connections that send nothing displace each
// other, not translators, even if they come from the same address.
func TestIdleStrangersKeepNobodyOut(t *testing.T) {
	keys := keyfile.Generate([]string{"tor1", "tor2"}, nil)
	s, _ := serveConfig(t, ServerConfig{Keys: keys, ExchangeTime: time.Hour}, memory(t), nil)
	const n = 600
	for i := range n {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i%30))}}
		conn, err := d.Dial("tcp", s.Control().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	refusedFor(t, s, Displaced, n-maxPending)
	for name, from := range map[string]string{"tor1": "127.0.0.1", "tor2": "127.0.0.99"} {
		if _, err := dialFrom(t, s, name, from, keys); err != nil {
			t.Errorf("%s beside idle strangers: %v", name, err)
		}
	}
	st := s.Stats()
	if st.Setup.Pending > maxPending || st.Peers != 2 {
		t.Errorf("%d pending connections, %d peers; want at most %d, and 2", st.Setup.Pending, st.Peers, maxPending)
	}
}

func TestIdleStrangerTimesOut(t *testing.T) {
	s, _ := serveConfig(t, ServerConfig{ExchangeTime: 20 * time.Millisecond}, memory(t), nil)
	if got := request(t, s, `{"version":`); got != "" {
		t.Errorf("half a message is answered by %q", got)
	}
	refusedFor(t, s, TimedOut, 1)
}

// TestPendingIsShared: the address with the most connections gives way, and an
// IPv6 network of 64 bits counts as one.
func TestPendingIsShared(t *testing.T) {
	p := pendingConns{count: map[netip.Prefix]int{}}
	conn := func() net.Conn { return &net.TCPConn{} }
	honest := conn()
	p.add(honest, netip.MustParseAddr("192.0.2.1"))
	for i := range 4 * maxPending {
		a := netip.MustParseAddr("2001:db8::").As16()
		a[7], a[15] = byte(i%20), byte(i)
		p.add(conn(), netip.AddrFrom16(a))
	}
	if p.len() != maxPending || !p.remove(honest) || p.remove(honest) {
		t.Errorf("%d connections; want %d, the honest one among them", p.len(), maxPending)
	}
	for _, n := range p.count {
		if n > maxPendingAddress {
			t.Errorf("%d connections of one network; want at most %d", n, maxPendingAddress)
		}
	}
	for len(p.conns) > 0 {
		p.remove(p.conns[0].conn)
	}
	if len(p.count) != 0 {
		t.Errorf("counts %v are left", p.count)
	}
}

func TestAddressesBeyondTheAllowedAreRefused(t *testing.T) {
	s, _ := serveConfig(t, ServerConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}, memory(t), nil)
	if _, err := dialFrom(t, s, "tor1", "127.0.0.1", nil); err == nil {
		t.Error("an address that is not allowed connects")
	}
	refusedFor(t, s, AddressNotAllowed, 1)
	if _, err := dialFrom(t, s, "tor1", "127.0.0.2", nil); err != nil {
		t.Errorf("an allowed address: %v", err)
	}
}

// TestBeyondLoopbackNeedsKeys: no server listens beyond loopback without keys,
// unless that is permitted.
func TestBeyondLoopbackNeedsKeys(t *testing.T) {
	local, wide := netip.MustParseAddrPort("127.0.0.1:0"), netip.MustParseAddrPort("192.0.2.1:0")
	keys := keyfile.Generate([]string{"tor1"}, nil)
	for _, tc := range []struct {
		cfg ServerConfig
		ok  bool
	}{
		{ServerConfig{RoCE: local, Control: local}, true},
		{ServerConfig{RoCE: local, Control: wide}, false},
		{ServerConfig{RoCE: wide, Control: local}, false},
		{ServerConfig{RoCE: local, Control: netip.MustParseAddrPort("0.0.0.0:0")}, false},
		{ServerConfig{RoCE: wide, Control: wide, Keys: keys}, true},
		{ServerConfig{RoCE: wide, Control: wide, Unauthenticated: true}, true},
	} {
		if err := tc.cfg.Validate(); (err == nil) != tc.ok {
			t.Errorf("Validate(%v, %v, keys %v) = %v; want success %v", tc.cfg.RoCE, tc.cfg.Control, tc.cfg.Keys != nil, err, tc.ok)
		}
	}
}

func TestRefusalsAreCountedBySourceWithinABound(t *testing.T) {
	var logged bytes.Buffer
	l := refusalLog{log: textLog(&logged)}
	now := time.Unix(1, 0)
	for i := range 3 * maxSources {
		l.refuse(now, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), "x", &refusedError{why: WrongProof})
		l.refuse(now, netip.MustParseAddr("10.9.9.9"), "x", &refusedError{why: NoKey})
	}
	reasons, sources := l.counts()
	if reasons[WrongProof] != 3*maxSources || len(sources) != maxSources || sources[0].Count != 3*maxSources {
		t.Errorf("%v, %d sources, first %+v; want all counted, %d sources, the busiest first", reasons, len(sources), sources[0], maxSources)
	}
	if n := strings.Count(logged.String(), "\n"); n != 1 {
		t.Errorf("%d log lines in one second; want 1", n)
	}
	l.refuse(now.Add(logInterval), netip.MustParseAddr("10.9.9.9"), "x", &refusedError{why: NoKey})
	if !strings.Contains(logged.String(), fmt.Sprintf("refused_since_last_line=%d", 6*maxSources-1)) {
		t.Errorf("the log is %s; want the number of refusals between its lines", &logged)
	}
}

func TestReasonsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Refusals() {
		if r.String() == "" || seen[r.String()] {
			t.Errorf("refusal %d is called %q", r, r)
		}
		seen[r.String()] = true
	}
	if err := refuseMessage(errors.New("x")); !strings.Contains(err.Error(), "malformed message: x") {
		t.Errorf("refuseMessage = %v", err)
	}
}

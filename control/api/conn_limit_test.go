package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fakeConn is a connection of a client address that records whether it is open.
type fakeConn struct {
	net.Conn
	from   netip.Addr
	closed bool
}

func (c *fakeConn) Close() error { c.closed = true; return nil }

func (c *fakeConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.from, 999))
}

func newTestTable(limit, reserved, perAddress int) (t *connTable, refused, evicted *int) {
	refused, evicted = new(int), new(int)
	return &connTable{
		max: limit, reserved: reserved, perAddress: perAddress, idle: time.Minute,
		onRefuse: func() { *refused++ }, onEvict: func() { *evicted++ },
	}, refused, evicted
}

func fakeFrom(last int) *fakeConn {
	return &fakeConn{from: netip.AddrFrom4([4]byte{10, 0, byte(last >> 8), byte(last)})}
}

// TestFloodingAddressLosesItsOwn: where anonymous connections are all in use, the
// address with the most loses the one that has waited longest.
func TestFloodingAddressLosesItsOwn(t *testing.T) {
	table, _, evicted := newTestTable(10, 2, 100)
	quiet := fakeFrom(1)
	table.add(quiet)
	var flood []*fakeConn
	for range 50 {
		c := fakeFrom(2)
		flood = append(flood, c)
		table.add(c)
	}
	if quiet.closed || *evicted != 43 || !flood[42].closed || flood[43].closed {
		t.Errorf("quiet client closed %v, %d evicted; want the flooding address to lose its 43 oldest", quiet.closed, *evicted)
	}
	if c := fakeFrom(3); table.add(c) == nil || c.closed {
		t.Error("a third address finds no place; want that of the flooding one")
	}
}

// TestAddressLimit: one address has its limit of connections without a token, and
// those that have shown one do not count.
func TestAddressLimit(t *testing.T) {
	table, _, evicted := newTestTable(100, 2, 3)
	first := fakeFrom(1)
	table.add(first).setClass(operatorConn)
	for range 5 {
		table.add(fakeFrom(1))
	}
	if got := table.open(); got != [connClasses]int{anonymousConn: 3, operatorConn: 1} || *evicted != 2 || first.closed {
		t.Errorf("open %v, %d evicted; want 3 anonymous ones and the operator's", got, *evicted)
	}
}

// TestReserveNeedsAToken: anonymous connections leave the reserve, tenants do not
// keep the operator out, and a request that is being answered keeps its connection.
func TestReserveNeedsAToken(t *testing.T) {
	table, refused, _ := newTestTable(10, 2, 100)
	for range 8 {
		table.add(fakeFrom(1)).setPhase(servingPhase)
	}
	if table.add(fakeFrom(2)) != nil || *refused != 1 {
		t.Errorf("an anonymous connection is in the reserve, %d refused; want 1", *refused)
	}
	table, _, _ = newTestTable(10, 2, 100)
	for range 10 {
		table.add(fakeFrom(1)).setClass(tenantConn)
	}
	c := table.add(fakeFrom(2))
	if c == nil {
		t.Fatal("idle connections of a tenant keep others out")
	}
	c.setClass(operatorConn)
	for range 30 {
		if next := table.add(fakeFrom(1)); next != nil {
			next.setClass(tenantConn)
		}
	}
	if c.place == nil {
		t.Error("the operator's connection was closed for a tenant's")
	}
}

// TestConnTableCounts compares the counters of a table with its connections after
// any operations, and with its limits.
func TestConnTableCounts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		table, _, _ := newTestTable(rapid.IntRange(2, 12).Draw(rt, "max"), 1, rapid.IntRange(1, 6).Draw(rt, "per address"))
		var all []*trackedConn
		for range rapid.IntRange(1, 80).Draw(rt, "operations") {
			op := rapid.IntRange(0, 5).Draw(rt, "operation")
			if op <= 1 || len(all) == 0 {
				if c := table.add(fakeFrom(rapid.IntRange(0, 4).Draw(rt, "address"))); c != nil {
					all = append(all, c)
				}
				continue
			}
			c := rapid.SampledFrom(all).Draw(rt, "connection")
			switch op {
			case 2:
				c.setClass(connClass(rapid.IntRange(0, 2).Draw(rt, "class")))
			case 3:
				c.setPhase(connPhase(rapid.IntRange(0, 2).Draw(rt, "phase")))
			case 4:
				_ = c.Close()
			case 5:
				table.evict()
			}
		}
		var want [connClasses]int
		byAddress := map[netip.Prefix]int{}
		for _, c := range all {
			if c.place == nil {
				if !c.Conn.(*fakeConn).closed {
					rt.Fatal("a connection was removed and not closed")
				}
				continue
			}
			want[c.class]++
			if c.class == anonymousConn {
				byAddress[c.address]++
			}
		}
		if table.open() != want || fmt.Sprint(table.anonymous) != fmt.Sprint(byAddress) || table.conns.Len() > table.max {
			rt.Fatalf("table counts %v, %v; want %v, %v, at most %d", table.count, table.anonymous, want, byAddress, table.max)
		}
	})
}

// TestConnectionsAreBounded: for a connection beyond the limit the one that has
// waited longest is closed, and the others are still served.
func TestConnectionsAreBounded(t *testing.T) {
	s, _ := newServer(t, func(c *Config, _ *Deps) { c.MaxConnections, c.ReservedConnections = 3, 0 })
	addr := serve(t, s)
	ask := func(c net.Conn) error {
		fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	var held []net.Conn
	for range 5 {
		c := dial(t, addr, "")
		if err := ask(c); err != nil {
			t.Fatalf("connection %d: %v", len(held), err)
		}
		waitFor(t, "the connection waits", func() bool { return s.conns.waiting() == min(len(held)+1, 3) })
		held = append(held, c)
	}
	for i, c := range held {
		if err := ask(c); (err == nil) != (i >= 2) {
			t.Errorf("connection %d of 5: %v; want the 2 oldest closed", i, err)
		}
	}
	if got := metric(t, s, `weft_api_refused_total{reason="evicted"}`); got != "2" {
		t.Errorf("%s evictions counted, want 2", got)
	}
}

// TestUnreadAnswersHoldNoPlace: a client that does not read its answers, so that the
// server waits in vain to send them, keeps nobody out.
func TestUnreadAnswersHoldNoPlace(t *testing.T) {
	s, _ := newServer(t, withTokens)
	for path, token := range map[string]string{"/healthz": "", Prefix + "/slow-flows": tenantToken, Prefix + "/clock": operatorToken} {
		conn := s.conns.add(fakeFrom(1))
		r := httptest.NewRequest("GET", "http://localhost"+path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), connKey{}, conn)))
		if w.Code != http.StatusOK || conn.phase != waitingPhase {
			t.Errorf("%s = %d, phase %d after its handler; want 200, and that it can be closed", path, w.Code, conn.phase)
		}
	}
}

// waiting returns the number of connections that wait.
func (t *connTable) waiting() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := t.conns.Front(); e != nil; e = e.Next() {
		if e.Value.(*trackedConn).phase == waitingPhase {
			n++
		}
	}
	return n
}

// dial connects from a loopback address, or from any.
func dial(t *testing.T, addr, from string) net.Conn {
	t.Helper()
	d := net.Dialer{Timeout: time.Minute}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// waitFor polls until a condition holds.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// TestAnonymousIdleTimeout: a connection without a token waits less for its next
// request.
func TestAnonymousIdleTimeout(t *testing.T) {
	table, _, _ := newTestTable(10, 2, 100)
	deadline := &deadlineConn{fakeConn: *fakeFrom(1)}
	c := table.add(deadline)
	late := time.Now().Add(time.Hour)
	for class, want := range map[connClass]bool{anonymousConn: false, tenantConn: true, operatorConn: true} {
		c.setClass(class)
		_ = c.SetReadDeadline(late)
		if got := deadline.at.Equal(late); got != want {
			t.Errorf("class %d waits until %v; want all of the idle timeout: %v", class, deadline.at, want)
		}
	}
	c.setClass(anonymousConn)
	if _ = c.SetReadDeadline(time.Time{}); !deadline.at.IsZero() {
		t.Error("a request in progress has a deadline to read")
	}
}

type deadlineConn struct {
	fakeConn
	at time.Time
}

func (c *deadlineConn) SetReadDeadline(at time.Time) error { c.at = at; return nil }

// TestClientAddress: limits count IPv4 addresses and IPv6 networks.
func TestClientAddress(t *testing.T) {
	for in, want := range map[string]string{
		"10.1.2.3": "10.1.2.3/32", "::ffff:10.1.2.3": "10.1.2.3/32", "2001:db8::1:2:3:4": "2001:db8::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := addressPrefix(netip.MustParseAddr(in)).String(); got != want {
			t.Errorf("address of %s = %s; want %s", in, got, want)
		}
	}
	if !strings.Contains(addressPrefix(netip.Addr{}).String(), "invalid") {
		t.Error("no address is an address")
	}
}

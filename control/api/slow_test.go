package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// narrowListener has small write buffers and reports closed connections.
type narrowListener struct {
	net.Listener
	closed chan struct{}
}

func (l narrowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &narrowConn{Conn: c, closed: l.closed}, c.(*net.TCPConn).SetWriteBuffer(4 << 10)
}

type narrowConn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *narrowConn) Close() error {
	defer c.once.Do(func() { c.closed <- struct{}{} })
	return c.Conn.Close()
}

// TestSlowReader: a client that does not read a large response is disconnected, and
// its slot becomes free.
func TestSlowReader(t *testing.T) {
	s, k := newServer(t, func(c *Config, _ *Deps) {
		// Computing the response must not be what times out.
		c.MaxRequests, c.RequestTimeout, c.WriteTimeout = 2, 3*time.Second, 100*time.Millisecond
	})
	k.batch.Incidents[0].Summary = strings.Repeat("x", 4<<20)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{}, 9)
	addr := serveOn(t, s, narrowListener{ln, closed})
	var clients []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET %s/incidents HTTP/1.1\r\nHost: localhost\r\n\r\n", Prefix)
		clients = append(clients, c)
	}
	for range clients {
		select {
		case <-closed:
		case <-time.After(time.Minute):
			t.Fatal("clients that read nothing are still connected after a minute")
		}
	}
	for end := time.Now().Add(time.Minute); s.requests.inUse() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d slots are still in use after a minute", s.requests.inUse())
		}
	}
	for _, c := range clients {
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Errorf("an answer of %d bytes is whole; want it cut off", n)
		}
	}
	resp, err := http.Get("http://" + addr + Prefix + "/clock")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("another client gets %v, %v", resp, err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}

// TestDrips: a request that arrives byte by byte has the same timeout as others.
func TestDrips(t *testing.T) {
	s, _ := newServer(t, func(c *Config, _ *Deps) { c.ReadTimeout = 150 * time.Millisecond })
	c, err := net.Dial("tcp", serve(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET /api/v1/clock HTTP/1.1\r\nHost: localhost\r\n")
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := fmt.Fprint(c, "X: y\r\n"); err != nil {
			return // disconnected
		}
		if time.Now().After(end) {
			t.Fatal("a header that comes for 20 s is still taken")
		}
	}
}

// TestDeepAndWide: the most deeply nested filters and the widest ranges are answered
// or refused, and cause no more store queries than others.
func TestDeepAndWide(t *testing.T) {
	s, k := newServer(t)
	for _, query := range []string{
		"filter=" + strings.Repeat("(", 1024),
		"filter=" + strings.Repeat("(", 510) + "udp" + strings.Repeat(")", 510),
		"filter=" + strings.Repeat("!", 1020) + "udp",
		"filter=" + strings.Repeat("udp%26%26", 200) + "udp",
		"filter=" + strings.Repeat("(udp||", 140) + "udp" + strings.Repeat(")", 140),
		"from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59Z",
		"last=2562047h47m16.854775807s",
		"from=2026-01-02T15:04:05Z&to=2026-01-02T15:04:05Z",
		"from=1677-01-01T00:00:00Z&to=1677-01-01T00:00:01Z",
		"last=-1s", "last=1e9h", "limit=1000000000", "limit=-1", "after=" + strings.Repeat("A", 513), "after=0.0.",
		"after=zz.zz.zz",
	} {
		for _, path := range []string{"/flows", "/traces", "/incidents", "/ports/heatmap", "/ports/tor0/1", "/diagnoses"} {
			k.mu.Lock()
			k.queries = 0
			k.mu.Unlock()
			w := do(s.Handler(), "GET", Prefix+path+"?"+query, "")
			if w.Code != 200 && (w.Code < 400 || w.Code > 499) {
				t.Errorf("GET %s?%.60s = %d %.200s; want an answer or a 4xx", path, query, w.Code, w.Body)
			}
			if k.queries > 10 {
				t.Errorf("GET %s?%.60s causes %d store queries", path, query, k.queries)
			}
		}
	}
}

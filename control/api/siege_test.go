package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// requestOnce sends one request on a connection of its own.
func requestOnce(addr, path, token string) error {
	r, err := http.NewRequest("GET", "http://"+addr+path, nil)
	if err != nil {
		return err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: tr, Timeout: time.Minute}).Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// TestFloodsDoNotLockOutTheOperator: with more idle, slow and streaming
// connections than the server has, every request of the operator and every health
// check is answered, on either listener.
func TestFloodsDoNotLockOutTheOperator(t *testing.T) {
	idle, limit := 1100, 1024
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur < 8192 {
		idle, limit = 110, 100 // both ends of a connection are in this process
	}
	for name, tokens := range map[string]bool{"token": true, "no token": false} {
		t.Run(name, func(t *testing.T) {
			log := listening(make(chan string, 1))
			s, _ := newServer(t, func(c *Config, d *Deps) {
				c.HealthListen, d.Log = "127.0.0.1:0", slog.New(log)
				c.MaxConnections, c.ReservedConnections, c.AddressConnections = limit, limit/16, limit/4
				if tokens {
					withTokens(c, d)
				}
			})
			addr := serve(t, s)
			health := <-log
			token := s.cfg.Token
			from := func(i int) string { return fmt.Sprintf("127.0.0.%d", 2+i%8) }
			for i := range idle {
				fmt.Fprint(dial(t, addr, from(i)), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
				fmt.Fprint(dial(t, addr, from(i)), "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-")
			}
			for i := range 2 * healthConnections {
				fmt.Fprint(dial(t, health, from(i)), "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-")
			}
			for i := range 2 * s.cfg.MaxClients {
				fmt.Fprintf(dial(t, addr, from(i)), "GET %s/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n",
					Prefix, token)
			}
			for i := range 10 {
				for _, ask := range []struct{ at, path, token string }{
					{addr, Prefix + "/clock", token},
					{addr, "/healthz", ""},
					{addr, "/readyz", ""},
					{addr, "/metrics", token},
					{health, "/healthz", ""},
					{health, "/readyz", ""},
					{health, "/metrics", token},
				} {
					if err := requestOnce(ask.at, ask.path, ask.token); err != nil {
						t.Errorf("request %d of %s at %s: %v; want an answer", i, ask.path, ask.at, err)
					}
				}
			}
			if open := s.conns.open(); open[anonymousConn] > limit-limit/16 || open[anonymousConn]+open[tenantConn]+open[operatorConn] > limit {
				t.Errorf("open connections %v; want at most %d", open, limit)
			}
			if err := requestOnce(health, Prefix+"/clock", token); err == nil {
				t.Error("the health listener has the API")
			}
		})
	}
}

// TestHealthListenerHasItsOwnConnections: with all connections of the API being
// answered, the health listener still has some.
func TestHealthListenerHasItsOwnConnections(t *testing.T) {
	log := listening(make(chan string, 1))
	s, _ := newServer(t, func(c *Config, d *Deps) {
		c.HealthListen, d.Log = "127.0.0.1:0", slog.New(log)
		c.MaxConnections, c.ReservedConnections = 3, 0
	})
	addr := serve(t, s)
	health := <-log
	for i := range 3 {
		s.conns.add(fakeFrom(i)).setPhase(servingPhase)
	}
	if err := requestOnce(addr, "/healthz", ""); err == nil {
		t.Error("the API answers beyond its connections; the test proves nothing")
	}
	if err := requestOnce(health, "/healthz", ""); err != nil {
		t.Errorf("the health listener, with all connections of the API in use: %v", err)
	}
}

// failingListener fails the given number of times before each connection.
type failingListener struct {
	net.Listener
	left atomic.Int32
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// TestAcceptErrorsAreReported: out of files, the server says so in log, metrics and
// health, and answers again afterwards.
func TestAcceptErrorsAreReported(t *testing.T) {
	var log lockedBuffer
	s, _ := newServer(t, func(_ *Config, d *Deps) {
		d.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	failing := &failingListener{Listener: ln}
	failing.left.Store(4)
	addr := serveOn(t, s, failing)
	if err := requestOnce(addr, "/healthz", ""); err != nil {
		t.Fatal(err)
	}
	if got := metric(t, s, "weft_api_accept_errors_total"); got != "4" {
		t.Errorf("%s errors counted, want 4", got)
	}
	if text := log.String(); strings.Count(text, "cannot accept connections") != 1 || !strings.Contains(text, "level=WARN") ||
		!strings.Contains(text, "too many open files") {
		t.Errorf("log %q; want one warning with the reason", text)
	}
	if h := s.health(); h.State != "degraded" || !strings.Contains(strings.Join(h.Alerts, "\n"), "could not accept connections") {
		t.Errorf("health %s, alerts %q; want it degraded, with the reason", h.State, h.Alerts)
	}
	if err := s.accepts.recent(time.Now().Add(2 * time.Minute)); err != nil {
		t.Errorf("the alert is still there after two minutes: %v", err)
	}
}

// TestAcceptEndsWithTheListener: a listener that fails for good ends Serve, and one
// that is closed while Accept waits ends at once.
func TestAcceptEndsWithTheListener(t *testing.T) {
	s, _ := newServer(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	failing := &failingListener{Listener: ln}
	failing.left.Store(1 << 30)
	tracked := newTrackedListener(failing, s.conns, s.accepts)
	ended := make(chan error)
	go func() {
		_, err := tracked.Accept()
		ended <- err
	}()
	waitFor(t, "Accept fails", func() bool { return s.accepts.recent(time.Now()) != nil })
	if err := tracked.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept of a closed listener = %v; want net.ErrClosed", err)
	}
	if passes(net.ErrClosed) || passes(syscall.EINVAL) {
		t.Error("Accept is tried again on a listener that is closed or invalid")
	}
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestOutOfFiles: a process with few file descriptors closes waiting connections
// for new ones, so that the operator is answered, and logs that it has too few.
func TestOutOfFiles(t *testing.T) {
	const child = "WEFT_TEST_OUT_OF_FILES"
	if os.Getenv(child) != "" {
		serveWithFewFiles(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOutOfFiles$")
	cmd.Env = append(os.Environ(), child+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log lockedBuffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var addr string
	if _, err := fmt.Fscanln(out, &addr); err != nil {
		t.Fatalf("the server did not start: %v\n%s", err, &log)
	}
	for range 100 {
		dial(t, addr, "")
	}
	defer in.Close()
	for i := range 10 {
		if err := requestOnce(addr, Prefix+"/clock", operatorToken); err != nil {
			t.Fatalf("request %d: %v; want an answer", i, err)
		}
	}
	in.Close()
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil || !strings.Contains(log.String(), "too many open files") {
		t.Errorf("the server ended with %v; want a warning in its log: %s", err, &log)
	}
}

// serveWithFewFiles serves until standard input ends.
func serveWithFewFiles(t *testing.T) {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 64, Max: 64}); err != nil {
		t.Fatal(err)
	}
	s, _ := newServer(t, withTokens, func(c *Config, d *Deps) {
		c.ReadTimeout = time.Hour // connections do not end by themselves
		d.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	})
	ctx, cancel := context.WithCancel(context.Background())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(ln.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := s.Serve(ctx, ln); err != nil {
		t.Fatal(err)
	}
}

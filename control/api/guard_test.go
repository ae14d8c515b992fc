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
	"testing/fstest"
	"testing/synctest"
	"time"
)

const (
	operatorToken = "operator-token-0123456789"
	tenantToken   = "tenant-token-0123456789"
)

func withTokens(c *Config, _ *Deps) {
	c.Token = operatorToken
	c.Tenants = []Tenant{{
		Name: "blue", Token: tenantToken,
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/32")}, Hosts: []string{"h1"},
	}}
}

// TestTokens: the API answers nothing without a valid token.
func TestTokens(t *testing.T) {
	s, k := newServer(t, withTokens, func(c *Config, _ *Deps) { c.TokenFailures = 1 << 20 }) // no delays
	for _, token := range []string{
		"", "Bearer", "Bearer ", "Bearer wrong", "Basic " + operatorToken, operatorToken,
		"Bearer  " + operatorToken,
	} {
		for _, c := range calls(k) {
			if w := do(s.Handler(), c.method, Prefix+c.path, c.body, "Authorization", token); w.Code != 401 ||
				w.Header().Get("WWW-Authenticate") == "" {
				t.Fatalf("%s %s with %q = %d; want 401", c.method, c.path, token, w.Code)
			}
		}
		if w := do(s.Handler(), "GET", "/metrics", "", "Authorization", token); w.Code != 401 {
			t.Errorf("/metrics with %q = %d; want 401", token, w.Code)
		}
	}
	for _, path := range []string{Prefix + "/topology", "/metrics"} {
		for _, scheme := range []string{"Bearer ", "bearer "} {
			if w := do(s.Handler(), "GET", path, "", "Authorization", scheme+operatorToken); w.Code != 200 {
				t.Errorf("%s with the operator's token = %d %s", path, w.Code, w.Body)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/version", "/openapi.json"} {
		if w := do(s.Handler(), "GET", path, ""); w.Code != 200 {
			t.Errorf("%s without a token = %d", path, w.Code)
		}
	}
}

// TestConfigErrors: errors name the setting and the value.
func TestConfigErrors(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"token has 5 characters":     func(c *Config) { c.Token = "short" },
		"without an operator token":  func(c *Config) { c.Tenants = []Tenant{{Name: "blue", Token: tenantToken, Hosts: []string{"h0"}}} },
		"without prefixes and hosts": func(c *Config) { c.Token, c.Tenants = operatorToken, []Tenant{{Name: "blue", Token: tenantToken}} },
		"is used twice": func(c *Config) {
			c.Token, c.Tenants = operatorToken, []Tenant{{Name: "b", Token: operatorToken, Hosts: []string{"h0"}}}
		},
		"want a loopback address":           func(c *Config) { c.Pprof = "0.0.0.0:6060" },
		"want both or none":                 func(c *Config) { c.TLSCert = "cert.pem" },
		"scan_budget 0, want more than 0":   func(c *Config) { c.ScanBudget = 0 },
		"want 0 to less than":               func(c *Config) { c.ReservedConnections = c.MaxConnections },
		"want ADDRESS:PORT":                 func(c *Config) { c.HealthListen = "8081" },
		"want a token with it":              func(c *Config) { c.HealthListen = "0.0.0.0:8081" },
		"read certificate: open /none/cert": func(c *Config) { c.TLSCert, c.TLSKey = "/none/cert", "/none/key" },
	} {
		k := newFake(t)
		cfg := DefaultConfig()
		change(&cfg)
		if _, err := New(cfg, Deps{Live: k, Records: fakeRecords{k}, Hub: NewEventHub(1, 1)}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("New = %v; want %q", err, want)
		}
	}
}

// TestBrowsers: pages of other sites reach nothing, and the console loads nothing
// from them.
func TestBrowsers(t *testing.T) {
	s, _ := newServer(t, func(c *Config, d *Deps) {
		c.Hosts = []string{"weft.example"}
		d.Console = fstest.MapFS{"index.html": {Data: []byte("<html>page")}, "assets/a-1b2c.js": {Data: []byte("let a")}}
	})
	call := func(method, host, path string, header ...string) int {
		r, _ := http.NewRequest(method, "http://"+host+path, strings.NewReader(`{"pace":1}`))
		r.RequestURI = path
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Error("other origins are allowed")
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") ||
			!strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("policy %q", csp)
		}
		return w.Code
	}
	for host, want := range map[string]int{
		"localhost:8080": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200, "10.1.2.3": 200, "weft.example": 200,
		"WEFT.example:443": 200,
		"evil.example":     421, "localhost.evil.example": 421, "": 421,
	} {
		if got := call("GET", host, "/healthz"); got != want {
			t.Errorf("Host %q = %d; want %d", host, got, want)
		}
	}
	if got := call("PUT", "localhost", Prefix+"/clock", "Origin", "http://evil.example", "Sec-Fetch-Site",
		"cross-site"); got != 403 {
		t.Errorf("a change by another site's page = %d; want 403", got)
	}
	if got := call("PUT", "localhost", Prefix+"/clock", "Origin", "http://localhost", "Sec-Fetch-Site",
		"same-origin"); got != 200 {
		t.Errorf("a change by the console = %d; want 200", got)
	}
	for path, want := range map[string]string{
		"/": "<html>page", "/incidents/inc-0": "<html>page",
		"/assets/a-1b2c.js": "let a",
	} {
		if w := do(s.Handler(), "GET", path, ""); w.Code != 200 || w.Body.String() != want {
			t.Errorf("GET %s = %d %q; want %q", path, w.Code, w.Body, want)
		}
	}
	if w := do(s.Handler(), "GET", "/assets/../../../etc/passwd", ""); w.Code == 200 && w.Body.String() != "<html>page" {
		t.Errorf("escaped the console's files: %s", w.Body)
	}
}

// TestRequestsAreBounded: requests beyond the limit are refused immediately, and
// slow ones time out.
func TestRequestsAreBounded(t *testing.T) { synctest.Test(t, testRequestsAreBounded) }

func testRequestsAreBounded(t *testing.T) {
	s, k := newServer(t, func(c *Config, _ *Deps) { c.MaxRequests, c.RequestTimeout = 1, 200*time.Millisecond })
	k.delay = time.Hour
	done := make(chan int)
	go func() { done <- do(s.Handler(), "GET", Prefix+"/incidents", "").Code }()
	synctest.Wait() // it waits for the store
	if w := do(s.Handler(), "GET", Prefix+"/topology", ""); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("one too many = %d %s; want 503", w.Code, w.Body)
	}
	if got := <-done; got != 503 {
		t.Errorf("a query that never ends = %d; want 503", got)
	}
	k.delay = 0
	if got := metric(t, s, `weft_api_refused_total{reason="requests"}`); got != "1" {
		t.Errorf("%s refusals counted, want 1", got)
	}
}

// metric returns one value of /metrics, as text.
func metric(t *testing.T, s *Server, name string) string {
	t.Helper()
	w := do(s.Handler(), "GET", "/metrics", "", "Authorization", "Bearer "+s.cfg.Token)
	for line := range strings.Lines(w.Body.String()) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Errorf("no metric %s", name)
	return ""
}

// TestScansAreBounded: every request reads a bounded number of records.
func TestScansAreBounded(t *testing.T) {
	s, k := newServer(t, func(c *Config, _ *Deps) { c.ScanBudget = 40 })
	for _, path := range []string{
		"/flows?filter=tcp", "/traces?filter=tcp", "/ports/heatmap?last=700h", "/incidents?cause=loop",
		"/ports/tor0/1?last=1m", "/flows?limit=1000",
	} {
		k.queries, k.longest = 0, 0
		w := do(s.Handler(), "GET", Prefix+path, "")
		most := 40
		if strings.HasPrefix(path, "/ports") {
			most = 160 // steps of a series
		}
		if w.Code != 200 || k.longest > most || k.queries > 8 {
			t.Errorf("GET %s = %d after %d queries of up to %d records", path, w.Code, k.queries, k.longest)
		}
	}
}

// serve runs a server on loopback until the test ends.
func serve(t *testing.T, s *Server) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, s, ln)
}

func serveOn(t *testing.T, s *Server, ln net.Listener) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
	return ln.Addr().String()
}

// TestSlowClients: clients that send too slowly are disconnected.
func TestSlowClients(t *testing.T) {
	s, _ := newServer(t, func(c *Config, _ *Deps) { c.ReadTimeout = 100 * time.Millisecond })
	addr := serve(t, s)
	for name, text := range map[string]string{
		"half a header": "GET /api/v1/topology HTTP/1.1\r\nHost: localhost\r\nX-",
		"half a body":   "POST /api/v1/probes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, text)
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		answer, err := io.ReadAll(c) // ends when the server closes
		if err != nil {
			t.Errorf("%s: the server keeps waiting: %v", name, err)
		}
		if len(answer) > 0 && !strings.HasPrefix(string(answer), "HTTP/1.1 4") {
			t.Errorf("%s: %.100s; want an error or nothing", name, answer)
		}
		c.Close()
	}
}

// TestLargeRequests are refused.
func TestLargeRequests(t *testing.T) {
	s, _ := newServer(t)
	addr := serve(t, s)
	if w := do(s.Handler(), "POST", Prefix+"/counters", `{"name":"`+strings.Repeat("a", 100<<10)+`"}`); w.Code != 413 {
		t.Errorf("a body of 100 KB = %d; want 413", w.Code)
	}
	if w := do(s.Handler(), "GET", Prefix+"/flows?filter="+strings.Repeat("a", 2000), ""); w.Code != 422 {
		t.Errorf("a filter of 2 KB = %d; want 422", w.Code)
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /api/v1/topology HTTP/1.1\r\nHost: localhost\r\nX-Long: %s\r\n\r\n", strings.Repeat("a", 64<<10))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.Contains(line, " 431 ") {
		t.Errorf("a header of 64 KB: %q, %v; want 431", line, err)
	}
}

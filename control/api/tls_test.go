package api

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/internal/testcert"
)

// TestTLS: with a certificate the server speaks only HTTPS, with TLS 1.2 or newer.
func TestTLS(t *testing.T) {
	cert, key, roots := testcert.Write(t, t.TempDir(), 1)
	s, _ := newServer(t, func(c *Config, _ *Deps) { c.TLSCert, c.TLSKey = cert, key })
	addr := serve(t, s)
	for name, tc := range map[string]struct {
		url string
		cfg *tls.Config
		ok  bool
	}{
		"trusted":     {"https://", &tls.Config{RootCAs: roots}, true},
		"not trusted": {"https://", &tls.Config{}, false},
		"old": {"https://", &tls.Config{
			RootCAs: roots, MaxVersion: tls.VersionTLS11,
			MinVersion: tls.VersionTLS10,
		}, false},
		"plain": {"http://", nil, false},
	} {
		tr := &http.Transport{TLSClientConfig: tc.cfg}
		resp, err := (&http.Client{Transport: tr}).Get(tc.url + addr + Prefix + "/clock")
		if err == nil {
			resp.Body.Close()
		}
		if got := err == nil && resp.StatusCode == 200; got != tc.ok {
			t.Errorf("%s: answered %v, %v; want %v", name, got, err, tc.ok)
		}
		tr.CloseIdleConnections()
	}
}

// TestOnlyAEADSuites: of TLS 1.2 every suite but those with ephemeral keys and
// authenticated encryption is refused, and browsers are told to stay with TLS.
func TestOnlyAEADSuites(t *testing.T) {
	cert, key, roots := testcert.Write(t, t.TempDir(), 1)
	s, _ := newServer(t, func(c *Config, _ *Deps) { c.TLSCert, c.TLSKey = cert, key })
	addr := serve(t, s)
	accepted := 0
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		c, err := tls.Dial("tcp", addr, &tls.Config{
			RootCAs: roots, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite.ID},
		})
		if err != nil {
			continue
		}
		accepted++
		c.Close()
		if !strings.HasPrefix(suite.Name, "TLS_ECDHE_") || strings.Contains(suite.Name, "_CBC_") ||
			strings.Contains(suite.Name, "_RC4_") {
			t.Errorf("%s is accepted; want only ECDHE with AES-GCM or ChaCha20", suite.Name)
		}
	}
	if accepted != 3 { // of those with an ECDSA certificate
		t.Errorf("%d suites of TLS 1.2 are accepted; want 3", accepted)
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get("https://" + addr + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("Strict-Transport-Security"); got != "max-age=31536000" || resp.TLS.Version != tls.VersionTLS13 {
		t.Errorf("Strict-Transport-Security %q with TLS %x; want a year with TLS 1.3", got, resp.TLS.Version)
	}
	if got := do(s.Handler(), "GET", "/healthz", "").Header().Get("Strict-Transport-Security"); got != "" {
		t.Errorf("Strict-Transport-Security %q without TLS; want none", got)
	}
}

// TestProfilerNeedsTheOperator: the profiler has a separate listener, and asks for
// the operator's token and its own host name as the API does.
func TestProfilerNeedsTheOperator(t *testing.T) {
	log := listening(make(chan string, 1))
	s, _ := newServer(t, withTokens, func(c *Config, d *Deps) { c.Pprof, d.Log = "127.0.0.1:0", slog.New(log) })
	addr := serve(t, s)
	profiler := <-log
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	for _, tc := range []struct {
		at, host, token string
		want            int
	}{
		{profiler, "", operatorToken, 200},
		{profiler, "", "", 401},
		{profiler, "", "wrong", 401},
		{profiler, "", tenantToken, 403},
		{profiler, "evil.example", operatorToken, 421},
		{addr, "", operatorToken, 404},
	} {
		for _, path := range []string{"cmdline", "heap"} {
			r, err := http.NewRequest("GET", "http://"+tc.at+"/debug/pprof/"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = tc.host
			if tc.token != "" {
				r.Header.Set("Authorization", "Bearer "+tc.token)
			}
			resp, err := (&http.Client{Transport: tr}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != tc.want {
				t.Errorf("%s of %+v = %d; want %d", path, tc, resp.StatusCode, tc.want)
			}
		}
	}
}

// TestProfilerHasNoOtherPaths: other paths of the profiler's listener are not found,
// and nothing that a stranger asks for there is an error of the server.
func TestProfilerHasNoOtherPaths(t *testing.T) {
	s, _ := newServer(t, withTokens)
	for _, path := range []string{"/", "/debug/pprof", "/healthz"} {
		if w := do(s.profilerHandler(), "GET", path, ""); w.Code != http.StatusNotFound {
			t.Errorf("GET %s = %d; want 404", path, w.Code)
		}
	}
	if got := metric(t, s, "weft_api_panics_total"); got != "0" {
		t.Errorf("%s panics; want none", got)
	}
}

// listening is a log handler that collects the listen addresses.
type listening chan string

func (l listening) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "listen" {
			l <- a.Value.String()
		}
		return true
	})
	return nil
}
func (l listening) Enabled(context.Context, slog.Level) bool { return true }
func (l listening) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l listening) WithGroup(string) slog.Handler            { return l }

package api

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
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

// TestPprof: the profiler has a separate listener and no route in the API.
func TestPprof(t *testing.T) {
	log := listening(make(chan string, 1))
	s, _ := newServer(t, func(c *Config, d *Deps) { c.Pprof, d.Log = "127.0.0.1:0", slog.New(log) })
	addr := serve(t, s)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	for host, want := range map[string]int{<-log: 200, addr: 404} {
		resp, err := (&http.Client{Transport: tr}).Get("http://" + host + "/debug/pprof/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("profiler at %s = %d; want %d", host, resp.StatusCode, want)
		}
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

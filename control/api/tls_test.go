package api

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// writeCert makes a certificate of its own for loopback and returns its files.
func writeCert(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, typ string, b []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	roots = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(parsed)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", private), roots
}

// TestTLS: with a certificate only HTTPS is answered, and not by old versions.
func TestTLS(t *testing.T) {
	cert, key, roots := writeCert(t)
	s, _ := newServer(t, func(c *Config, _ *Deps) { c.TLSCert, c.TLSKey = cert, key })
	addr := serve(t, s)
	for name, tc := range map[string]struct {
		url string
		cfg *tls.Config
		ok  bool
	}{
		"trusted":     {"https://", &tls.Config{RootCAs: roots}, true},
		"not trusted": {"https://", &tls.Config{}, false},
		"old":         {"https://", &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, false},
		"plain":       {"http://", nil, false},
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

// TestPprof: the profiler has a listener of its own and is nowhere else.
func TestPprof(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := ln.Addr().String()
	ln.Close()
	s, _ := newServer(t, func(c *Config, _ *Deps) { c.Pprof = at })
	addr := serve(t, s)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	for host, want := range map[string]int{at: 200, addr: 404} {
		var resp *http.Response
		for range 100 { // the listener may not be there yet
			if resp, err = (&http.Client{Transport: tr}).Get("http://" + host + "/debug/pprof/cmdline"); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("profiler at %s = %d; want %d", host, resp.StatusCode, want)
		}
	}
}

package api

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// TestWrongTokensAreDelayed: an address that guesses waits longer and longer before
// a token is checked, others do not wait, and a valid token is never locked out.
func TestWrongTokensAreDelayed(t *testing.T) { synctest.Test(t, testWrongTokensAreDelayed) }

func testWrongTokensAreDelayed(t *testing.T) {
	s, _ := newServer(t, withTokens)
	ask := func(from, token string) (status int, took time.Duration) {
		began := time.Now()
		r := httptest.NewRequest("GET", "http://localhost"+Prefix+"/clock", nil)
		r.RemoteAddr = from + ":1234"
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w.Code, time.Since(began)
	}
	var total time.Duration
	for i := range 30 {
		status, took := ask("10.0.0.1", "wrong")
		if status != http.StatusUnauthorized || (took > 0) != (i >= 10) || took > maxTokenDelay {
			t.Errorf("guess %d = %d after %v; want 401, with a delay from guess 10 on, of at most %v", i, status, took, maxTokenDelay)
		}
		total += took
	}
	if total < 14*maxTokenDelay {
		t.Errorf("30 guesses took %v; want at least %v", total, 14*maxTokenDelay)
	}
	if status, took := ask("10.0.0.2", operatorToken); status != http.StatusOK || took != 0 {
		t.Errorf("another address gets %d after %v; want 200 at once", status, took)
	}
	if status, took := ask("10.0.0.1", ""); status != http.StatusUnauthorized || took != 0 {
		t.Errorf("a request without a token = %d after %v; want 401 at once", status, took)
	}
	if h := s.health(); len(h.TokenFailures) != 1 || h.TokenFailures[0].Address != "10.0.0.1" || h.TokenFailures[0].Count != 30 ||
		!strings.Contains(strings.Join(h.Alerts, "\n"), "30 wrong API tokens from 10.0.0.1") {
		t.Errorf("health has %+v, alerts %q; want 30 failures of 10.0.0.1", h.TokenFailures, h.Alerts)
	}
	for name, want := range map[string]string{
		"weft_api_token_failures_total": "30", `weft_api_token_failures_by_address{address="10.0.0.1"}`: "30",
	} {
		if got := metric(t, s, name); got != want {
			t.Errorf("%s = %s; want %s", name, got, want)
		}
	}
	if status, _ := ask("10.0.0.1", tenantToken); status != http.StatusForbidden || s.failures.delay(addressPrefix(netip.MustParseAddr("10.0.0.1"))) == 0 {
		t.Error("a tenant's token ends the delay of its address; want only the operator's to")
	}
	if status, took := ask("10.0.0.1", operatorToken); status != http.StatusOK || took > maxTokenDelay {
		t.Errorf("the operator behind the guessing address gets %d after %v; want 200 within %v", status, took, maxTokenDelay)
	}
	if _, took := ask("10.0.0.1", "wrong"); took != 0 {
		t.Errorf("a wrong token after a valid one takes %v; want no delay", took)
	}
}

// TestConnectionKeepsItsDelay: a connection with a valid token is not delayed by
// others that guess behind its address, and loses that by guessing itself.
func TestConnectionKeepsItsDelay(t *testing.T) { synctest.Test(t, testConnectionKeepsItsDelay) }

func testConnectionKeepsItsDelay(t *testing.T) {
	s, _ := newServer(t, withTokens)
	conn := s.conns.add(fakeFrom(1))
	ask := func(token string) time.Duration {
		began := time.Now()
		r := httptest.NewRequest("GET", "http://localhost"+Prefix+"/clock", nil)
		r.RemoteAddr = "10.0.0.1:1234"
		r.Header.Set("Authorization", "Bearer "+token)
		s.identifyGuarded(r, conn)
		return time.Since(began)
	}
	ask(tenantToken)
	for range 30 {
		s.failures.add(conn.address)
	}
	if took := ask(tenantToken); took != 0 || conn.classOf() != tenantConn {
		t.Errorf("a connection of a tenant waits %v; want none", took)
	}
	ask("wrong")
	if took := ask("wrong"); took != maxTokenDelay || conn.classOf() != anonymousConn {
		t.Errorf("a tenant's connection that guesses waits %v; want %v", took, maxTokenDelay)
	}
}

// TestTokenFailuresAreBounded: the table has the same size after any number of
// addresses, and forgets those that stopped.
func TestTokenFailuresAreBounded(t *testing.T) {
	f := newTokenFailures(1)
	now := time.Unix(1e9, 0)
	f.now = func() time.Time { return now }
	for i := range 100_000 {
		f.add(addressPrefix(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})))
	}
	if n := len(f.most(1 << 30)); n > failureRows*failureColumns || n < failureRows || unsafe.Sizeof(*f) > 256<<10 {
		t.Errorf("%d addresses in %d bytes; want at most %d", n, unsafe.Sizeof(*f), failureRows*failureColumns)
	}
	last := addressPrefix(netip.AddrFrom4([4]byte{10, 1, 134, 159})) // number 99,999
	if f.delay(last) == 0 {
		t.Error("the newest address is not in the table")
	}
	f.add(netip.Prefix{})
	now = now.Add(forgetFailures)
	if f.delay(last) != 0 || len(f.most(10)) != 0 {
		t.Error("failures are remembered for longer than 10 min")
	}
}

package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// auditLines reads an audit log.
func auditLines(t *testing.T, path string) (list []auditRecord) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var r auditRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		list = append(list, r)
	}
	return list
}

// TestWritesAreAudited: every request of a known caller that may change something
// is in the log, with who sent it and what was answered, and nothing else is.
func TestWritesAreAudited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	s, k := newServer(t, withTokens, func(c *Config, _ *Deps) { c.AuditFile = path })
	operations := map[string]bool{}
	var want []string
	for _, c := range calls(k) {
		w := do(s.Handler(), c.method, Prefix+c.path, c.body, "Authorization", "Bearer "+operatorToken)
		if c.method != "GET" {
			operations[c.id] = true
			want = append(want, fmt.Sprint("operator ", c.method, " ", w.Code))
		}
	}
	if len(operations) < 8 {
		t.Fatalf("only %d operations that change something", len(operations))
	}
	do(s.Handler(), "POST", Prefix+"/counters", `{}`)
	do(s.Handler(), "POST", Prefix+"/counters", `{}`, "Authorization", "Bearer wrong")
	do(s.Handler(), "DELETE", Prefix+"/marks/m-0", "", "Authorization", "Bearer "+tenantToken)
	want = append(want, "tenant blue DELETE 403")
	var got []string
	for _, r := range auditLines(t, path) {
		got = append(got, fmt.Sprint(r.Who, " ", r.Method, " ", r.Status))
		if r.Remote != "192.0.2.1:1234" || r.Time.IsZero() || !strings.HasPrefix(r.Path, Prefix) {
			t.Errorf("record %+v; want time, address and path", r)
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("audit log:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("audit log %v, %v; want mode 0600", info.Mode(), err)
	}
}

// TestAuditHasNoSecrets: bodies are in the log if they are short JSON, without
// what may be a secret.
func TestAuditHasNoSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	s, _ := newServer(t, withTokens, func(c *Config, _ *Deps) { c.AuditFile = path })
	for _, body := range []string{
		`{"name":"syn","filter":"tcp"}`, `{"name":"x","api_token":"hunter2","list":[{"Password":["hunter2"]}]}`,
		`{"name":"hunter2`, `{"name":"` + strings.Repeat("hunter2", maxAuditBody) + `"}`,
	} {
		do(s.Handler(), "POST", Prefix+"/counters", body, "Authorization", "Bearer "+operatorToken)
	}
	do(s.Handler(), "POST", Prefix+"/counters?token=hunter2&a=b", "", "Authorization", "Bearer "+operatorToken)
	lines := auditLines(t, path)
	if len(lines) != 5 || string(lines[0].Body) != `{"filter":"tcp","name":"syn"}` || lines[0].BodyBytes != 29 ||
		!strings.Contains(string(lines[1].Body), redacted) || lines[2].Body != nil || lines[3].Body != nil || lines[4].Query != "a=b&token=%5Bredacted%5D" {
		t.Errorf("audit log %+v; want one body whole and one redacted", lines)
	}
	b, err := os.ReadFile(path)
	if err != nil || bytes.Contains(b, []byte("hunter2")) || bytes.Contains(b, []byte(operatorToken)) {
		t.Errorf("the audit log has a secret: %s, %v", b, err)
	}
}

// TestTenantCannotFlushTheAudit: what a tenant sends beyond its rate does not push
// other records out.
func TestTenantCannotFlushTheAudit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	s, k := newServer(t, withTokens, func(c *Config, _ *Deps) { c.AuditFile = path })
	for range 10 * diagnosisRequestBurst {
		do(s.Handler(), "POST", Prefix+"/slow-flows", `{"flow":"`+k.flow(0).String()+`"}`, "Authorization", "Bearer "+tenantToken)
	}
	if n := len(auditLines(t, path)); n == 0 || n > 3*diagnosisRequestBurst {
		t.Errorf("%d records of a tenant; want about its burst of %d", n, diagnosisRequestBurst)
	}
}

// TestRefusedWritesOfATenantAreBounded: neither do writes that a tenant may not make,
// or that are wrong; the first of them are recorded.
func TestRefusedWritesOfATenantAreBounded(t *testing.T) {
	synctest.Test(t, testRefusedWritesOfATenantAreBounded)
}

func testRefusedWritesOfATenantAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	s, _ := newServer(t, withTokens, func(c *Config, _ *Deps) { c.AuditFile = path })
	for range 10 * diagnosisRequestBurst {
		do(s.Handler(), "DELETE", Prefix+"/marks/m-0", "", "Authorization", "Bearer "+tenantToken)
		do(s.Handler(), "POST", Prefix+"/slow-flows", `{"flow":"no flow"}`, "Authorization", "Bearer "+tenantToken)
		do(s.Handler(), "DELETE", "/api/nothing", "", "Authorization", "Bearer "+operatorToken)
	}
	count := map[string]int{}
	for _, r := range auditLines(t, path) {
		count[r.Who]++
	}
	if count["tenant blue"] != diagnosisRequestBurst || count["operator"] != 10*diagnosisRequestBurst {
		t.Errorf("%v records; want %d of the tenant, all of the operator", count, diagnosisRequestBurst)
	}
}

// TestPanicIsAuditedAsAnswered: the record of a request whose handler panics has the
// status that the caller got.
func TestPanicIsAuditedAsAnswered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	s, _ := newServer(t, withTokens, func(c *Config, _ *Deps) { c.AuditFile = path })
	bad := s.guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken") }))
	w := do(bad, "POST", Prefix+"/counters", `{}`, "Authorization", "Bearer "+operatorToken)
	if lines := auditLines(t, path); w.Code != 500 || len(lines) != 1 || lines[0].Status != 500 {
		t.Errorf("answered %d, audit log %+v; want 500 in both", w.Code, lines)
	}
}

// TestAuditRotates: the log's size is bounded, and no record is split.
func TestAuditRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	a := &auditLog{path: path, maxSize: 1000, log: slog.New(slog.DiscardHandler), failed: func() { t.Error("not written") }}
	for i := range 100 {
		a.add(&auditRecord{Who: "operator", Path: fmt.Sprintf("/%03d", i)})
	}
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	next := 100
	for _, name := range []string{path, path + ".1", path + ".2", path + ".3"} {
		lines := auditLines(t, name)
		if info, err := os.Stat(name); err != nil || info.Size() > 1000 || len(lines) == 0 {
			t.Fatalf("%s: %v, %v; want at most 1000 bytes", name, info, err)
		}
		for i := len(lines) - 1; i >= 0; i-- {
			if next--; lines[i].Path != fmt.Sprintf("/%03d", next) {
				t.Fatalf("%s has %s; want /%03d", name, lines[i].Path, next)
			}
		}
	}
	if _, err := os.Stat(path + ".4"); err == nil {
		t.Error("a fourth rotated file is kept")
	}
}

// TestAuditFailureIsReported: a log that cannot be written costs no request, is
// counted and in health, and is written again when it can be.
func TestAuditFailureIsReported(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	s, _ := newServer(t, func(c *Config, _ *Deps) { c.AuditFile = filepath.Join(dir, "audit.jsonl") })
	write := func() {
		t.Helper()
		if w := do(s.Handler(), "PUT", Prefix+"/clock", `{"pace":1}`); w.Code != 200 {
			t.Errorf("a write without the audit log = %d; want 200", w.Code)
		}
	}
	write()
	write()
	if h := s.health(); h.State != "degraded" || !strings.Contains(strings.Join(h.Alerts, "\n"), "audit log") {
		t.Errorf("health %s, alerts %q; want it degraded, with the reason", h.State, h.Alerts)
	}
	if got := metric(t, s, "weft_api_audit_failures_total"); got != "2" {
		t.Errorf("%s failures counted, want 2", got)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write()
	if h := s.health(); h.State != "ok" || len(auditLines(t, s.cfg.AuditFile)) != 1 {
		t.Errorf("health %s, alerts %q after the log could be written; want ok", h.State, h.Alerts)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bad, _ := newServer(t, func(c *Config, _ *Deps) { c.AuditFile = dir })
	if err := bad.Serve(t.Context(), ln); err == nil || !strings.Contains(err.Error(), "audit_file") {
		t.Errorf("Serve with a folder as audit log = %v; want an error", err)
	}
}

// FuzzRedact: what is kept of any body is JSON, in which no secret has a value.
func FuzzRedact(f *testing.F) {
	f.Add([]byte(`{"a":{"token":"x"},"b":[1,{"SECRET":{"c":1}}]}`))
	f.Add([]byte(`[1e999]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out := redactBody(in)
		if out == nil {
			return
		}
		var v any
		if err := json.Unmarshal(out, &v); err != nil {
			t.Fatalf("redacted %q is %q: %v", in, out, err)
		}
		var check func(any)
		check = func(v any) {
			switch v := v.(type) {
			case map[string]any:
				for name, value := range v {
					if isSecret(name) && value != redacted {
						t.Errorf("%q keeps %s = %v", out, name, value)
					}
					check(value)
				}
			case []any:
				for _, value := range v {
					check(value)
				}
			}
		}
		check(v)
	})
}

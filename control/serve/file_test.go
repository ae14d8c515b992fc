package serve

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/internal/fileerror"
)

// FuzzConfig: whatever a file holds, reading it does not panic; an error has a
// line and a key that is known; and what is taken is dumped as a file that reads
// the same, but for tokens and whom they belong to.
func FuzzConfig(f *testing.F) {
	example, err := os.ReadFile("../../deploy/serve.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, text := range []string{
		"topology: f.yaml\nswitches:\n  - {name: tor0, address: 10.0.0.1, int: 0x10, pad: 8}\n",
		"topology: \"null\"\njobs:\n  - {name: blue, hosts: [h0, h1], prefixes: [10.9.0.0/16]}\n",
		"topology: f.yaml\napi:\n  token: secret-secret-secret\n  hosts: [a, b]\n  tenants:\n    - {name: blue, token: tok-tok-tok-tok-tok, prefixes: [10.0.1.0/24], hosts: [h3]}\n",
		"topology: f.yaml\nstore:\n  max_size: 1234567\n  retention: {flows: 1000000h, ports: 99999999s, traces: forever}\n",
		"topology: f.yaml\nalerts:\n  link: https://weft.example\n  hold: 0s\n  targets: [{kind: webhook, url: 'http://h/x', token: t, jobs: [blue]}, {kind: alertmanager, url: 'http://127.0.0.1:9093'}]\njobs: [{name: blue, hosts: [h0]}]\n",
		"topology: f.yaml\nstore: {max_size: 10GB, memory: 123456789B, queue: 1000}\ndta: {rate: 1e6, receive_buffer: 5000}\n",
		"topology: |\n  two\n  lines\nlog: {level: WARN+2}\n", "topology: ~\n", "api: 5\n", "a: &b [*b]\n", "switches: {}\n", "topology: f\ntopology: g\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, lines := DefaultConfig(), map[string]int{}
		err := parse("f.yaml", data, &c, lines)
		if err != nil {
			var e *fileerror.Error
			if !errors.As(err, &e) || e.Line == 0 && len(data) <= maxFile {
				t.Fatalf("%q: error %q without a line", data, err)
			}
			return
		}
		if err := c.Check(); err != nil {
			var e *source.KeyError
			if !errors.As(err, &e) || !isKey(e.Key) {
				t.Fatalf("%q: error %q without a key", data, err)
			}
			return
		}
		text := dumped(t, &c)
		again := DefaultConfig()
		if err := parse("dump.yaml", []byte(text), &again, map[string]int{}); err != nil {
			t.Fatalf("%q is dumped as\n%s\nwhich is not read: %v", data, text, err)
		}
		c.API.Token, c.API.Users, c.API.Tenants, c.Alerts.Targets = "", nil, nil, nil
		if !reflect.DeepEqual(c, again) {
			t.Fatalf("%q is dumped as\n%s\nwhich reads as\n%+v; want\n%+v", data, text, again, c)
		}
	})
}

func dumped(t *testing.T, c *Config) string {
	t.Helper()
	var b strings.Builder
	if err := c.Dump(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// isKey reports whether a key, or a section, is one of a configuration.
func isKey(key string) bool {
	for _, k := range append(keys(), "store.retention", "switches", "jobs", "api.users", "api.tenants", "alerts.targets") {
		if k == key || strings.HasPrefix(k, key+".") {
			return true
		}
	}
	return false
}

// TestErrorsHaveTheirLine: also those about values that are well written.
func TestErrorsHaveTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"topology: f\ndta:\n  workers: 99\n":                                                  "f.yaml:3: dta.workers: 99, want 1 to 16",
		"topology: f\nint:\n  listen: 1.2.3.4:5\n  full_utilization: 0\n":                     "f.yaml:2: int: time_unit 1ns, depth_unit 1B, full_utilization 0; want all above 0",
		"dta:\n  workers: 2\n":                                                                "f.yaml: topology: none, want the topology file of the fabric",
		"topology: f\napi:\n  listen: 0.0.0.0:1\n":                                            "f.yaml:3: api.listen: 0.0.0.0:1 is not a loopback address",
		"topology: f\napi: {token_file: x,\n  token: y}\n":                                    "f.yaml:2: api.token_file: given with api.token",
		"topology: f\napi:\n  users:\n    - {name: eve, role: root, token: 0123456789abcdef}": "f.yaml:4: api.users: role \"root\" of eve, want one of viewer, operator, admin",
		"topology: f\nalerts:\n  link: x\n  severity: bad\n":                                  "f.yaml:4: alerts.severity: \"bad\", want one of notice, warning, critical",
		"topology: f\nalerts:\n  link: weft.example\n":                                        "f.yaml:3: alerts.link: url \"weft.example\", want one such as",
		"topology: f\nalerts:\n  targets:\n    - {kind: mail, url: http://h}":                 "f.yaml:4: alerts.targets: kind \"mail\", want alertmanager or webhook",
		"topology: f\nalerts:\n  targets:\n    - {kind: webhook, uri: http://h}":              "f.yaml:4: ",
		"topology: f\nstore:\n  retention:\n    flows: 1h\n    x: 1h":                         "f.yaml:5: store.retention: kind \"x\", want one of",
	} {
		path := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Source{File: path}.Load()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

// TestErrorsNameFlags: a value of a flag or a variable is not an error of the file.
func TestErrorsNameFlags(t *testing.T) {
	name := filepath.Join(t.TempDir(), "serve.yaml")
	if err := os.WriteFile(name, []byte("topology: fabric.yaml\napi:\n  listen: 127.0.0.1:8080\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(key string) (string, bool) { return "nowhere", key == "WEFT_API_LISTEN" }
	for want, s := range map[string]Source{
		"--api-listen: ":    {File: name, Flags: map[string]string{"api.listen": "1.2.3.4:99999"}},
		"WEFT_API_LISTEN: ": {File: name, Env: env},
	} {
		if _, err := s.Load(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want it to begin with %q", err, want)
		}
	}
}

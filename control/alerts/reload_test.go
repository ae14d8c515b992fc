package alerts

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weft-telemetry/weft/model/record"
)

// tokens notes the authorization of requests.
type tokens struct {
	receiver
	seen []string
}

func (r *tokens) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.seen = append(r.seen, req.Header.Get("Authorization"))
	r.mu.Unlock()
	return r.receiver.RoundTrip(req)
}

// TestReloadTakesTokens: a new token of a file, and a new severity, without a restart;
// what cannot work changes nothing.
func TestReloadTakesTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	synctest.Test(t, func(t *testing.T) {
		var cfg Config
		n, _, stop := start(t, func(c *Config) {
			c.Targets[0].TokenFile = path
			cfg = *c
		}, nil)
		defer stop()
		r := &tokens{}
		n.targets[0].client.Transport = r
		n.Update(incident("i1"))
		r.take()
		write("second")
		cfg.Severity = "critical"
		apply, err := n.Prepare(cfg)
		if err != nil {
			t.Fatal(err)
		}
		apply()
		n.Update(incident("i2"))
		n.Update(incident("i3", func(r *record.Incident) { r.Severity = "warning" }))
		if got := r.take(); len(got) != 1 || got[0].Incident != "i2" {
			t.Errorf("alerts %+v; want the critical one", got)
		}
		if got := strings.Join(r.seen, ","); got != "Bearer first,Bearer second" {
			t.Errorf("tokens %s; want the first, then the second", got)
		}
		for text, want := range map[string]string{"": "want a token", "two\nlines": "want a token of one line"} {
			write(text)
			if _, err := n.Prepare(cfg); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("token file %q: %v; want %q", text, err, want)
			}
		}
		both := cfg
		both.Targets = []Target{{Kind: Webhook, URL: "http://hook.example/weft", Token: "x", TokenFile: path}}
		if _, err := n.Prepare(both); err == nil || !strings.Contains(err.Error(), "want one of them") {
			t.Errorf("token and file: %v", err)
		}
		n.Update(incident("i4"))
		if r.take(); r.seen[len(r.seen)-1] != "Bearer second" {
			t.Errorf("tokens %v; want the second as before", r.seen)
		}
	})
}

package alerts

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// TestReloadResolvesWhatIsNotSentAnyMore: a reload takes the job of an alert, and then the
// target, from the configuration: the alert does not fire there for ever.
func TestReloadResolvesWhatIsNotSentAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cfg Config
		n, r, stop := start(t, func(c *Config) {
			c.Targets[0].Jobs = []string{"training"}
			cfg = *c
		}, nil)
		defer stop()
		reload := func(targets ...Target) {
			t.Helper()
			next := cfg
			next.Targets = targets
			apply, err := n.Prepare(next)
			if err != nil {
				t.Fatal(err)
			}
			apply()
		}
		only := func(job string) Target {
			to := cfg.Targets[0]
			to.Jobs = []string{job}
			return to
		}
		n.Update(incident("i1"))
		check(t, "the alert of a job", r.take(), "firing i1 storm")
		reload(only("inference"))
		check(t, "the job is not sent any more", r.take(), "resolved i1 storm")
		n.Update(incident("i2"))
		check(t, "another alert of the job", r.take())
		reload(only("training"))
		n.Update(incident("i3"))
		check(t, "the job is sent again", r.take(), "firing i3 storm")
		n.Update(incident("i1", ended))
		n.Update(incident("i2", ended))
		time.Sleep(2 * cfg.Hold)
		r.take()
		reload()
		check(t, "the target is removed", r.take(), "resolved i3 storm")
		n.Update(incident("i3", ended))
		time.Sleep(2 * cfg.Hold)
		n.Update(incident("i4"))
		check(t, "it receives nothing further", r.take())
	})
}

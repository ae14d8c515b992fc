// Package alerts sends incidents to other systems: to Prometheus Alertmanager (API v2)
// and to webhooks. An alert fires while its incident is open and not muted, and is
// resolved at its end. Queues are bounded, failed deliveries are repeated with growing
// delays, and every alert that is lost is counted with its reason.
package alerts

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// Kinds of targets.
const (
	Alertmanager = "alertmanager"
	Webhook      = "webhook"
)

// Severities, least first.
var severities = []string{"notice", "warning", "critical"}

// Config is what is sent, and where to.
type Config struct {
	Link     string        // URL of the console, for links to incidents; empty: no links
	Severity string        // least severity that is sent
	Queue    int           // alerts that may wait for a target
	Hold     time.Duration // an alert fires at least this long
	Repeat   time.Duration // firing alerts are sent to Alertmanager again
	Timeout  time.Duration // of one request
	Expire   time.Duration // alerts that could not be delivered for this long are dropped
	Targets  []Target
}

// Target is one receiver of alerts.
type Target struct {
	Kind  string
	URL   string
	Token string // bearer token; empty: none
	// TokenFile is a file with the token instead, which Reload reads again.
	TokenFile string
	// Jobs are the jobs whose incidents it receives; none: it receives all incidents.
	Jobs []string
}

// token returns the bearer token of a target.
func (t *Target) token() (string, error) {
	if t.TokenFile == "" {
		return t.Token, nil
	}
	b, err := os.ReadFile(t.TokenFile)
	if err != nil {
		return "", &KeyError{"targets", "token_file: " + err.Error()}
	}
	token := strings.TrimSpace(string(b))
	if token == "" || len(b) > maxToken || strings.ContainsAny(token, "\r\n") {
		return "", &KeyError{"targets", fmt.Sprintf("token_file: %s has %d bytes, want a token of one line, at most %d bytes", t.TokenFile, len(b), maxToken)}
	}
	return token, nil
}

// maxToken is the size limit of a token file.
const maxToken = 16384

// DefaultConfig has no targets.
func DefaultConfig() Config {
	return Config{
		Severity: "warning", Queue: 1024, Hold: time.Minute, Repeat: time.Minute, Timeout: 10 * time.Second, Expire: 15 * time.Minute,
	}
}

// KeyError is an error about one key of the configuration.
type KeyError struct{ Key, Msg string }

// Error names the key.
func (e *KeyError) Error() string { return e.Key + ": " + e.Msg }

// Check returns a KeyError for the first value that cannot work.
func (c *Config) Check() error {
	bad := func(key, format string, args ...any) error { return &KeyError{key, fmt.Sprintf(format, args...)} }
	switch {
	case !slices.Contains(severities, c.Severity):
		return bad("severity", "%q, want one of %s", c.Severity, strings.Join(severities, ", "))
	case c.Queue < 1 || c.Queue > 1<<20:
		return bad("queue", "%d, want 1 to %d", c.Queue, 1<<20)
	case c.Hold < 0 || c.Hold > time.Hour:
		return bad("hold", "%v, want 0s to 1h", c.Hold)
	case c.Repeat < time.Second || c.Repeat > time.Hour:
		return bad("repeat", "%v, want 1s to 1h", c.Repeat)
	case c.Timeout < time.Millisecond || c.Timeout > time.Minute:
		return bad("timeout", "%v, want 1ms to 1m", c.Timeout)
	case c.Expire < time.Second:
		return bad("expire", "%v, want at least 1s", c.Expire)
	}
	if c.Link != "" {
		if err := checkURL(c.Link); err != nil {
			return bad("link", "%v", err)
		}
	}
	for i := range c.Targets {
		if err := c.Targets[i].Check(); err != nil {
			return bad("targets", "%v", err)
		}
	}
	return nil
}

// Check returns what is wrong with a target.
func (t *Target) Check() error {
	if t.Kind != Alertmanager && t.Kind != Webhook {
		return fmt.Errorf("kind %q, want alertmanager or webhook", t.Kind)
	}
	if t.Token != "" && t.TokenFile != "" {
		return errors.New("token and token_file, want one of them")
	}
	if slices.Contains(t.Jobs, "") {
		return errors.New("jobs: one without a name, want names of jobs")
	}
	return checkURL(t.URL)
}

// wants reports whether a target receives an alert.
func (t *Target) wants(a *Alert) bool {
	return len(t.Jobs) == 0 || slices.ContainsFunc(a.Jobs, func(job string) bool { return slices.Contains(t.Jobs, job) })
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("url %q, want one such as http://127.0.0.1:9093", text)
	}
	if u.User != nil {
		return fmt.Errorf("url of %s with a user or password, want a token instead", u.Host)
	}
	return nil
}

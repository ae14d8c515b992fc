package nats

import (
	"testing"

	"github.com/weft-telemetry/weft/internal/testcert"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/frame"
)

// TestAccess connects to a broker with TLS and a token, with and without them.
func TestAccess(t *testing.T) {
	cert, key, _ := testcert.Write(t, t.TempDir(), 1)
	b, err := StartBroker(BrokerConfig{Listen: "127.0.0.1:0", Dir: t.TempDir(), TLSCert: cert, TLSKey: key, TLSCA: cert, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close() //nolint:errcheck // returns nil
	all := Access{URL: b.URL(), TLSCA: cert, TLSCert: cert, TLSKey: key, Token: "secret"}
	for name, tc := range map[string]struct {
		change func(*Access)
		ok     bool
	}{
		"all":            {func(*Access) {}, true},
		"no certificate": {func(a *Access) { a.TLSCert, a.TLSKey = "", "" }, false},
		"no authority":   {func(a *Access) { a.TLSCA = "" }, false},
		"no token":       {func(a *Access) { a.Token = "" }, false},
		"wrong token":    {func(a *Access) { a.Token = "guess" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := all
			tc.change(&a)
			c, err := Connect(a)
			if (err == nil) != tc.ok {
				t.Errorf("Connect = %v; want success: %v", err, tc.ok)
			}
			if c != nil {
				c.Close()
			}
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"name":       func(c *Config) { c.Name = "a.b" },
		"partitions": func(c *Config) { c.Partitions = 0 },
		"buffer":     func(c *Config) { c.BufferSize = 1 },
		"backlog":    func(c *Config) { c.Backlog = 0 },
		"timeout":    func(c *Config) { c.Timeout = 0 },
		"replicas":   func(c *Config) { c.Replicas = 9 },
	} {
		c := DefaultConfig("name", 4)
		if change(&c); c.Check() == nil {
			t.Errorf("%s: %+v is valid", name, c)
		}
	}
	for _, c := range []BrokerConfig{{Listen: "127.0.0.1:0"}, {Dir: "x", Listen: "nowhere"}, {Dir: "x", Listen: "127.0.0.1:http"}} {
		if _, err := StartBroker(c); err == nil {
			t.Errorf("StartBroker(%+v) starts", c)
		}
	}
}

// TestMalformed publishes bytes that are no batch: they are counted, and do not stop
// the reader.
func TestMalformed(t *testing.T) {
	conn := connect(t, shared.URL())
	s, err := Open(t.Context(), conn, testConfig(1, model.MiB))
	if err != nil {
		t.Fatal(err)
	}
	sub, err := s.Subscribe(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.js.Publish(t.Context(), s.cfg.subject(0), []byte("no batch")); err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(0, stream.Message{}); err != nil {
		t.Fatal(err)
	}
	drain(t, sub, 1)
	if st := s.Stats(); st.Malformed != 1 || st.Read != 1 {
		t.Errorf("stats %+v; want one malformed and one read", st)
	}
	if info, err := s.js.Stream(t.Context(), s.cfg.Name); err != nil || info.CachedInfo().State.Msgs != 0 {
		t.Errorf("%d batches stay, %v; want none", info.CachedInfo().State.Msgs, err)
	}
}

// TestPartOfABatch acknowledges one of two messages that travel together: both are read
// again.
func TestPartOfABatch(t *testing.T) {
	s, err := Open(t.Context(), connect(t, shared.URL()), testConfig(1, model.MiB))
	if err != nil {
		t.Fatal(err)
	}
	two := frame.AppendTo(frame.AppendTo(nil, &stream.Message{At: 0}), &stream.Message{At: 1})
	if _, err := s.js.Publish(t.Context(), s.cfg.subject(0), two); err != nil {
		t.Fatal(err)
	}
	sub, err := s.Subscribe(0)
	if err != nil {
		t.Fatal(err)
	}
	var at []stream.Position
	poll(t, sub, func(m stream.Message) { at = append(at, m.Position) }, func() bool { return len(at) >= 2 })
	if err := sub.Ack(at[0]); err != nil || s.Stats().Acknowledged != 0 {
		t.Errorf("Ack of a part = %v, %d acknowledged; want none", err, s.Stats().Acknowledged)
	}
	next, err := s.Takeover(0)
	if err != nil {
		t.Fatal(err)
	}
	drain(t, next, 2)
	if got := s.Stats().Acknowledged; got != 2 {
		t.Errorf("%d acknowledged; want 2", got)
	}
}

package rocev2

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/ingest/keyfile"
)

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// relay is a host on the path between translator and collector that may change
// lines. It returns its address, and the translator's lines after an exchange.
func relay(t testing.TB, s *Server, toCollector, toTranslator func(i int, line string) string) (addr string, sent func() string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	heard := make(chan string, 1)
	go func() {
		in, err := l.Accept()
		if err != nil {
			return
		}
		defer in.Close()
		out, err := net.Dial("tcp", s.Control().String())
		if err != nil {
			return
		}
		defer out.Close()
		done := make(chan string, 1)
		pass := func(from, to net.Conn, change func(int, string) string) (all string) {
			r := bufio.NewReader(from)
			for i := 0; ; i++ {
				line, err := r.ReadString('\n')
				if err != nil {
					return all
				}
				all += line
				if change != nil {
					line = change(i, line)
				}
				io.WriteString(to, line)
			}
		}
		go func() { done <- pass(in, out, toCollector); out.Close() }()
		pass(out, in, toTranslator)
		in.Close()
		heard <- <-done
	}()
	return l.Addr().String(), func() string { return <-heard }
}

// connectVia runs the translator's side through an address.
func connectVia(t testing.TB, addr, name string, keys Keys) (Reply, error) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	local := netip.MustParseAddrPort(conn.LocalAddr().String())
	return newExchange(conn).connect(name, keys, Request{Addr: local, QPN: 77, PSN: 5})
}

// TestAlteredTranscriptIsRefused: a host on the path that changes any line, of
// either side, is found out by the other.
func TestAlteredTranscriptIsRefused(t *testing.T) {
	keys := keyfile.Generate([]string{"tor1", "tor2"}, nil)
	s, _ := serveConfig(t, ServerConfig{Keys: keys}, memory(t), nil)
	change := func(line int, from, to string) func(int, string) string {
		return func(i int, s string) string {
			if i != line {
				return s
			}
			if !strings.Contains(s, from) {
				t.Errorf("line %d %.100q has no %s", i, s, from)
			}
			return strings.Replace(s, from, to, 1)
		}
	}
	for what, tc := range map[string]struct {
		toCollector, toTranslator func(int, string) string
	}{
		"name":             {toCollector: change(0, "tor1", "tor2")},
		"white space":      {toCollector: change(0, `,"name"`, `, "name"`)},
		"queue pair":       {toCollector: change(1, `"qpn":77`, `"qpn":78`)},
		"PSN":              {toCollector: change(1, `"psn":5`, `"psn":6`)},
		"proof":            {toCollector: change(2, `"hmac":"`, `"hmac":"00`)},
		"no proof":         {toCollector: func(i int, s string) string { return map[bool]string{true: "{}\n", false: s}[i == 2] }},
		"challenge":        {toTranslator: change(0, `,"nonce"`, `, "nonce"`)},
		"region's key":     {toTranslator: change(1, `"rkey":`, `"rkey":1`)},
		"region's length":  {toTranslator: change(1, `"length":`, `"length":1`)},
		"destination":      {toTranslator: change(1, `"addr":"127.0.0.1`, `"addr":"127.0.0.9`)},
		"collector's QPN":  {toTranslator: change(1, `"qpn":`, `"qpn":1`)},
		"heads":            {toTranslator: change(1, `"heads":[0`, `"heads":[1`)},
		"collector's word": {toTranslator: change(2, `"hmac":"`, `"hmac":"00`)},
		"no word":          {toTranslator: func(i int, s string) string { return map[bool]string{true: "{}\n", false: s}[i == 2] }},
	} {
		addr, _ := relay(t, s, tc.toCollector, tc.toTranslator)
		if reply, err := connectVia(t, addr, "tor1", keys); err == nil || len(reply.Regions) > 0 {
			t.Errorf("altered %s: %d regions, %v; want an error", what, len(reply.Regions), err)
		}
	}
	addr, _ := relay(t, s, nil, nil)
	if reply, err := connectVia(t, addr, "tor1", keys); err != nil || len(reply.Regions) != 4 {
		t.Errorf("unaltered: %d regions, %v; want 4", len(reply.Regions), err)
	}
}

// TestReplayedTranscriptIsRefused: the lines of a translator's successful
// exchange, sent again, prove nothing.
func TestReplayedTranscriptIsRefused(t *testing.T) {
	keys := keyfile.Generate([]string{"tor1"}, nil)
	s, _ := serveConfig(t, ServerConfig{Keys: keys}, memory(t), nil)
	addr, sent := relay(t, s, nil, nil)
	if _, err := connectVia(t, addr, "tor1", keys); err != nil {
		t.Fatal(err)
	}
	if got := request(t, s, sent()); !strings.Contains(got, notAuthenticated) || strings.Contains(got, "rkey") {
		t.Errorf("the replayed lines are answered by %s", got)
	}
	refusedFor(t, s, WrongProof, 1)
}

// TestProofCannotBeSentBack: a stranger in the role of the collector that returns
// the translator's own proof does not pass for the collector.
func TestProofCannotBeSentBack(t *testing.T) {
	keys := keyfile.Generate([]string{"tor1"}, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		x := newExchange(conn)
		var hello Hello
		var req Request
		var p Proof
		x.receive(&hello, maxRequest)
		x.send(Challenge{Version: Version, Nonce: hello.Nonce})
		x.receive(&req, maxRequest)
		x.receive(&p, maxRequest)
		x.send(Reply{MTU: 1024})
		x.send(p)
	}()
	if _, err := connectVia(t, l.Addr().String(), "tor1", keys); err == nil || !strings.Contains(err.Error(), "does not prove") {
		t.Errorf("a collector without the key: %v; want a refusal", err)
	}
}

// TestCollectorWithoutKeysIsNotTrusted: a translator with a key does not write to
// a collector that has none.
func TestCollectorWithoutKeysIsNotTrusted(t *testing.T) {
	s, _ := serve(t, "127.0.0.1:0", memory(t), nil)
	keys := keyfile.Generate([]string{"tor1"}, nil)
	if _, err := dialFrom(t, s, "tor1", "127.0.0.1", keys); err == nil || !strings.Contains(err.Error(), "runs without --keys") {
		t.Errorf("Dial = %v; want a refusal that says why", err)
	}
	if _, err := dialFrom(t, s, "tor2", "127.0.0.1", keys); err == nil || !strings.Contains(err.Error(), "no key of tor2") {
		t.Errorf("Dial without a key for the name = %v; want an error", err)
	}
}

// TestKeysRotate follows the three steps: the collector has the new key file
// first, then the translator; then the old key is retired, and ends who still
// uses it.
func TestKeysRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	f := keyfile.Generate([]string{"tor1", "tor2"}, nil)
	old := copyKeys(t, f)
	if err := f.Write(path); err != nil {
		t.Fatal(err)
	}
	ring, err := keyfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := serveConfig(t, ServerConfig{Keys: ring}, memory(t), nil)
	connect := func(name string, keys Keys) error {
		_, err := dialFrom(t, s, name, "127.0.0.1", keys)
		return err
	}
	reload := func() {
		t.Helper()
		if err := f.Replace(path); err != nil {
			t.Fatal(err)
		}
		if err := ring.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	if err := connect("tor1", old); err != nil {
		t.Fatal(err)
	}
	if err := f.Rotate(nil); err != nil {
		t.Fatal(err)
	}
	reload()
	if err := connect("tor2", old); err != nil {
		t.Errorf("the old key after the collector's rotation: %v", err)
	}
	if n := s.Stats().Peers; n != 2 {
		t.Errorf("%d connections after the rotation; want both of the old key", n)
	}
	if err := connect("tor1", copyKeys(t, f)); err != nil {
		t.Errorf("the new key: %v", err)
	}
	if _, err := f.Retire(); err != nil {
		t.Fatal(err)
	}
	reload()
	await(t, "the end of the old key's connection", func() bool { return s.Stats().Peers == 1 })
	if err := connect("tor1", old); err == nil {
		t.Error("a retired key connects")
	}
	if err := connect("tor2", copyKeys(t, f)); err != nil {
		t.Errorf("the new key: %v", err)
	}
	refusedFor(t, s, UnknownKey, 1)
}

// copyKeys returns the present keys of f.
func copyKeys(t testing.TB, f *keyfile.File) *keyfile.File {
	t.Helper()
	g, err := keyfile.Parse("copy", f.AppendTo(nil))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// duplex reads one buffer and writes another.
type duplex struct {
	io.Reader
	io.Writer
}

// FuzzCollectorSide: whatever a stranger sends, it is not authenticated, and the
// answer has no keys.
func FuzzCollectorSide(f *testing.F) {
	keys := keyfile.Generate([]string{"tor1"}, nil)
	f.Add([]byte(lines("tor1", `{"addr":"127.0.0.1:5"}`)))
	one := uint8(1)
	hello, _ := json.Marshal(Hello{Version, "tor1", &one, make([]byte, nonceSize)})
	f.Add([]byte(string(hello) + "\n{}\n{\"hmac\":\"00\"}\n"))
	f.Add(bytes.Repeat([]byte{'x'}, maxRequest+1))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		c, err := newExchange(duplex{bytes.NewReader(in), &out}).authenticate(keys)
		if err == nil || c.key != nil {
			t.Fatalf("%q is authenticated as %q", in, c.name)
		}
		if out.Len() > maxRequest {
			t.Fatalf("%d bytes are answered by %d", len(in), out.Len())
		}
		out.Reset()
		if c, err := newExchange(duplex{bytes.NewReader(in), &out}).authenticate(nil); err == nil && keyfile.CheckName(c.name) != nil {
			t.Fatalf("%q is admitted as %q", in, c.name)
		}
	})
}

// FuzzTranslatorSide: whatever an impostor answers, the translator takes nothing
// from it with a key, and without one only a plan that is checked.
func FuzzTranslatorSide(f *testing.F) {
	keys := keyfile.Generate([]string{"tor1"}, nil)
	challenge, _ := json.Marshal(Challenge{Version: Version, Nonce: make([]byte, nonceSize)})
	reply, _ := json.Marshal(Reply{Addr: netip.MustParseAddrPort("127.0.0.1:1"), MTU: 1024, Regions: []RegionAdvert{{Kind: "key-write", Geometry: []byte("{}")}}, Heads: []uint64{1}})
	f.Add([]byte(string(challenge) + "\n" + string(reply) + "\n{\"hmac\":\"\"}\n"))
	f.Add([]byte(`{"error":"no"}` + "\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		reply, err := newExchange(duplex{bytes.NewReader(in), io.Discard}).connect("tor1", keys, Request{})
		if err == nil || len(reply.Regions) > 0 {
			t.Fatalf("an impostor's %q is taken", in)
		}
		if reply, err = newExchange(duplex{bytes.NewReader(in), io.Discard}).connect("tor1", nil, Request{}); err == nil {
			_, _, _ = reply.plan()
		}
	})
}

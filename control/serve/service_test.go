package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/stream/inproc"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/packet"
)

// bed is a service on loopback with a store of its own.
type bed struct {
	t     *testing.T
	cfg   Config
	store *embedded.Store
	*Service
	api *client.Client // of the operator
	end func() error
}

// testConfig is of a small fat-tree, on free ports of loopback.
func testConfig(t *testing.T) Config {
	t.Helper()
	dir := t.TempDir()
	doc, err := file.Parse("fabric.yaml", []byte("generate: {kind: fat-tree, k: 4, rate: 100Gb/s}\n"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "fabric.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Write(f, file.YAML, doc); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Topology = f.Name()
	cfg.Store.Path = filepath.Join(dir, "weft.duckdb")
	cfg.API.Listen = "127.0.0.1:0"
	for key, text := range map[string]string{"dta.listen": "127.0.0.1:0", "int.listen": "127.0.0.1:0"} {
		set(t, &cfg, key, text)
	}
	return cfg
}

func set(t *testing.T, c *Config, key, text string) {
	t.Helper()
	for i := range settings {
		if settings[i].Key == key {
			if err := settings[i].Set(c, text); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no setting %s", key)
}

// start serves until the returned bed ends.
func start(t *testing.T, cfg Config) *bed {
	t.Helper()
	return startWith(t, cfg, Deps{Log: slog.New(slog.DiscardHandler)})
}

// startWith is start with a log of one's own.
func startWith(t *testing.T, cfg Config, deps Deps) *bed {
	t.Helper()
	s, err := embedded.Open(cfg.Store.Path, embedded.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	deps.Store = s
	if deps.Stream, err = inproc.New(inproc.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	svc, err := New(ctx, cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- svc.Run(ctx) }()
	b := &bed{t: t, cfg: cfg, store: s, Service: svc}
	b.api = b.client(cfg.API.Token)
	ended := false
	b.end = func() error {
		if ended {
			return nil
		}
		ended = true
		cancel()
		if err := <-done; err != nil {
			return err
		}
		return s.Close()
	}
	t.Cleanup(func() {
		if err := b.end(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// reporter sends reports of one switch over a real socket.
type reporter struct {
	t    *testing.T
	conn net.Conn
	w    dta.Writer
	deaf bool // the socket may be closed
}

func (b *bed) reporter(sw model.NodeID) *reporter {
	conn, err := net.Dial("udp", b.Reports().String())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { conn.Close() })
	return &reporter{t: b.t, conn: conn, w: dta.NewWriter(sw, 1)}
}

func (r *reporter) append(list dta.ListID, data []byte) {
	r.t.Helper()
	r.w.Begin(make([]byte, 1472))
	if err := r.w.AddReport(&dta.Report{Primitive: dta.Append, List: list, Data: data}); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.conn.Write(r.w.Finish()); err != nil && !r.deaf {
		r.t.Fatal(err)
	}
}

// frame is a UDP packet from one host to another.
func frame(f *topo.Fabric, from, to model.NodeID, port uint16, id uint16) []byte {
	b := packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)
	ip := packet.IPv4{Length: 20 + 8 + 32, ID: id, TTL: 63, Proto: model.UDP, Src: f.Node(from).IPv4.V4(), Dst: f.Node(to).IPv4.V4()}
	ip.Checksum = ip.Sum()
	b = ip.AppendTo(b)
	b = packet.UDP{SrcPort: port, DstPort: 4791, Length: 8 + 32}.AppendTo(b)
	return append(b, make([]byte, 32)...)
}

// TestNothingAcceptedIsLost: everything that was sent before the end is in the
// store after it.
func TestNothingAcceptedIsLost(t *testing.T) {
	b := start(t, testConfig(t))
	r := b.reporter(b.Fabric().Switches()[0])
	// All but the last are taken; those are as many as any kernel queues.
	const n, last = 2000, 100
	for i := range n {
		if i > 0 && i%last == 0 {
			eventually(t, "reports are taken", func() bool { st, _ := stage(b.Health(), "transport"); return st.Out == uint64(i) })
		}
		r.append(b.fabric.lists.Mirrors.First, b.mirrorOf(i))
	}
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	if got := len(traced(t, b.cfg.Store.Path)); got != n {
		t.Errorf("%d traces in the store; want all %d that were sent before the end", got, n)
	}
}

func (b *bed) client(token string) *client.Client {
	tr := &http.Transport{}
	b.t.Cleanup(tr.CloseIdleConnections)
	c, err := client.New(fmt.Sprintf("http://%s", b.Addr()), token, &http.Client{Transport: tr, Timeout: time.Minute})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

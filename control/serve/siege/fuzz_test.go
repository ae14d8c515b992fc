package siege

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/stream/inproc"
)

// inside is a service in this process: a panic in it is the fuzzer's finding.
type inside struct {
	*serve.Service
	conn net.Conn
	h    *hostile
	sent uint64
	bad  atomic.Pointer[string] // the first panic that the service has caught
}

// startInside serves in this process, with sockets and a store.
func startInside(t testing.TB) *inside {
	t.Helper()
	s := prepare(t, map[string]string{"int.listen": "", "erspan.listen": "", "api.health_listen": "", "dta.workers": "1"})
	cfg, err := serve.Source{File: s.path("serve.yaml")}.Load()
	if err != nil {
		t.Fatal(err)
	}
	store, err := embedded.Open(cfg.Store.Path, embedded.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := inproc.New(inproc.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	in := &inside{h: newHostile(1, s, &bank{})}
	ctx, cancel := context.WithCancel(context.Background())
	if in.Service, err = serve.New(ctx, cfg, serve.Deps{Store: store, Stream: stream, Log: slog.New(panicWatch{slog.DiscardHandler, &in.bad})}); err != nil {
		t.Fatal(err)
	}
	// Lies come from a switch that may report: the rest is refused at the door.
	in.h.insider = placeIn(s.fabric, 3).tor
	in.conn = dial(t, netip.AddrPortFrom(nodeAddress(in.h.insider), honestPort), in.Reports())
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, store.Close()); err != nil {
			t.Error(err)
		}
	})
	return in
}

// panicWatch is a log that remembers a panic.
type panicWatch struct {
	slog.Handler
	first *atomic.Pointer[string]
}

func (p panicWatch) Enabled(context.Context, slog.Level) bool { return true }

func (p panicWatch) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "panic") {
		text := r.Message
		r.Attrs(func(a slog.Attr) bool { text += "\n" + a.String(); return true })
		p.first.CompareAndSwap(nil, &text)
	}
	return nil
}

func (p panicWatch) WithAttrs([]slog.Attr) slog.Handler { return p }

// FuzzService sends well-formed lies to a whole service: the fuzzer's bytes choose
// the kinds, the randomness in them, and what is flipped. Nothing may panic, and
// every datagram is accounted for.
func FuzzService(f *testing.F) {
	for i := range lies {
		f.Add(uint64(i), []byte{byte(i), byte(i), byte(i + 1)})
	}
	in := startInside(f)
	f.Fuzz(func(t *testing.T, seed uint64, kinds []byte) {
		in.h.r = rand.New(rand.NewPCG(seed, 1))
		for _, k := range kinds[:min(len(kinds), 32)] {
			one := &lies[int(k)%len(lies)]
			b := one.make(in.h)
			if b == nil || one.to != "dta" {
				continue
			}
			if k >= 128 && len(b) > 12 { // the header stays, so that the report is read
				binary.BigEndian.PutUint16(b[2:], 1)
				copy(b[12:], in.h.flip(append([]byte(nil), b[12:]...)))
			}
			if _, err := in.conn.Write(b); err != nil {
				t.Fatal(err)
			}
			in.sent++
		}
		for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			h := in.Health()
			st, _ := stage(h, "transport")
			taken, _ := stage(h, "translator")
			read, lost := stage(h, "memory")
			if st.In == in.sent && read.Out+lost["overwritten"] == taken.Out {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("sent %d, and the stages say %+v", in.sent, h.Stages)
			}
		}
		if text := in.bad.Load(); text != nil {
			t.Fatalf("a panic was caught: %s", *text)
		}
	})
}

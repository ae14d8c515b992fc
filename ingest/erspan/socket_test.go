package erspan

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/erspan"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// ownLoopback is used by this package alone: a raw socket receives what tests of
// other packages send to the same one.
const ownLoopback = "127.0.0.47"

// listening listens on loopback, with that number of mirrors in the receive
// buffer. It needs the right to open raw sockets.
func listening(t *testing.T, d *Decoder, mirrors int) *Listener {
	t.Helper()
	l, err := Listen(netip.MustParseAddr(ownLoopback), d)
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("a raw socket needs CAP_NET_RAW, which root has, as in CI: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialIP("ip4:47", nil, &net.IPAddr{IP: net.ParseIP(ownLoopback)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := range mirrors {
		if _, err := conn.Write(erspan.Mirror{Kind: erspan.TypeII, GRE: seq(uint32(i)), Index: 4, Frame: inside}.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestSocket(t *testing.T) {
	d := newDecoder(t, config())
	l := listening(t, d, 3)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := 0
	err := l.Run(ctx, func(_ model.Time, m *mirror.Mirror) {
		if m.Switch != 7 || m.In != 4 || !bytes.Equal(m.Frame, inside) {
			t.Errorf("%+v", m)
		}
		if n++; n == 3 {
			cancel()
		}
	})
	if err != nil || n != 3 || d.Stats().Missing != 0 {
		t.Errorf("%d mirrors, %v, %+v; want 3", n, err, d.Stats())
	}
}

// TestSocketIsDrained: packets that the kernel received before the end are decoded.
func TestSocketIsDrained(t *testing.T) {
	const sent = 500
	l := listening(t, newDecoder(t, config()), sent)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	if err := l.Run(ctx, func(model.Time, *mirror.Mirror) { n++ }); err != nil {
		t.Fatal(err)
	}
	if st, lost := l.Stats(); n != sent || st.Mirrors != sent || lost.Dropped != 0 {
		t.Errorf("%d mirrors, %+v, %d dropped; want all %d", n, st, lost.Dropped, sent)
	}
}

// everySecond refuses every second packet, and counts what it was told.
type everySecond struct{ n, told int }

func (g *everySecond) Datagram(_ model.Time, from netip.Addr) translate.Refusal {
	if g.n++; g.n%2 == 0 && from.IsLoopback() {
		return translate.AddressNotAllowed
	}
	return translate.Admitted
}

func (g *everySecond) Refused(netip.Addr, translate.Refusal, int) { g.told++ }

// TestSocketAsksTheGuard: packets that the guard refuses are counted and not decoded.
func TestSocketAsksTheGuard(t *testing.T) {
	const sent = 10
	l := listening(t, newDecoder(t, config()), sent)
	g := &everySecond{}
	l.Guard = g
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	if err := l.Run(ctx, func(model.Time, *mirror.Mirror) { n++ }); err != nil {
		t.Fatal(err)
	}
	if st, lost := l.Stats(); n != sent/2 || st.Packets != sent/2 || lost.Refused[translate.AddressNotAllowed] != sent/2 || g.told != sent/2 {
		t.Errorf("%d mirrors of %+v, refused %v, told %d; want half of %d each", n, st, lost.Refused, g.told, sent)
	}
}

// TestSocketOfBothFamilies: "::" receives mirrors over IPv4 and IPv6.
func TestSocketOfBothFamilies(t *testing.T) {
	cfg := config()
	cfg.Switch = func(a model.Addr) (model.NodeID, bool) {
		if a.Netip().Is4() {
			return 4, true
		}
		return 6, true
	}
	cfg.HasPort = nil
	l, err := Listen(netip.IPv6Unspecified(), newDecoder(t, cfg))
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("a raw socket needs CAP_NET_RAW, which root has, as in CI: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	const port = 747 // tells these mirrors from those of other tests on this machine
	for network, to := range map[string]string{"ip4:47": ownLoopback, "ip6:47": "::1"} {
		conn, err := net.DialIP(network, nil, &net.IPAddr{IP: net.ParseIP(to)})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write(erspan.Mirror{Kind: erspan.TypeII, GRE: seq(1), Index: port, Frame: inside}.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := map[model.NodeID]int{}
	if err := l.Run(ctx, func(_ model.Time, m *mirror.Mirror) {
		if m.In == port {
			if got[m.Switch]++; len(got) == 2 {
				cancel()
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if got[4] != 1 || got[6] != 1 {
		t.Errorf("mirrors of %v; want one of each family", got)
	}
}

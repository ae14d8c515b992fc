package erspan

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// Listener receives mirrors from the network: GRE packets that are addressed to
// this machine. The kernel hands them out to who may open raw sockets, which
// needs CAP_NET_RAW.
type Listener struct {
	conn *net.IPConn
	d    *Decoder
}

// Listen opens a socket on an address of this machine, or on all of them by
// "0.0.0.0" or "::".
func Listen(addr netip.Addr, d *Decoder) (*Listener, error) {
	network := "ip4:47"
	if addr.Is6() {
		network = "ip6:47"
	}
	conn, err := net.ListenIP(network, &net.IPAddr{IP: addr.AsSlice(), Zone: addr.Zone()})
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("listen for mirrors on %v: %w; raw sockets need CAP_NET_RAW", addr, err)
		}
		return nil, fmt.Errorf("listen for mirrors on %v: %w", addr, err)
	}
	return &Listener{conn, d}, nil
}

// Close frees the socket, without Run.
func (l *Listener) Close() error { return l.conn.Close() }

// poll is how often Run looks whether it shall end.
const poll = 100 * time.Millisecond

// Run receives until the context ends. Emit gets each mirror and when it came,
// by this machine's clock, and must not keep it. The socket is closed then.
func (l *Listener) Run(ctx context.Context, emit func(at model.Time, m *mirror.Mirror)) error {
	defer l.conn.Close()
	buf := make([]byte, 1<<16)
	var at model.Time
	out := func(m *mirror.Mirror) { emit(at, m) }
	for ctx.Err() == nil {
		if err := l.conn.SetReadDeadline(time.Now().Add(poll)); err != nil {
			return fmt.Errorf("receive mirrors: %w", err)
		}
		n, from, err := l.conn.ReadFromIP(buf) // without the IPv4 header
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				continue
			}
			return fmt.Errorf("receive mirrors: %w", err)
		}
		at = model.TimeOf(time.Now())
		if a, ok := netip.AddrFromSlice(from.IP); ok {
			l.d.GRE(at, model.AddrOf(a.Unmap()), buf[:n], out)
		}
	}
	return nil
}

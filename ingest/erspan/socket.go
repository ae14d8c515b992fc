//go:build linux

package erspan

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// Listener receives mirrors from the network: GRE packets that are addressed to
// this machine. It needs a raw socket, and so CAP_NET_RAW.
type Listener struct {
	// Tap, if not nil, is called with the IP payload of every packet, and whether
	// it held a mirror. It must not keep the packet. Set it before Run.
	Tap func(at model.Time, from netip.Addr, packet []byte, mirrored bool)
	// Guard, if not nil, decides who may send mirrors. Set it before Run.
	Guard source.Guard
	// Now and Panic are as in source.Output. Set them before Run.
	Now   func() model.Time
	Panic func(v any, packet []byte)

	sockets []*socket

	mu   sync.Mutex // guards the fields below, and calls of emit
	d    *Decoder
	lost Lost
}

// socket is that of one IP family.
type socket struct {
	conn  *net.IPConn
	v6    bool
	drops uint32 // the kernel's counter at the last read; it wraps
}

// Lost are packets that never reached a Listener's decoder.
type Lost struct {
	Dropped uint64                     // by the kernel, because the receive buffer was full
	Refused [translate.Refusals]uint64 // by the Guard
}

// receiveBuffer is the size of the socket's receive buffer.
const receiveBuffer = 32 << 20

// Listen opens a socket on an address of this machine, or on all of them with
// "0.0.0.0", or "::" for both IP families.
func Listen(addr netip.Addr, d *Decoder) (*Listener, error) {
	l := &Listener{d: d}
	addrs := []netip.Addr{addr}
	if addr == netip.IPv6Unspecified() {
		addrs = append(addrs, netip.IPv4Unspecified())
	}
	for _, a := range addrs {
		s, err := open(a)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen for mirrors on %v: %w", a, err), l.Close())
		}
		l.sockets = append(l.sockets, s)
	}
	return l, nil
}

func open(addr netip.Addr) (*socket, error) {
	network := "ip4:47"
	if addr.Is6() {
		network = "ip6:47"
	}
	conn, err := net.ListenIP(network, &net.IPAddr{IP: addr.AsSlice(), Zone: addr.Zone()})
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("%w; raw sockets need CAP_NET_RAW", err)
		}
		return nil, err
	}
	s := &socket{conn: conn, v6: addr.Is6()}
	if err := s.setOptions(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

// setOptions sets a large receive buffer, and the report of drops.
func (s *socket) setOptions() error {
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		// The privileged form exceeds net.core.rmem_max; otherwise use what is allowed.
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
			failed = os.NewSyscallError("setsockopt SO_RCVBUF", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer))
		}
		failed = errors.Join(failed, os.NewSyscallError("setsockopt SO_RXQ_OVFL", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)))
	})
	return errors.Join(err, failed)
}

// Close frees the sockets, without Run.
func (l *Listener) Close() error {
	var errs []error
	for _, s := range l.sockets {
		errs = append(errs, s.conn.Close())
	}
	return errors.Join(errs...)
}

// Stats returns the current counters of the decoder, and of what did not reach it.
// Any goroutine may call it.
func (l *Listener) Stats() (Stats, Lost) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.d.Stats(), l.lost
}

const (
	// poll is how often Run checks its context.
	poll = 100 * time.Millisecond
	// At the end Run reads until nothing has arrived for a while, and no longer
	// than readOut.
	quiet   = 10 * time.Millisecond
	readOut = time.Second
)

// Run receives until the context ends, and then what the kernel had received
// before. It calls emit with each mirror and its arrival time, by this machine's
// clock, never concurrently; emit must not keep the mirror. Run closes the sockets.
func (l *Listener) Run(ctx context.Context, emit func(at model.Time, m *mirror.Mirror)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(l.sockets))
	var wg sync.WaitGroup
	for i, s := range l.sockets {
		wg.Go(func() {
			defer cancel() // one that fails ends the others
			errs[i] = l.receive(ctx, s, emit)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// receive receives from one socket.
func (l *Listener) receive(ctx context.Context, s *socket, emit func(at model.Time, m *mirror.Mirror)) error {
	defer s.conn.Close()
	buf, oob := make([]byte, 1<<16), make([]byte, 64)
	var at model.Time
	out := func(m *mirror.Mirror) { emit(at, m) }
	var ended time.Time
	for {
		wait := poll
		if ctx.Err() != nil {
			if wait = quiet; ended.IsZero() {
				ended = time.Now()
			} else if time.Since(ended) >= readOut {
				return nil
			}
		}
		if err := s.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
			return fmt.Errorf("receive mirrors: %w", err)
		}
		n, oobn, _, from, err := s.conn.ReadMsgIP(buf, oob)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if !ended.IsZero() {
				return nil
			}
			continue
		case err != nil:
			return fmt.Errorf("receive mirrors: %w", err)
		}
		if at = model.TimeOf(time.Now()); l.Now != nil {
			at = l.Now()
		}
		if a, ok := netip.AddrFromSlice(from.IP); ok {
			l.handlePacket(s, at, a.Unmap(), buf[:n], oob[:oobn], out)
		}
	}
}

// handlePacket decodes one packet, with its header if it is IPv4, and reads the
// kernel's ancillary data.
func (l *Listener) handlePacket(s *socket, at model.Time, from netip.Addr, b, oob []byte, emit func(*mirror.Mirror)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Panic != nil {
		defer func() {
			if v := recover(); v != nil {
				l.Panic(v, b)
			}
		}()
	}
	if !s.v6 && len(b) > 0 {
		b = b[min(len(b), int(b[0]&0xf)*4):]
	}
	before := l.d.stats.Mirrors
	if l.admit(at, from) {
		l.d.DecodeGRE(at, model.AddrOf(from), b, emit)
	}
	if l.Tap != nil {
		l.Tap(at, from, b, l.d.stats.Mirrors > before)
	}
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return
	}
	for i := range list {
		if m := &list[i]; m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_RXQ_OVFL && len(m.Data) >= 4 {
			n := binary.NativeEndian.Uint32(m.Data)
			l.lost.Dropped += uint64(n - s.drops)
			s.drops = n
		}
	}
}

// admit reports whether the guard admits a packet.
func (l *Listener) admit(at model.Time, from netip.Addr) bool {
	if l.Guard == nil {
		return true
	}
	why := l.Guard.Datagram(at, from)
	if why == translate.Admitted {
		return true
	}
	l.lost.Refused[why]++
	l.Guard.Refused(from, why, 0)
	return false
}

package bmp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/osrg/gobgp/v3/pkg/packet/bmp"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// Bounds of switches that connect.
const (
	maxMessage     = 1 << 17 // bytes: two OPENs of 64 KiB in a Peer Up
	maxConnections = 1024
)

// listener is the socket of BMP.
type listener struct {
	decoder  source.Decoder
	guard    source.Guard
	listener net.Listener
	tap      source.Tap

	refused                    [translate.Refusals]atomic.Uint64
	refusedConnections, badLen atomic.Uint64
}

func listen(at netip.AddrPort, d source.Decoder, g source.Guard) (*listener, error) {
	inner, err := net.Listen("tcp", at.String())
	if err != nil {
		return nil, err
	}
	l := &listener{decoder: d, guard: g}
	l.listener = source.LimitConnections(inner, maxConnections, &l.refusedConnections)
	return l, nil
}

// Run is part of source.Listener.
func (l *listener) Run(ctx context.Context, tap source.Tap) error {
	l.tap = tap
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.listener.Close() })
	defer stop()
	for {
		c, err := l.listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				c.Close()
			}
			return nil
		case err != nil:
			return err
		}
		all.Go(func() {
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			defer c.Close()
			l.serve(ctx, c)
		})
	}
}

// serve takes the messages of a switch until it closes its connection, or sends what is not
// admitted: a message that is left out would make its routes wrong, so that it has to begin again.
func (l *listener) serve(ctx context.Context, c net.Conn) {
	from, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return
	}
	var message bytes.Buffer
	in := bufio.NewReader(c)
	for taken := 0; ; taken++ {
		if err := readMessage(in, &message); err != nil {
			if errors.Is(err, errLength) {
				l.badLen.Add(1)
			}
			// A service that ends says nothing of the switch.
			if taken > 0 && ctx.Err() == nil {
				l.decode(from, ended)
			}
			return
		}
		at := model.TimeOf(time.Now())
		if l.guard != nil {
			a := from.Addr().Unmap()
			if why := l.guard.Datagram(at, a); why != translate.Admitted {
				l.refused[why].Add(1)
				l.guard.Refused(a, why, 0)
				if taken > 0 {
					l.decode(from, ended)
				}
				return
			}
		}
		l.decode(from, message.Bytes())
	}
}

// ended is the message that stands for the end of a connection without one, so that recordings
// have it: a Termination without information.
var ended = []byte{bmp.BMP_VERSION, 0, 0, 0, bmp.BMP_HEADER_SIZE, bmp.BMP_MSG_TERMINATION}

func (l *listener) decode(from netip.AddrPort, data []byte) {
	at := model.TimeOf(time.Now())
	used := l.decoder.Decode(at, from, data)
	if l.tap != nil {
		l.tap(at, from, l.Addr(), data, used)
	}
}

var errLength = errors.New("bmp: not a message of version 3, or too long")

// readMessage reads a message. Memory grows with what has arrived, not with what a header
// claims.
func readMessage(in *bufio.Reader, m *bytes.Buffer) error {
	m.Reset()
	header, err := in.Peek(bmp.BMP_HEADER_SIZE)
	if err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(header[1:5])
	if header[0] != bmp.BMP_VERSION || n < bmp.BMP_HEADER_SIZE || n > maxMessage {
		return errLength
	}
	_, err = io.CopyN(m, in, int64(n))
	return err
}

// Addr is part of source.Listener.
func (l *listener) Addr() netip.AddrPort {
	a, _ := netip.ParseAddrPort(l.listener.Addr().String())
	return a
}

// Counters is part of source.Listener.
func (l *listener) Counters() source.Counters {
	c := l.decoder.Counters()
	for _, why := range [...]translate.Refusal{translate.AddressNotAllowed, translate.SourceRateLimit} {
		c.Add(why.String(), "messages", l.refused[why].Load())
	}
	c.Add("bad length", "connections ended: another protocol or version, or a message that is too long", l.badLen.Load())
	c.Add("too many connections", "refused", l.refusedConnections.Load())
	return c
}

// Close is part of source.Listener. Run has closed what it served.
func (l *listener) Close() error {
	if err := l.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

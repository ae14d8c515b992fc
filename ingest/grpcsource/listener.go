// Package grpcsource is the gRPC socket of sources whose senders connect by themselves. Messages
// stay bytes: they are decoded once, and recorded as they came. Methods, and what else a source
// listens to, are the source's.
package grpcsource

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// Bounds of senders.
const (
	MaxMessage     = 4 << 20 // bytes: a table of 1024 ports
	maxConnections = 1024
	maxStreams     = 16 // of a connection
)

// EndTimeout is how long what was sent before the end may take to arrive.
const EndTimeout = time.Second

// Listener is the socket.
type Listener struct {
	// Tap sees every message, if there is one. It is set before Serve.
	Tap source.Tap

	unit     string // what a message is called
	decoder  source.Decoder
	guard    source.Guard
	listener net.Listener
	tls      *tls.Config
	grace    time.Duration // EndTimeout

	refused                     [translate.Refusals]atomic.Uint64
	refusedConnections, tooLong atomic.Uint64
}

// Config is what a source configures.
type Config struct {
	Listen          netip.AddrPort
	TLSCert, TLSKey string // files; empty: no TLS
	Unit            string // what a message is called: requests
}

// Listen opens the socket.
func Listen(c Config, d source.Decoder, g source.Guard) (_ *Listener, err error) {
	l := &Listener{unit: c.Unit, decoder: d, guard: g, grace: EndTimeout}
	if c.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("tls_cert: %w", err)
		}
		l.tls = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	}
	if l.listener, err = net.Listen("tcp", c.Listen.String()); err != nil {
		return nil, err
	}
	return l, nil
}

// TLS is that of the socket; nil: none.
func (l *Listener) TLS() *tls.Config { return l.tls }

// LimitConnections bounds the connections of a socket, and counts those that are refused.
func (l *Listener) LimitConnections(inner net.Listener) net.Listener {
	return source.LimitConnections(inner, maxConnections, &l.refusedConnections)
}

// Serve serves until ctx ends, and then takes what was sent before, if it comes soon.
func (l *Listener) Serve(ctx context.Context, service *grpc.ServiceDesc, methods any) error {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxConcurrentStreams(maxStreams), grpc.ForceServerCodec(rawCodec{}), grpc.WaitForHandlers(true),
		grpc.StatsHandler(callEnds{l}),
		// A sender that lost its power leaves a connection, which has a place among the bounded ones.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
	}
	if l.tls != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(l.tls)))
	}
	g := grpc.NewServer(options...)
	g.RegisterService(service, methods)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l.LimitConnections(l.listener)) }()
	select {
	case <-ctx.Done():
		// Streams may never end by themselves.
		end := time.AfterFunc(l.grace, g.Stop)
		defer end.Stop()
		g.GracefulStop()
		<-served
		return nil
	case err := <-served:
		g.Stop()
		return err
	}
}

// Sender is the address that a call comes from.
func Sender(ctx context.Context) (netip.AddrPort, error) {
	if p, ok := peer.FromContext(ctx); ok {
		if from, err := netip.ParseAddrPort(p.Addr.String()); err == nil {
			return from, nil
		}
	}
	return netip.AddrPort{}, status.Error(codes.Internal, "no address of the sender")
}

// Take decodes a message, and returns why not.
func (l *Listener) Take(from netip.AddrPort, data []byte) translate.Refusal {
	at := model.TimeOf(time.Now())
	if l.guard != nil {
		a := from.Addr().Unmap()
		if why := l.guard.Datagram(at, a); why != translate.Admitted {
			l.refused[why].Add(1)
			l.guard.Refused(a, why, 0)
			return why
		}
	}
	used := l.decoder.Decode(at, from, data)
	if l.Tap != nil {
		l.Tap(at, from, l.Addr(), data, used)
	}
	return translate.Admitted
}

// callEnds counts messages that gRPC refuses because of their length, before any method sees
// them.
type callEnds struct{ l *Listener }

func (callEnds) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (callEnds) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (callEnds) HandleConn(context.Context, stats.ConnStats) {}

// HandleRPC is part of stats.Handler.
func (c callEnds) HandleRPC(_ context.Context, s stats.RPCStats) {
	if end, ok := s.(*stats.End); ok && status.Code(end.Error) == codes.ResourceExhausted {
		c.l.CountTooLong()
	}
}

// CountTooLong counts a message that is longer than MaxMessage, of another transport than gRPC.
func (l *Listener) CountTooLong() { l.tooLong.Add(1) }

// Addr is part of source.Listener.
func (l *Listener) Addr() netip.AddrPort {
	a, _ := netip.ParseAddrPort(l.listener.Addr().String())
	return a
}

// Counters is part of source.Listener.
func (l *Listener) Counters() source.Counters {
	c := l.decoder.Counters()
	for _, why := range [...]translate.Refusal{translate.AddressNotAllowed, translate.SourceRateLimit} {
		c.Add(why.String(), l.unit, l.refused[why].Load())
	}
	c.Add("too long", l.unit, l.tooLong.Load())
	c.Add("too many connections", "refused", l.refusedConnections.Load())
	return c
}

// Close is part of source.Listener. Serve has closed what it served.
func (l *Listener) Close() error {
	if err := l.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

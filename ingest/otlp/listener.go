package otlp

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	// Exporters compress requests by gzip if they are asked to.
	_ "google.golang.org/grpc/encoding/gzip"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// Bounds of requests and connections.
const (
	maxRequest     = 4 << 20
	maxConnections = 1024
	maxStreams     = 16 // of a connection
	endTimeout     = time.Second
)

// listener is the sockets of OTLP.
type listener struct {
	decoder source.Decoder
	guard   source.Guard
	grpc    net.Listener
	http    net.Listener // nil: none
	tls     *tls.Config  // nil: none
	tap     source.Tap

	refused                                [translate.Refusals]atomic.Uint64
	tooLong, otherType, refusedConnections atomic.Uint64
}

// listen opens the sockets.
func listen(c *Config, d source.Decoder, g source.Guard) (_ *listener, err error) {
	l := &listener{decoder: d, guard: g}
	if c.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("tls_cert: %w", err)
		}
		l.tls = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	}
	if l.grpc, err = net.Listen("tcp", c.Listen.String()); err != nil {
		return nil, err
	}
	if c.HTTPListen.IsValid() {
		if l.http, err = net.Listen("tcp", c.HTTPListen.String()); err != nil {
			return nil, errors.Join(err, l.grpc.Close())
		}
	}
	return l, nil
}

// Run is part of source.Listener.
func (l *listener) Run(ctx context.Context, tap source.Tap) error {
	l.tap = tap
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxRequest), grpc.MaxConcurrentStreams(maxStreams), grpc.ForceServerCodec(rawCodec{}), grpc.WaitForHandlers(true),
	}
	if l.tls != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(l.tls)))
	}
	g := grpc.NewServer(options...)
	g.RegisterService(&service, l)
	h := &http.Server{Handler: http.HandlerFunc(l.serveHTTP), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, MaxHeaderBytes: 1 << 14}
	var servers sync.WaitGroup
	errs := make(chan error, 2)
	servers.Go(func() { errs <- g.Serve(limitConnections(l.grpc, &l.refusedConnections)) })
	if l.http != nil {
		inner := limitConnections(l.http, &l.refusedConnections)
		if l.tls != nil {
			inner = tls.NewListener(inner, l.tls)
		}
		servers.Go(func() {
			if err := h.Serve(inner); !errors.Is(err, http.ErrServerClosed) {
				errs <- err
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-errs:
	}
	// What was sent before the end is taken, if it comes soon.
	end := time.AfterFunc(endTimeout, g.Stop)
	defer end.Stop()
	g.GracefulStop()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if h.Shutdown(late) != nil {
		h.Close()
	}
	servers.Wait()
	return err
}

// take decodes a request, and returns why not.
func (l *listener) take(from netip.AddrPort, data []byte) translate.Refusal {
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
	if l.tap != nil {
		to, _ := netip.ParseAddrPort(l.grpc.Addr().String())
		l.tap(at, from, to, data, used)
	}
	return translate.Admitted
}

// export is the method Export of the metrics service.
func (l *listener) export(ctx context.Context, data []byte) error {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return status.Error(codes.Internal, "no address of the sender")
	}
	from, err := netip.ParseAddrPort(p.Addr.String())
	if err != nil {
		return status.Error(codes.Internal, "no address of the sender")
	}
	if why := l.take(from, data); why != translate.Admitted {
		return status.Error(codes.PermissionDenied, why.String())
	}
	return nil
}

// serveHTTP takes POST /v1/metrics with a body of protobuf.
func (l *listener) serveHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != "/v1/metrics":
		http.NotFound(w, r)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want POST", http.StatusMethodNotAllowed)
		return
	case r.Header.Get("Content-Type") != "application/x-protobuf":
		l.otherType.Add(1)
		http.Error(w, "want application/x-protobuf", http.StatusUnsupportedMediaType)
		return
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		http.Error(w, "no address of the sender", http.StatusBadRequest)
		return
	}
	data, err := readBody(r)
	switch {
	case errors.Is(err, errTooLong):
		l.tooLong.Add(1)
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if why := l.take(from, data); why != translate.Admitted {
		http.Error(w, why.String(), http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty response
}

var errTooLong = fmt.Errorf("request above %d bytes", maxRequest)

// readBody reads a body, which may be compressed.
func readBody(r *http.Request) ([]byte, error) {
	body := io.Reader(r.Body)
	switch r.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, err
		}
		body = z
	default:
		return nil, errors.New("want gzip, or no compression")
	}
	b, err := io.ReadAll(io.LimitReader(body, maxRequest+1))
	if err == nil && len(b) > maxRequest {
		err = errTooLong
	}
	return b, err
}

// Addr is part of source.Listener.
func (l *listener) Addr() netip.AddrPort {
	a, _ := netip.ParseAddrPort(l.grpc.Addr().String())
	return a
}

// Counters is part of source.Listener.
func (l *listener) Counters() source.Counters {
	c := l.decoder.Counters()
	for _, why := range [...]translate.Refusal{translate.AddressNotAllowed, translate.SourceRateLimit} {
		c.Add(why.String(), "requests", l.refused[why].Load())
	}
	c.Add("too long", "requests", l.tooLong.Load())
	c.Add("other type", "requests that are not protobuf", l.otherType.Load())
	c.Add("too many connections", "refused", l.refusedConnections.Load())
	return c
}

// Close is part of source.Listener. Run has closed what it served.
func (l *listener) Close() error {
	var errs []error
	for _, one := range [...]net.Listener{l.grpc, l.http} {
		if one != nil {
			if err := one.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

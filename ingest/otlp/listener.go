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

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	// Exporters compress requests by gzip if they are asked to.
	_ "google.golang.org/grpc/encoding/gzip"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/grpcsource"
	"github.com/weft-telemetry/weft/ingest/source"
)

// listener is the sockets of OTLP.
type listener struct {
	*grpcsource.Listener
	http      net.Listener // nil: none
	otherType atomic.Uint64
}

// listen opens the sockets.
func listen(c *Config, d source.Decoder, g source.Guard) (_ *listener, err error) {
	l := &listener{}
	if l.Listener, err = grpcsource.Listen(grpcsource.Config{Listen: c.Listen, TLSCert: c.TLSCert, TLSKey: c.TLSKey, Unit: "requests"}, d, g); err != nil {
		return nil, err
	}
	if c.HTTPListen.IsValid() {
		if l.http, err = net.Listen("tcp", c.HTTPListen.String()); err != nil {
			return nil, errors.Join(err, l.Listener.Close())
		}
	}
	return l, nil
}

// Run is part of source.Listener.
func (l *listener) Run(ctx context.Context, tap source.Tap) error {
	l.Tap = tap
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var servers sync.WaitGroup
	var errHTTP error
	if l.http != nil {
		servers.Go(func() {
			defer cancel()
			errHTTP = l.runHTTP(ctx)
		})
	}
	err := l.Serve(ctx, &service, l)
	cancel()
	servers.Wait()
	return errors.Join(err, errHTTP)
}

// runHTTP serves HTTP until ctx ends.
func (l *listener) runHTTP(ctx context.Context) error {
	h := &http.Server{Handler: http.HandlerFunc(l.serveHTTP), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, MaxHeaderBytes: 1 << 14}
	inner := l.LimitConnections(l.http)
	if l.TLS() != nil {
		inner = tls.NewListener(inner, l.TLS())
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(inner) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), grpcsource.EndTimeout)
	defer cancel()
	if h.Shutdown(late) != nil {
		h.Close()
	}
	<-served
	return nil
}

// export is the method Export of the metrics service.
func (l *listener) export(ctx context.Context, data []byte) error {
	from, err := grpcsource.Sender(ctx)
	if err != nil {
		return err
	}
	if why := l.Take(from, data); why != translate.Admitted {
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
		l.CountTooLong()
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if why := l.Take(from, data); why != translate.Admitted {
		http.Error(w, why.String(), http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty response
}

var errTooLong = fmt.Errorf("request above %d bytes", grpcsource.MaxMessage)

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
	b, err := io.ReadAll(io.LimitReader(body, grpcsource.MaxMessage+1))
	if err == nil && len(b) > grpcsource.MaxMessage {
		err = errTooLong
	}
	return b, err
}

// Counters is part of source.Listener.
func (l *listener) Counters() source.Counters {
	c := l.Listener.Counters()
	c.Add("other type", "requests that are not protobuf", l.otherType.Load())
	return c
}

// Close is part of source.Listener. Run has closed what it served.
func (l *listener) Close() error {
	err := l.Listener.Close()
	if l.http != nil {
		if e := l.http.Close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

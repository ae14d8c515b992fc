package gnmi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// target is a switch to dial.
type target struct {
	name, address string
	node          *node
}

// client is the Listener of gNMI: it dials all targets.
type client struct {
	cfg      *Config
	decoder  source.Decoder
	inner    *decoder
	dial     []grpc.DialOption
	user     []string // metadata
	firstTry time.Duration

	failures, disconnects, silences atomic.Uint64
}

// Times of connections. A failed one is tried again after firstTry, then after twice
// the time each, up to lastTry; half of it is random, so that targets that
// fail together do not come back together.
const (
	firstTry = time.Second
	lastTry  = time.Minute
	// minSilence is how long a stream may be silent, at least, before it is dialed anew.
	minSilence = 10 * time.Second
	// maxMessage is the longest message: a table of a switch with 1024 ports.
	maxMessage = 16 << 20
)

// newClient reads certificates and the password.
func newClient(c *Config, d source.Decoder) (*client, error) {
	inner, ok := source.Unprotected(d).(*decoder)
	if !ok {
		return nil, fmt.Errorf("gnmi: decoder is a %T, want that of NewDecoder", d)
	}
	l := &client{cfg: c, decoder: d, inner: inner, firstTry: firstTry}
	creds, err := c.credentials()
	if err != nil {
		return nil, err
	}
	if l.user, err = c.user(); err != nil {
		return nil, err
	}
	l.dial = []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.ForceCodec(rawCodec{})),
	}
	return l, nil
}

// user is the metadata of the user's name and password; empty: none.
func (c *Config) user() ([]string, error) {
	if c.PasswordFile == "" {
		return nil, nil
	}
	b, err := os.ReadFile(c.PasswordFile)
	if err != nil {
		return nil, fmt.Errorf("gnmi.password_file: %w", err)
	}
	return []string{"username", c.Username, "password", strings.TrimRight(string(b), "\r\n")}, nil
}

// credentials are those of the configuration's tls.
func (c *Config) credentials() (credentials.TransportCredentials, error) {
	if c.TLS == TLSOff {
		return insecure.NewCredentials(), nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.TLS == TLSSkip}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("gnmi.ca: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, source.Errorf("gnmi.ca", "%s has no certificate, want PEM", c.CA)
		}
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("gnmi.cert: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(t), nil
}

// Run is part of source.Listener.
func (l *client) Run(ctx context.Context, tap source.Tap) error {
	var all sync.WaitGroup
	for i := range l.inner.targets {
		all.Go(func() { l.follow(ctx, &l.inner.targets[i], tap) })
	}
	all.Wait()
	return nil
}

// follow keeps the stream of a target open until ctx ends.
func (l *client) follow(ctx context.Context, t *target, tap source.Tap) {
	wait := l.firstTry
	for {
		received, err := l.stream(ctx, t, tap)
		if ctx.Err() != nil {
			return
		}
		if received {
			wait = l.firstTry
			l.disconnects.Add(1)
		} else if err != nil {
			l.failures.Add(1)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait/2 + rand.N(wait/2+1)):
		}
		wait = min(2*wait, max(lastTry, l.firstTry))
	}
}

// stream subscribes to a target and takes what it sends, and reports whether it sent
// anything.
func (l *client) stream(ctx context.Context, t *target, tap source.Tap) (received bool, err error) {
	conn, err := grpc.NewClient("passthrough:///"+t.address, l.dial...)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A dial, and later a silence, that lasts too long ends the stream.
	silence := max(minSilence, 5*l.cfg.Interval)
	watch := time.AfterFunc(silence, func() {
		l.silences.Add(1)
		cancel()
	})
	defer watch.Stop()
	if l.user != nil {
		ctx = metadata.AppendToOutgoingContext(ctx, l.user...)
	}
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/gnmi.gNMI/Subscribe")
	if err != nil {
		return false, err
	}
	if err := s.SendMsg(l.cfg.subscription(t.node.sw)); err != nil {
		return false, err
	}
	from := addressOf(s.Context(), t)
	var m rawMessage
	for {
		if err := s.RecvMsg(&m); err != nil {
			return received, err
		}
		watch.Reset(silence)
		received = true
		at := model.TimeOf(time.Now())
		used := l.take(at, t, from, m.data)
		if tap != nil {
			tap(at, from, from, m.data, used)
		}
	}
}

// take decodes a message of a target, whatever its address is.
func (l *client) take(at model.Time, t *target, from netip.AddrPort, data []byte) bool {
	if _, known := l.inner.byTarget[from]; known {
		return l.decoder.Decode(at, from, data) // protected
	}
	return l.inner.decode(at, t.node, data) // a target by its DNS name
}

// addressOf is a target's address, as a recording has it.
func addressOf(ctx context.Context, t *target) netip.AddrPort {
	if a, err := netip.ParseAddrPort(t.address); err == nil {
		return a
	}
	if p, ok := peer.FromContext(ctx); ok {
		if a, err := netip.ParseAddrPort(p.Addr.String()); err == nil {
			return a
		}
	}
	return netip.AddrPort{}
}

// Addr is part of source.Listener. There is no address to send to.
func (l *client) Addr() netip.AddrPort { return netip.AddrPort{} }

// Counters is part of source.Listener.
func (l *client) Counters() source.Counters {
	c := l.decoder.Counters()
	c.Add("connection failed", "attempts that got no answer; they are repeated", l.failures.Load())
	c.Add("disconnected", "streams that ended; they are opened again", l.disconnects.Load())
	c.Add("silent", "streams that sent nothing for too long", l.silences.Load())
	return c
}

// Close is part of source.Listener.
func (l *client) Close() error { return nil }

// rawCodec leaves received messages as they are: they are decoded once, and
// recorded as they came.
type rawCodec struct{}

type rawMessage struct{ data []byte }

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, errors.New("gnmi: not a message")
	}
	return proto.Marshal(m)
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	m, ok := v.(*rawMessage)
	if !ok {
		return errors.New("gnmi: not a raw message")
	}
	m.data = append(m.data[:0], data...)
	return nil
}

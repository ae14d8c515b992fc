package grpcsource

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// texts is a source of one method with an answer to each message, and one that takes a stream.
type texts struct {
	l       *Listener
	entered chan struct{} // a stream was opened
}

type taker interface {
	take(ctx context.Context, m *Message) error
	stream(s grpc.ServerStream) error
}

var textService = grpc.ServiceDesc{
	ServiceName: "test.Texts", HandlerType: (*taker)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Take", Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var m Message
		if err := decode(&m); err != nil {
			return nil, err
		}
		return &Message{Data: []byte("taken")}, srv.(taker).take(ctx, &m)
	}}},
	Streams: []grpc.StreamDesc{{StreamName: "Stream", ClientStreams: true, Handler: func(srv any, s grpc.ServerStream) error { return srv.(taker).stream(s) }}},
}

func (s *texts) take(ctx context.Context, m *Message) error {
	from, err := Sender(ctx)
	if err != nil {
		return err
	}
	if why := s.l.Take(from, m.Data); why != translate.Admitted {
		return status.Error(codes.PermissionDenied, why.String())
	}
	return nil
}

func (s *texts) stream(stream grpc.ServerStream) error {
	s.entered <- struct{}{}
	var m Message
	for {
		if err := stream.RecvMsg(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.take(stream.Context(), &m); err != nil {
			return err
		}
	}
}

// notebook is a decoder that keeps texts; those that begin with ! are of no use.
type notebook struct {
	mu   sync.Mutex
	seen []string
}

func (n *notebook) Decode(_ model.Time, _ netip.AddrPort, data []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen = append(n.seen, string(data))
	return !strings.HasPrefix(string(data), "!")
}

func (n *notebook) Counters() source.Counters {
	n.mu.Lock()
	defer n.mu.Unlock()
	return source.Counters{Unit: "requests", In: uint64(len(n.seen)), Out: uint64(len(n.seen))}
}

// doorkeeper refuses senders while it is told to.
type doorkeeper struct {
	mu      sync.Mutex
	why     translate.Refusal
	refused []translate.Refusal
}

func (d *doorkeeper) Datagram(model.Time, netip.Addr) translate.Refusal {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.why
}

func (d *doorkeeper) Refused(_ netip.Addr, why translate.Refusal, _ int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused = append(d.refused, why)
}

// bench is a socket that serves, and a client of it.
type bench struct {
	t      *testing.T
	l      *Listener
	source *texts
	seen   *notebook
	guard  *doorkeeper
	client *grpc.ClientConn
	stop   context.CancelFunc
	ended  chan error
	tapped chan bool // whether each message was of use
}

func newBench(t *testing.T, grace time.Duration) *bench {
	t.Helper()
	b := &bench{t: t, seen: &notebook{}, guard: &doorkeeper{}, ended: make(chan error, 1), tapped: make(chan bool, 100)}
	var err error
	if b.l, err = Listen(Config{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Unit: "requests"}, b.seen, b.guard); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.l.Close() })
	b.l.grace = grace
	b.l.Tap = func(_ model.Time, from, to netip.AddrPort, _ []byte, used bool) {
		if !from.Addr().IsLoopback() || to != b.l.Addr() {
			t.Errorf("a message from %v to %v; want one of this host to %v", from, to, b.l.Addr())
		}
		b.tapped <- used
	}
	b.source = &texts{l: b.l, entered: make(chan struct{}, 10)}
	var ctx context.Context
	ctx, b.stop = context.WithCancel(t.Context())
	go func() { b.ended <- b.l.Serve(ctx, &textService, b.source) }()
	b.client = b.dial()
	return b
}

func (b *bench) dial() *grpc.ClientConn {
	b.t.Helper()
	c, err := grpc.NewClient(b.l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.WaitForReady(true)))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	return c
}

func (b *bench) send(text string) error {
	var answer Message
	if err := b.client.Invoke(b.t.Context(), "/test.Texts/Take", &Message{Data: []byte(text)}, &answer); err != nil {
		return err
	}
	if string(answer.Data) != "taken" {
		b.t.Errorf("the answer to %q is %q; want taken", text, answer.Data)
	}
	return nil
}

func (b *bench) open() grpc.ClientStream {
	b.t.Helper()
	s, err := b.client.NewStream(b.t.Context(), &textService.Streams[0], "/test.Texts/Stream")
	if err != nil {
		b.t.Fatal(err)
	}
	<-b.source.entered
	return s
}

// lost is a counter of the listener.
func (b *bench) lost(reason string) uint64 {
	for _, l := range b.l.Counters().Losses {
		if l.Reason == reason {
			return l.Count
		}
	}
	b.t.Fatalf("no counter %q of %+v", reason, b.l.Counters().Losses)
	return 0
}

// await waits until a counter has a value: calls end after their answers.
func (b *bench) await(reason string, want uint64) {
	b.t.Helper()
	for b.lost(reason) != want {
		select {
		case <-b.t.Context().Done():
			b.t.Fatalf("%q counts %d; want %d", reason, b.lost(reason), want)
		case <-time.After(time.Millisecond):
		}
	}
}

// TestMessagesStayAsTheyCame: messages of a call and of a stream reach decoder and tap as they
// were sent, and what the guard refuses reaches neither.
func TestMessagesStayAsTheyCame(t *testing.T) {
	b := newBench(t, EndTimeout)
	for _, text := range []string{"one", "!two", ""} {
		if err := b.send(text); err != nil {
			t.Fatal(err)
		}
	}
	s := b.open()
	for _, text := range []string{"a longer one", "3"} { // the memory of the first is used again
		if err := s.SendMsg(&Message{Data: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []bool{true, false, true, true, true} {
		if got := <-b.tapped; got != want {
			t.Errorf("message %d of use: %v; want %v", i, got, want)
		}
	}
	b.guard.mu.Lock()
	b.guard.why = translate.AddressNotAllowed
	b.guard.mu.Unlock()
	if err := b.send("refused"); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a sender that is not allowed is answered %v; want %v", err, codes.PermissionDenied)
	}
	if n := b.lost(translate.AddressNotAllowed.String()); n != 1 || !slices.Equal(b.guard.refused, []translate.Refusal{translate.AddressNotAllowed}) {
		t.Errorf("%d counted, %v told to the guard; want one of each", n, b.guard.refused)
	}
	if want := []string{"one", "!two", "", "a longer one", "3"}; !slices.Equal(b.seen.seen, want) {
		t.Errorf("decoded %q; want %q", b.seen.seen, want)
	}
	if c := b.l.Counters(); c.In != 5 || c.Unit != "requests" {
		t.Errorf("counters %+v; want the decoder's", c)
	}
}

// TestMessageTooLong: a message beyond the bound is refused with its code, before any method
// sees it, and counted; the longest is taken.
func TestMessageTooLong(t *testing.T) {
	b := newBench(t, EndTimeout)
	if err := b.send(strings.Repeat("x", MaxMessage)); err != nil {
		t.Fatalf("a message of %d bytes: %v; want it taken", MaxMessage, err)
	}
	long := strings.Repeat("x", MaxMessage+1)
	if err := b.send(long); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message of %d bytes: %v; want %v", len(long), err, codes.ResourceExhausted)
	}
	b.await("too long", 1)
	s := b.open()
	if err := s.SendMsg(&Message{Data: []byte(long)}); err != nil {
		t.Fatal(err)
	}
	if err := s.RecvMsg(&Message{}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message of %d bytes in a stream: %v; want %v", len(long), err, codes.ResourceExhausted)
	}
	b.await("too long", 2)
	if len(b.seen.seen) != 1 {
		t.Errorf("%d messages decoded; want the first alone", len(b.seen.seen))
	}
}

// TestStreamsAreBounded: a connection has so many streams, and another waits for one of them.
func TestStreamsAreBounded(t *testing.T) {
	b := newBench(t, EndTimeout)
	if err := b.send("the client knows the bound"); err != nil {
		t.Fatal(err)
	}
	var open []grpc.ClientStream
	for range maxStreams {
		open = append(open, b.open())
	}
	more := make(chan error, 1)
	go func() { more <- b.send("one more") }()
	// The server answers others in the meantime, over another connection.
	other := b.dial()
	for range 50 {
		if err := other.Invoke(t.Context(), "/test.Texts/Take", &Message{Data: []byte("other")}, &Message{}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-more:
		t.Fatalf("a call beside %d streams ended with %v; want it to wait", maxStreams, err)
	default:
	}
	if err := open[0].CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := <-more; err != nil {
		t.Errorf("a call after a stream has ended: %v; want it answered", err)
	}
}

// TestEndTakesWhatWasSent: a stream that is open when the context of Serve ends is read to its
// end, and no new one is taken.
func TestEndTakesWhatWasSent(t *testing.T) {
	b := newBench(t, time.Hour)
	s := b.open()
	b.stop()
	for { // until the client knows
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := b.client.Invoke(ctx, "/test.Texts/Take", &Message{Data: []byte("!new")}, &Message{}, grpc.WaitForReady(false))
		cancel()
		if err != nil {
			break
		}
	}
	if err := s.SendMsg(&Message{Data: []byte("sent at the end")}); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := <-b.ended; err != nil {
		t.Errorf("Serve = %v; want nil at the end of its context", err)
	}
	if n := len(b.seen.seen); n == 0 || b.seen.seen[n-1] != "sent at the end" {
		t.Errorf("decoded %q; want the message of the open stream last", b.seen.seen)
	}
	if err := b.l.Close(); err != nil {
		t.Errorf("Close after Serve = %v; want nil", err)
	}
}

// TestEndWaitsForNobodyForever: a stream that does not end by itself is closed.
func TestEndWaitsForNobodyForever(t *testing.T) {
	b := newBench(t, time.Millisecond)
	s := b.open()
	b.stop()
	if err := <-b.ended; err != nil {
		t.Errorf("Serve = %v; want nil at the end of its context", err)
	}
	if err := s.RecvMsg(&Message{}); err == nil {
		t.Error("a stream goes on after Serve; want it closed")
	}
}

// TestListenNamesWhatIsWrong with a certificate and with an address.
func TestListenNamesWhatIsWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cert.pem")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	local := netip.MustParseAddrPort("127.0.0.1:0")
	if _, err := Listen(Config{Listen: local, TLSCert: file, TLSKey: file}, &notebook{}, nil); err == nil || !strings.HasPrefix(err.Error(), "tls_cert: ") {
		t.Errorf("a file that is no certificate: %v; want an error of tls_cert", err)
	}
	l, err := Listen(Config{Listen: local}, &notebook{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Listen(Config{Listen: l.Addr()}, &notebook{}, nil); err == nil {
		t.Errorf("a second listener at %v: no error; want that the address is in use", l.Addr())
	}
}

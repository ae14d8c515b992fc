package gnmi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	gnmipb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/grpcsource"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// doorkeeper admits one number of messages, then refuses for a reason.
type doorkeeper struct {
	admits int
	why    translate.Refusal
}

func (g *doorkeeper) Datagram(model.Time, netip.Addr) translate.Refusal {
	if g.admits--; g.admits >= 0 {
		return translate.Admitted
	}
	return g.why
}

func (g *doorkeeper) Refused(netip.Addr, translate.Refusal, int) {}

// startDialOut listens with TLS for a switch that sends from an address, and returns a stream of a client that
// publishes as SONiC's does: it shows no certificate of its own.
func startDialOut(t *testing.T, from string, g source.Guard) (l source.Listener, readings chan portstat.Reading, taps chan bool, stream grpc.ClientStream) {
	t.Helper()
	pair, ca, _ := certificate(t)
	c := DialOut.NewConfig().(*DialOutConfig)
	c.Listen, c.TLSCert, c.TLSKey = netip.MustParseAddrPort("127.0.0.1:0"), ca, filepath.Join(t.TempDir(), "key.pem")
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.TLSKey, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	readings, taps = make(chan portstat.Reading, 100), make(chan bool, 100)
	d, err := c.NewDecoder(fabricAt(t, from), source.Output{Reading: func(r *portstat.Reading) { readings <- *r }})
	if err != nil {
		t.Fatal(err)
	}
	if l, err = c.OpenSocket(d, g); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- l.Run(ctx, func(_ model.Time, _, _ netip.AddrPort, _ []byte, used bool) { taps <- used })
	}()
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		cancel()
		if err := errors.Join(<-ended, l.Close()); err != nil {
			t.Error(err)
		}
	})
	stream, err = conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/gnmi.sonic.gNMIDialOut/Publish", grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	return l, readings, taps, stream
}

// published is a message of COUNTERS/Ethernet4 in which the port has received some octets.
func published(t *testing.T, at time.Time, octets int) *gnmipb.SubscribeResponse {
	t.Helper()
	body, err := json.Marshal(map[string]string{
		"SAI_PORT_STAT_IF_IN_OCTETS": fmt.Sprint(octets), "SAI_PORT_STAT_IF_OUT_OCTETS": "0", "SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US": fmt.Sprint(octets / 10),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &gnmipb.SubscribeResponse{Response: &gnmipb.SubscribeResponse_Update{Update: &gnmipb.Notification{
		Timestamp: at.UnixNano(), Prefix: &gnmipb.Path{Target: "COUNTERS_DB"},
		Update: []*gnmipb.Update{{Path: elements("COUNTERS", "Ethernet4"), Val: &gnmipb.TypedValue{Value: &gnmipb.TypedValue_JsonIetfVal{JsonIetfVal: body}}}},
	}}}
}

// TestDialOut: what a switch publishes becomes readings, and is tapped.
func TestDialOut(t *testing.T) {
	l, readings, taps, stream := startDialOut(t, "127.0.0.1", nil)
	at := time.Now()
	for i := range 3 {
		if err := stream.SendMsg(published(t, at.Add(time.Duration(i)*time.Second), 1000*i)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		r := <-readings
		if r.Port != (model.Port{Node: 5, Port: 2}) || r.RxBytes != 1000 || r.Class[3].RxPaused != 100*time.Microsecond || r.Interval() != time.Second || r.Source != portstat.GNMI {
			t.Errorf("reading %+v; want 1000 bytes and 100µs paused of Ethernet4 in a second", r)
		}
	}
	for range 3 {
		if !<-taps {
			t.Error("a message was of no use; want all used")
		}
	}
	if c := l.Counters(); c.In != 3 || c.Out != 3 {
		t.Errorf("%d updates, %d used; want 3 and 3", c.In, c.Out)
	}
}

// TestDialOutOfStrangers: a stream from no switch's address is read and counted; what the guard does not
// allow ends the stream, and what is too much is dropped.
func TestDialOutOfStrangers(t *testing.T) {
	l, _, taps, stream := startDialOut(t, "10.0.0.5", nil)
	if err := stream.SendMsg(published(t, time.Now(), 1)); err != nil {
		t.Fatal(err)
	}
	if <-taps || lost(l, "unknown target") != 1 {
		t.Errorf("%d messages of unknown targets; want 1, of no use", lost(l, "unknown target"))
	}

	l, _, _, stream = startDialOut(t, "127.0.0.1", &doorkeeper{why: translate.AddressNotAllowed})
	if err := stream.SendMsg(published(t, time.Now(), 1)); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(&gnmipb.SubscribeResponse{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a sender that is not allowed got %v; want %v", err, codes.PermissionDenied)
	}
	if n := lost(l, translate.AddressNotAllowed.String()); n != 1 {
		t.Errorf("%d messages not allowed; want 1", n)
	}

	l, _, taps, stream = startDialOut(t, "127.0.0.1", &doorkeeper{admits: 1, why: translate.SourceRateLimit})
	for i := range 3 {
		if err := stream.SendMsg(published(t, time.Now(), i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(&gnmipb.SubscribeResponse{}); !errors.Is(err, io.EOF) {
		t.Errorf("a sender above its rate got %v; want the end of its stream", err)
	}
	if n := lost(l, translate.SourceRateLimit.String()); n != 2 || !<-taps {
		t.Errorf("%d messages above the rate; want 2 of 3", n)
	}
}

// TestDialOutBounds: a message that is too long ends its stream, and one that is no message is counted.
func TestDialOutBounds(t *testing.T) {
	l, _, _, stream := startDialOut(t, "127.0.0.1", nil)
	long := &gnmipb.SubscribeResponse{Response: &gnmipb.SubscribeResponse_Update{Update: &gnmipb.Notification{
		Update: []*gnmipb.Update{{Val: &gnmipb.TypedValue{Value: &gnmipb.TypedValue_JsonIetfVal{JsonIetfVal: make([]byte, grpcsource.MaxMessage+1)}}}},
	}}}
	if err := stream.SendMsg(long); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(&gnmipb.SubscribeResponse{}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message of %d bytes: %v; want %v", grpcsource.MaxMessage, err, codes.ResourceExhausted)
	}
	for lost(l, "too long") != 1 { // its call ends after the answer
		if t.Context().Err() != nil {
			t.Fatal("a message that is too long is not counted")
		}
		time.Sleep(time.Millisecond)
	}
	c := DialOut.NewConfig().(*DialOutConfig)
	c.TLSCert = "cert.pem"
	if err := c.Check(); err == nil {
		t.Error("a certificate without a key: no error; want one")
	}
}

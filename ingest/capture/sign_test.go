package capture_test

import (
	"bytes"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// TestSendSignsForReporters: reports of a reporter with a key are sent with a MAC
// of now, whatever they were recorded with; others as they are.
func TestSendSignsForReporters(t *testing.T) {
	pack := func(reporter model.NodeID) []byte {
		w := dta.NewWriter(reporter, 7)
		w.Begin(make([]byte, 200))
		if err := w.AddReport(&dta.Report{Primitive: dta.Append, List: 3, Data: []byte("data")}); err != nil {
			t.Fatal(err)
		}
		return w.Finish()
	}
	key := dta.NewMAC(2, []byte("the key of reporter 1, 32 bytes."))
	stale, err := dta.NewMAC(1, []byte("the key of another year ago.....")).AppendSigned(nil, pack(1), 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	cfg := capture.DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "reports.pcapng")
	var list []seen
	for i, datagram := range [][]byte{pack(1), stale, pack(2), []byte("no report")} {
		list = append(list, seen{model.Time(i), "dta", "10.0.0.7:1", "10.0.0.1:2", string(datagram)})
	}
	record(t, cfg, list)
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, err := capture.Open(capture.Ports{}, capture.Input{Path: cfg.Path})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	began := model.TimeOf(time.Now())
	if _, err := capture.Send(t.Context(), r, capture.SendConfig{
		To: map[source.Kind]netip.AddrPort{"dta": conn.LocalAddr().(*net.UDPAddr).AddrPort()},
		Key: func(reporter model.NodeID) *dta.MAC {
			if reporter == 1 {
				return key
			}
			return nil
		},
	}); err != nil {
		t.Fatal(err)
	}
	var last model.Time
	for i, recorded := range list {
		b := make([]byte, 2000)
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		if b = b[:n]; i >= 2 {
			if !bytes.Equal(b, []byte(recorded.payload)) {
				t.Errorf("datagram %d without a key: %x; want %x", i, b, recorded.payload)
			}
			continue
		}
		var h dta.Header
		if _, err := h.Parse(b); err != nil || !key.Verify(b) || !h.Signed || h.KeyID != 2 || h.Seq != 7 || h.Reporter != 1 {
			t.Errorf("datagram %d: %+v, %v, MAC %v; want number 7 of reporter 1, signed with key 2", i, h, err, key.Verify(b))
		}
		if h.Start < began || h.Sent < h.Start || h.Sent <= last {
			t.Errorf("datagram %d: start %v, sent %v; want both after %v, and sent after %v", i, h.Start, h.Sent, began, last)
		}
		last = h.Sent
	}
}

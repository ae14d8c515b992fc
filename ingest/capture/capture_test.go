package capture_test

import (
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/pcap"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// TestWhatIsWrittenIsRead writes datagrams of both families and reads them as
// the packets they claim to be.
func TestWhatIsWrittenIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports.pcapng")
	w, err := capture.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	ends := [][2]string{{"10.0.0.7:40041", "192.0.2.1:40040"}, {"[2001:db8::7]:40041", "[2001:db8::1]:40040"}}
	for i, e := range ends {
		w.Datagram(model.Time(1e18+int64(i)), netip.MustParseAddrPort(e[0]), netip.MustParseAddrPort(e[1]), []byte{byte(i), 2, 3})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcap.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range ends {
		var got pcap.Packet
		if err := r.Next(&got); err != nil {
			t.Fatal(err)
		}
		var p packet.Packet
		if err := p.ParseIP(got.Data); err != nil {
			t.Fatal(err)
		}
		want := model.NewFlowKey(netip.MustParseAddrPort(e[0]), netip.MustParseAddrPort(e[1]), model.UDP)
		if p.Outer.Key != want || got.Time != model.Time(1e18+int64(i)) || got.Link != pcap.Raw {
			t.Errorf("read %v at %v on link %d; want %v", p.Outer.Key, got.Time, got.Link, want)
		}
		if n := len(got.Data); got.Data[n-3] != byte(i) || got.Data[n-1] != 3 {
			t.Errorf("payload ends in % x", got.Data[n-3:])
		}
	}
	var more pcap.Packet
	if err := r.Next(&more); err != io.EOF {
		t.Errorf("after the last packet %v, want the end", err)
	}
}

// TestAFileThatCannotBe names the path.
func TestAFileThatCannotBe(t *testing.T) {
	if _, err := capture.Create(filepath.Join(t.TempDir(), "no", "such")); err == nil {
		t.Error("a file in a folder that is not there was made")
	}
}

package serve

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/intreport"
)

// TestReplayTakesAllKinds: INT reports make ports' states, ERSPAN mirrors and
// plain packets of two switches make one trace.
func TestReplayTakesAllKinds(t *testing.T) {
	cfg := testConfig(t)
	f, err := readFabric(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	fabric := f.doc.Fabric
	hosts := fabric.Hosts()
	tor := fabric.Node(hosts[0]).Ports[0].Peer.Node
	other := fabric.Node(hosts[2]).Ports[0].Peer.Node
	packet := frame(fabric, hosts[0], hosts[2], 1000, 7)

	packet[tosAt] = 1 << 2 // the debug mark, for which a trace is kept
	reports := capture.DefaultConfig()
	reports.Path = filepath.Join(t.TempDir(), "reports.pcapng")
	r, err := capture.NewRecorder(reports, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	at := model.TimeOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	here := netip.MustParseAddrPort("192.0.2.1:9")
	for i := range 100 {
		rep := intreport.Report{Type: intreport.INT}
		rep.Metadata = intreport.Metadata{Bits: intreport.BitPorts | intreport.BitQueue, Ingress: 1, Egress: 2, QueueDepth: 4242}
		rep.IngressTime = uint64(at) + uint64(i)*5e6
		b := rep.AppendTo(intreport.Group{Node: uint32(tor), Seq: uint32(i)}.AppendTo(nil))
		r.RecordDatagram("int", true, at+model.Time(i)*5e6, netip.MustParseAddrPort("192.0.2.2:9"), here, b)
		if i == 0 {
			gre := append([]byte{0, 0, 0x88, 0xbe}, packet...) // type I
			r.RecordDatagram("erspan", true, at+1e6, netip.AddrPortFrom(fabric.Node(tor).IPv4.Netip(), 0), here, gre)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	// A switch further on saw it, too, and mirrored it as it was.
	span := filepath.Join(t.TempDir(), "span.pcap")
	file, err := os.Create(span)
	if err != nil {
		t.Fatal(err)
	}
	w := pcapgo.NewWriterNanos(file)
	if err := w.WriteFileHeader(1<<16, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	packet[ttlAt]--
	if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(0, int64(at+2e6)), CaptureLength: len(packet), Length: len(packet)}, packet); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	path, found := replayed(t, cfg, capture.Input{Path: reports.Path}, capture.Input{Path: span, Switch: fabric.Node(other).Name})
	want := map[string]uint64{"int": 100, "erspan": 1, "span": 1, "dta": 0, "other": 0, "rejected": 0}
	for kind, n := range want {
		if found.Reports[kind] != n {
			t.Errorf("%d reports of kind %s; want %d", found.Reports[kind], kind, n)
		}
	}
	if found.Ports != 1 {
		t.Errorf("%d ports; want the one of which INT reports tell", found.Ports)
	}
	traces := readStore(t, path).traces
	if ways := fabric.Node(tor).Name + ".*" + fabric.Node(other).Name; len(traces) != 1 || !regexp.MustCompile(ways).MatchString(traces[0]) {
		t.Errorf("traces %q; want one of %s", traces, ways)
	}
}

// Where the headers of frame have type of service and time to live.
const (
	tosAt = 14 + 1
	ttlAt = 14 + 8
)

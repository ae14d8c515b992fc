package rocev2

import (
	"bytes"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/cm"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/roce"
)

// TestTsharkReadsCM lets tshark dissect a message of each kind: nothing malformed,
// and every field where the standard has it.
func TestTsharkReadsCM(t *testing.T) {
	a, b := netip.MustParseAddrPort("10.0.0.1:4791"), netip.MustParseAddrPort("10.0.0.2:4791")
	ids := cm.CommIDs{Local: 0x01020304, Remote: 0x05060708}
	var file bytes.Buffer
	w, err := pcapgo.NewNgWriter(&file, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	for i, body := range []cm.Body{
		&cm.REQ{
			LocalCommID: 7, ServiceID: cm.ServiceID(1337), LocalQPN: 0x11b9, StartingPSN: 0xe6fb20, Responder: 3, Initiator: 4,
			RemoteTimeout: 22, LocalTimeout: 21, Retries: 7, RNRRetries: 6, MaxCMRetries: 15, PKey: roce.DefaultPKey, MTU: 1024,
			AckTimeout: 19, HopLimit: 64, Local: a.Addr(), Remote: b.Addr(), SourcePort: 53369, Source: a.Addr(), Target: b.Addr(),
		},
		&cm.REP{CommIDs: ids, LocalQPN: 0xabcdef, StartingPSN: 0x123456, Responder: 5, Initiator: 6, RNRRetries: 7},
		&cm.RTU{CommIDs: ids},
		&cm.REJ{CommIDs: ids, Message: 1, Reason: cm.ConsumerReject},
		&cm.DREQ{CommIDs: ids, RemoteQPN: 0xfedcba},
		&cm.DREP{CommIDs: ids},
	} {
		payload := appendCM(nil, rdma.Path{Src: a, Dst: b}, roce.PSN(i), cm.Message{Transaction: 99, Body: body})
		f := packet.Ethernet{Dst: model.MAC{2, 0, 0, 0, 0, 2}, Src: model.MAC{2, 0, 0, 0, 0, 1}, Type: packet.TypeIPv4}.AppendTo(nil)
		length := uint16(packet.UDPSize + len(payload))
		ip := packet.IPv4{
			Length: packet.IPv4Size + length, Flags: packet.DontFragment, TTL: 64, Proto: model.UDP, Src: 0x0a000001, Dst: 0x0a000002,
		}
		ip.Checksum = ip.Sum()
		f = packet.UDP{SrcPort: roce.Port, DstPort: roce.Port, Length: length}.AppendTo(ip.AppendTo(f))
		f = append(f, payload...)
		if err := w.WritePacket(gopacket.CaptureInfo{CaptureLength: len(f), Length: len(f)}, f); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(t.TempDir(), "cm.pcapng")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-r", name, "-T", "fields", "-E", "separator=|"}
	for _, field := range []string{
		"_ws.malformed", "_ws.expert.message", "infiniband.mad.attributeid",
		"infiniband.cm.req.serviceid.dport", "infiniband.cm.req.localqpn", "infiniband.cm.req.startpsn", "infiniband.cm.req.responderres",
		"infiniband.cm.req.initdepth", "infiniband.cm.req.remoteresptout", "infiniband.cm.req.localresptout", "infiniband.cm.req.retrcount",
		"infiniband.cm.req.rnrretrcount", "infiniband.cm.req.maxcmretr", "infiniband.cm.req.pppmtu", "infiniband.cm.req.prim_localacktout",
		"infiniband.cm.req.prim_hoplim", "infiniband.cm.req.ip_cm.sport", "infiniband.cm.req.ip_cm.sip4", "infiniband.cm.req.ip_cm.dip4",
		"infiniband.cm.rep.localqpn", "infiniband.cm.rep.startpsn", "infiniband.cm.rep.respres", "infiniband.cm.rep.rnrretrcount",
		"infiniband.cm.rtu.remotecommid", "infiniband.cm.rej.reason", "infiniband.cm.req.remoteqpneecn", "infiniband.cm.drsp.localcommid",
	} {
		args = append(args, "-e", field)
	}
	cmd := exec.Command("tshark", args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimLeft(tsharkCM, "\n")
	if string(out) != want {
		t.Errorf("tshark reads\n%swant\n%s", out, want)
	}
}

const tsharkCM = `
||0x0010|0x0539|0x0011b9|0xe6fb20|0x03|0x04|0x16|0x15|0x07|0x06|0x0f|0x03|0x13|0x40|0xd079|10.0.0.1|10.0.0.2||||||||
||0x0013|||||||||||||||||0xabcdef|0x123456|0x05|0x07||||
||0x0014|||||||||||||||||||||0x05060708|||
||0x0012||||||||||||||||||||||0x001c||
||0x0015|||||||||||||||||||||||0xfedcba|
||0x0016||||||||||||||||||||||||0x01020304
`

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/wire/erspan"
	"github.com/weft-telemetry/weft/wire/gre"
	"github.com/weft-telemetry/weft/wire/packet"
)

// captureMirrors writes what the switches of a topology would mirror of a
// hundred TCP packets, each maker's kind by turns; one spine loses every second
// packet.
func captureMirrors(t *testing.T, topology, to string) {
	t.Helper()
	doc, err := file.Read(topology)
	if err != nil {
		t.Fatal(err)
	}
	routes, err := doc.Routes()
	if err != nil {
		t.Fatal(err)
	}
	f := doc.Fabric
	key := model.FlowKey{Src: f.Node(0).IPv4, Dst: f.Node(15).IPv4, SrcPort: 4000, DstPort: 80, Proto: model.TCP}
	path, err := routes.Path(key, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := pcapgo.NewWriter(&b)
	if err := w.WriteFileHeader(65535, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	seqs := map[model.NodeID]uint32{}
	for n := range 100 {
		for i, hop := range path[1 : len(path)-1] {
			if n%2 == 0 && i > 2 {
				break // the third switch, a spine, lost it
			}
			ip := packet.IPv4{
				Length: 1486, ID: uint16(n), TTL: uint8(64 - i), Proto: model.TCP, Src: key.Src.V4(),
				Dst: key.Dst.V4(),
			}
			inside := ip.AppendTo(packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil))
			inside = append(packet.TCP{
				SrcPort: key.SrcPort, DstPort: key.DstPort, Seq: uint32(n),
				Flags: uint16(packet.ACK),
			}.AppendTo(inside), make([]byte, 40)...)
			m := erspan.Mirror{
				Kind: []erspan.Kind{erspan.TypeI, erspan.TypeII, erspan.Mellanox}[i%3],
				GRE:  gre.Header{Seq: seqs[hop.Node]}, Index: uint32(hop.In), Frame: inside,
			}
			seqs[hop.Node]++
			body := m.AppendTo(nil)
			outer := packet.IPv4{
				TOS: 8 << 2, Length: uint16(20 + len(body)), TTL: 255, Proto: model.GRE,
				Src: f.Node(hop.Node).IPv4.V4(), Dst: 10<<24 | 200,
			}
			frame := append(outer.AppendTo(packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)), body...)
			at := time.Unix(1_700_000_000, int64(n)*1e6+int64(i)*2000)
			if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(frame), Length: len(frame)}, frame); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(to, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestTraceOfCapturedMirrors(t *testing.T) {
	dir := t.TempDir()
	topology, pcap := filepath.Join(dir, "fabric.yaml"), filepath.Join(dir, "mirrors.pcap")
	run := func(want int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		a := &app{}
		if code := a.run(args, &out, &errs); code != want {
			t.Fatalf("weft %s exits with %d; want %d\n%s%s", strings.Join(args, " "), code, want, &out, &errs)
		}
		return out.String() + errs.String()
	}
	if err := os.WriteFile(topology, []byte(run(exitFine, "topo", "gen", "fat-tree", "--k", "4")), 0o666); err != nil {
		t.Fatal(err)
	}
	captureMirrors(t, topology, pcap)
	has := func(text string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s\nlacks %q", text, w)
			}
		}
	}
	doc, err := file.Read(topology)
	if err != nil {
		t.Fatal(err)
	}
	has(run(exitFault, "trace", "--pcap", pcap, "--topology", topology),
		"400 packets, 400 mirrors\n", "100 traces of 400 mirrors: 50 arrived, 50 lost, 0 looped", "drop     spine3  -     50    100", "traces: 50, the first 20")
	// Without a topology names are addresses, and all traces are shown.
	has(run(exitFine, "trace", "--pcap", pcap), "no topology",
		"0 arrived, 0 lost, 0 looped, 0 unsettled, 100 unknown", "traces: 100", doc.Fabric.Node(doc.Fabric.Switches()[0]).IPv4.String())
	has(run(exitFine, "trace", "--pcap", pcap, "--filter", "trace.hops == 3 && ip.id == 4"), "traces: 1\n", "HOP",
		"TTL")
	has(run(exitUsage, "trace", "--pcap", pcap, "--pad", "nonsense"), `--pad "nonsense", want ADDRESS=BYTES`)
	has(run(exitUsage, "trace", "--pcap", topology), "neither pcap nor pcapng")
	has(run(exitUsage, "trace", "--pcap", pcap, "--filter", "nonsense"), "column 1: unknown field")
	var none bytes.Buffer
	if err := pcapgo.NewWriter(&none).WriteFileHeader(65535, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pcap, none.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	has(run(exitUsage, "trace", "--pcap", pcap), "no mirrors, want ERSPAN packets; 0 packets, 0 mirrors")
}

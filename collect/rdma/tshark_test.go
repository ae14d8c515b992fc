package rdma

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// TestTsharkReadsOurPackets lets tshark dissect the packets of both ends: nothing
// malformed, no expert warnings, every operation as requested.
func TestTsharkReadsOurPackets(t *testing.T) {
	p := connect(t, 4096, 64, 0xfffffd)
	p.req.Write(p.reg.Addr, p.reg.RKey, []byte("12345678"))
	p.req.Write(p.reg.Addr+8, p.reg.RKey, []byte("12345")) // padded
	p.req.WriteImm(p.reg.Addr, p.reg.RKey, []byte("1234"), 7)
	p.req.FetchAdd(p.reg.Addr, p.reg.RKey, 3)
	p.req.Write(p.reg.Addr+4096, p.reg.RKey, []byte("1234")) // refused
	var frames [][]byte
	frame := func(path Path, payload []byte) {
		f := packet.Ethernet{Dst: model.MAC{2, 0, 0, 0, 0, 2}, Src: model.MAC{2, 0, 0, 0, 0, 1}, Type: packet.TypeIPv4}.AppendTo(nil)
		f = path.appendHeaders(f, len(payload))
		frames = append(frames, append(f, payload...))
	}
	for pkt := p.req.Next(0); pkt != nil; pkt = p.req.Next(0) {
		frame(Path{here, there}, pkt)
		if answer := p.res.Handle(here, pkt); answer != nil {
			frame(Path{there, here}, answer)
		}
	}
	file := filepath.Join(t.TempDir(), "rdma.pcapng")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pcapgo.NewNgWriter(f, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range frames {
		if err := w.WritePacket(gopacket.CaptureInfo{CaptureLength: len(b), Length: len(b)}, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	cmd := exec.Command("tshark", "-r", file, "-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=|",
		"-e", "_ws.malformed", "-e", "_ws.expert.message", "-e", "infiniband.bth.opcode", "-e", "infiniband.bth.psn",
		"-e", "infiniband.bth.padcnt", "-e", "infiniband.reth.dmalen", "-e", "infiniband.atomiceth.swapdt", "-e", "infiniband.aeth.syndrome.opcode")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s(install it: scripts/need tshark:tshark)", err, &stderr)
	}
	want := `||10|16777213|0|8||
||10|16777214|3|5||
||11|16777215|0|4||
||17|16777215|0|||0
||20|0|0||3|
||18|0|0|||0
||10|1|0|4||
||17|1|0|||3
`
	if got := string(out); got != want {
		t.Errorf("tshark reads\n%s\nwant\n%s", got, want)
	}
}

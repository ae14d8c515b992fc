package roce

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
)

// TestPacketsOfTheKernel reads packets that the kernel's RoCE (rdma_rxe of Linux 6.1)
// sent, of each opcode that perftest and ibv_rc_pingpong use, over IPv4 and IPv6: the
// invariant CRC holds, also where the identification is not known, and every packet is
// encoded as it was.
func TestPacketsOfTheKernel(t *testing.T) {
	f, err := os.Open("testdata/rxe.pcap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	opcodes := [2]map[Opcode]int{{}, {}} // over IPv4 and IPv6
	for {
		frame, _, err := in.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		ip, headers, v6 := frame[14:], 20+8, 0
		if ip[0]>>4 == 6 {
			headers, v6 = 40+8, 1
		}
		if err := CheckICRC(ip); err != nil {
			t.Errorf("%x: %v", ip, err)
		}
		var p Packet
		body := ip[headers : len(ip)-ICRCSize]
		if _, err := p.Parse(body); err != nil {
			t.Fatalf("%x: %v", body, err)
		}
		if out := p.AppendTo(nil); !bytes.Equal(out, body) {
			t.Errorf("%x is encoded as %x", body, out)
		}
		opcodes[v6][p.BTH.Opcode]++
		if v6 == 0 {
			ip[4], ip[5], ip[6] = 0, 0, 0x40
		}
		if err := CheckICRCAnyIdentification(ip); err != nil {
			t.Errorf("%x without its identification: %v", ip, err)
		}
	}
	if len(opcodes[0]) < 18 || len(opcodes[1]) < 3 {
		t.Errorf("opcodes %v; want 18 over IPv4 and 3 over IPv6", opcodes)
	}
}

package ipfix

import (
	"context"
	"encoding/binary"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/wire/packet"
)

// TestSoftflowd: a real exporter reads packets and sends NetFlow and IPFIX by a real socket.
// Every flow has the packets, bytes and duration that it had.
func TestSoftflowd(t *testing.T) {
	if _, err := exec.LookPath("softflowd"); err != nil {
		t.Fatalf("%v (install it: scripts/need softflowd:softflowd)", err)
	}
	const flows, size = 20, 60
	packetsOf := func(i int) int { return 3 + 2*i }
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "flows.pcap"), pcapOf(flows, packetsOf, size), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"NetFlow": {"-v", "9"}, "IPFIX": {"-v", "10"}, "IPFIX in milliseconds": {"-v", "10", "-A", "milli"},
	} {
		t.Run(name, func(t *testing.T) {
			loopback := netip.MustParseAddr("127.0.0.1")
			b := newBench(t, loopback)
			l, err := (&Config{Listen: netip.AddrPortFrom(loopback, 0)}).OpenSocket(b.decoder, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			events, ended := make(chan portstat.FlowRecord, 1000), make(chan error, 1)
			b.out.Flow = func(r *portstat.FlowRecord) { events <- *r }
			go func() { ended <- l.Run(ctx, nil) }()
			args := append([]string{"-d", "-r", "flows.pcap", "-n", l.Addr().String(), "-p", "pid", "-c", "ctl"}, args...)
			cmd := exec.CommandContext(ctx, "softflowd", args...)
			cmd.Dir = dir // it takes short paths alone
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("softflowd: %v: %s", err, out)
			}
			got := map[uint16]portstat.FlowRecord{}
			for len(got) < flows {
				select {
				case r := <-events:
					got[r.Flow.SrcPort] = r
				case <-ctx.Done():
					t.Fatalf("%d flows of %d: %+v", len(got), flows, l.Counters())
				}
			}
			cancel()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			for i := range flows {
				n := packetsOf(i)
				r := got[uint16(1000+i)]
				took := time.Duration(n-1) * 10 * time.Millisecond
				if r.Packets != uint64(n) || r.Bytes != uint64(n*size) || r.Flow.Dst != model.Addr4(0x0a020002) || (r.Interval()-took).Abs() > time.Millisecond {
					t.Errorf("flow %d: %+v in %v; want %d packets of %d bytes in %v", i, r, r.Interval(), n, size, took)
				}
			}
			if c := l.Counters(); b.lost("malformed")+b.lost("missing")+b.lost("no template")+b.lost("clock") != 0 {
				t.Errorf("losses: %+v", c)
			}
		})
	}
}

// pcapOf is a capture of UDP flows whose packets are 10 ms apart.
func pcapOf(flows int, packets func(int) int, size int) []byte {
	var b []byte
	start := uint32(time.Now().Unix()) - 5 // or the flows would have ended long before the export
	for _, v := range []uint32{0xa1b2c3d4, 2 | 4<<16, 0, 0, 1 << 16, 1} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for i := range flows {
		for k := range packets(i) {
			udp := packet.UDP{SrcPort: uint16(1000 + i), DstPort: 80, Length: uint16(size - 20)}.AppendTo(nil)
			ip := packet.IPv4{Length: uint16(size), TTL: 60, Proto: model.UDP, Src: 0x0a010001, Dst: 0x0a020002}.AppendTo(nil)
			frame := append(append(packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil), ip...), udp...)
			frame = append(frame, make([]byte, 14+size-len(frame))...)
			for _, v := range []uint32{start, uint32(10_000 * k), uint32(len(frame)), uint32(len(frame))} {
				b = binary.LittleEndian.AppendUint32(b, v)
			}
			b = append(b, frame...)
		}
	}
	return b
}

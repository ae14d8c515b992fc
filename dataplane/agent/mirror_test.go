package agent_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/dataplane/agent"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// TestMirrorsAreReported sends packets of a connection to an interface: that with SYN
// arrives at the collector as a report, in the list of mirrors.
func TestMirrorsAreReported(t *testing.T) {
	// Agents report from the machine's own network namespace.
	sink, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	name, _ := newInterface(t)
	peer, err := netlink.LinkByName(name + "p")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []string{name, name + "p"} {
		l, err := netlink.LinkByName(one)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetUp(l); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config(name, sink.LocalAddr().(*net.UDPAddr).AddrPort())
	mirrors := agent.DefaultMirrors()
	mirrors.List = 50
	cfg.Mirrors = &mirrors
	a, err := agent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, flags := range []packet.TCPFlags{packet.ACK, packet.SYN, packet.ACK} {
		b := packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)
		b = packet.IPv4{Length: 40, TTL: 9, Proto: model.TCP, Src: 10 << 24, Dst: 10<<24 | 1, ID: 5}.AppendTo(b)
		b = packet.TCP{SrcPort: 4000, DstPort: 80, Flags: uint16(flags)}.AppendTo(b)
		if err := unix.Sendto(fd, b, 0, &unix.SockaddrLinklayer{Ifindex: peer.Attrs().Index}); err != nil {
			t.Fatal(err)
		}
	}
	m := nextMirror(t, sink, 50)
	if m.Reasons != mirror.Flag || m.Switch != 1 || m.In != 1 || m.Length != 54 {
		t.Errorf("%+v; want the packet with SYN, from port 1 of switch 1", m)
	}
	if now := model.TimeOf(time.Now()); now.Sub(m.Time).Abs() > time.Minute {
		t.Errorf("mirrored at %v; want the time of the wall clock, %v", m.Time, now)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if s := a.Stats(); s.Mirrors.Mirrored != 1 || s.Mirrors.Flag != 1 || s.Mirrors.Lost+s.Mirrors.RateLimited != 0 {
		t.Errorf("%+v; want one mirror", s.Mirrors)
	}
}

// nextMirror reads datagrams until one has a report for a list.
func nextMirror(t *testing.T, from *net.UDPConn, list dta.ListID) mirror.Mirror {
	t.Helper()
	if err := from.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		var r dta.Reader
		if err := r.Reset(buf[:n]); err != nil {
			t.Fatal(err)
		}
		var rep dta.Report
		for r.Next(&rep) {
			if rep.List != list {
				continue
			}
			var m mirror.Mirror
			if _, err := m.Parse(rep.Data); err != nil {
				t.Fatal(err)
			}
			return m
		}
	}
}

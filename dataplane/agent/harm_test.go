package agent_test

import (
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	kernel "github.com/weft-telemetry/weft/dataplane/ebpf"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// starve takes all memory that this process may have, a little, until its runtime gives up.
func starve() {
	const spare = 64 << 20
	limit := unix.Rlimit{Cur: spare, Max: spare} // of further pages: what it has stays
	if err := unix.Setrlimit(unix.RLIMIT_AS, &limit); err != nil {
		panic(err)
	}
	for hoard := [][]byte(nil); ; {
		hoard = append(hoard, make([]byte, 1<<20))
		runtime.KeepAlive(hoard)
	}
}

// traffic sends datagrams to a socket behind an interface.
type traffic struct {
	t     *testing.T
	raw   int // sends frames at the other end
	to    unix.SockaddrLinklayer
	frame []byte
	conn  *net.UDPConn
}

func newTraffic(t *testing.T, name string) *traffic {
	t.Helper()
	own, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	peer, err := netlink.LinkByName(name + "p")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddr("10.9.0.1")
	if err := netlink.AddrAdd(own, &netlink.Addr{IPNet: &net.IPNet{IP: at.AsSlice(), Mask: net.CIDRMask(24, 32)}}); err != nil {
		t.Fatal(err)
	}
	for _, l := range []netlink.Link{own, peer} {
		if err := netlink.LinkSetUp(l); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: at.AsSlice()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	raw, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(raw) })
	const size = 18
	to := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	b := packet.Ethernet{Type: packet.TypeIPv4, Dst: model.MAC(own.Attrs().HardwareAddr), Src: model.MAC(peer.Attrs().HardwareAddr)}.AppendTo(nil)
	ip := packet.IPv4{Length: packet.IPv4Size + packet.UDPSize + size, TTL: 64, Proto: model.UDP, Src: 0x0a090002, Dst: 0x0a090001}
	ip.Checksum = ip.Sum()
	b = packet.UDP{SrcPort: 9, DstPort: to.Port(), Length: packet.UDPSize + size}.AppendTo(ip.AppendTo(b))
	return &traffic{t, raw, unix.SockaddrLinklayer{Ifindex: peer.Attrs().Index, Protocol: 8}, append(b, make([]byte, size)...), conn}
}

// passes sends datagrams, all of which must arrive.
func (tr *traffic) passes(when string) {
	tr.t.Helper()
	const datagrams = 100
	for range datagrams {
		if err := unix.Sendto(tr.raw, tr.frame, 0, &tr.to); err != nil {
			tr.t.Fatal(err)
		}
	}
	if err := tr.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		tr.t.Fatal(err)
	}
	buf := make([]byte, 64)
	for i := range datagrams {
		if _, err := tr.conn.Read(buf); err != nil {
			tr.t.Fatalf("%s %d of %d datagrams arrive, %v; want all", when, i, datagrams, err)
		}
	}
}

// TestTrafficGoesOn: through an agent that attaches, one that takes its place, one that is killed and one that
// has no memory left, of which nothing stays attached.
func TestTrafficGoesOn(t *testing.T) {
	name, index := newInterface(t)
	tr := newTraffic(t, name)
	tr.passes("without an agent")
	old := startAgent(t, name, kernel.TC)
	tr.passes("with an agent")
	next := startAgent(t, name, kernel.TC)
	tr.passes("with the next agent beside it")
	if err := old.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = old.Wait() // killed
	tr.passes("after the first was killed")
	awaitAttached(t, index, 1)
	if err := next.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = next.Wait() // killed
	starving := startAgent(t, name, kernel.TC, starves+"=1")
	tr.passes("while an agent starves")
	if err := starving.Wait(); err == nil {
		t.Error("an agent without memory ends well; want a failure")
	}
	tr.passes("after an agent has starved")
	awaitAttached(t, index, 0)
	tr.passes("with nothing attached")
}

// awaitAttached waits until as many programs are attached: the kernel frees the files of a process at its own
// pace.
func awaitAttached(t *testing.T, index, want int) {
	t.Helper()
	for began := time.Now(); attached(t, index) != want; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d programs are attached; want %d", attached(t, index), want)
		}
	}
}

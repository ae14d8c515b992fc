package sim

import (
	"bytes"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/wire/packet"
)

func (n *Network) speak(t testing.TB, interval time.Duration) {
	t.Helper()
	if err := n.EnableBGP(interval); err != nil {
		t.Fatal(err)
	}
}

// TestKeepalives runs BGP on a fat-tree under load: every link between switches
// carries keepalives in both directions at the interval, which the neighbour
// consumes; none is sent to a host, none is lost, and each acknowledges what
// was received before.
func TestKeepalives(t *testing.T) {
	n := fatTree(t, 4, DefaultConfig())
	n.speak(t, 50*time.Microsecond)
	for i := range 15 {
		n.add(t, traffic.Flow{Src: 15, Dst: n.hosts[i].ID, Bytes: 200_000, Priority: 3, Start: 1000})
	}
	seen := 0
	for _, p := range n.ports {
		next := uint32(1)
		p.SetTap(func(_ engine.Time, pkt *Packet) {
			if pkt.Kind != KindTCP {
				return
			}
			if p.sw == nil || p.peer.sw == nil {
				t.Fatalf("a keepalive on the link of port %d of node %d; want them between switches", p.ID, p.Node)
			}
			frame := n.AppendFrame(nil, pkt, p)
			var got packet.Packet
			var tcp packet.TCP
			if err := got.Parse(frame); err != nil || len(frame) != int(pkt.Size) {
				t.Fatalf("Parse(%x) = %v; want a frame of %d bytes", frame, err, pkt.Size)
			}
			if _, err := tcp.Parse(frame[got.Outer.Transport:]); err != nil || tcp.Seq != next {
				t.Fatalf("sequence number %d, %v; want %d", tcp.Seq, err, next)
			}
			next += 19
			if sum := packet.TransportChecksum(pkt.Key.Src, pkt.Key.Dst, false, pkt.Key.Proto, frame[got.Outer.Transport:]); sum != 0 {
				t.Fatalf("checksum of %x is off", frame)
			}
			if (tcp.SrcPort == 179) == (tcp.DstPort == 179) || got.Outer.TTL != 255 || !bytes.Equal(frame[got.Outer.Payload:], keepalive[:]) {
				t.Fatalf("frame %x; want a keepalive with TTL 255", frame)
			}
			if want := 1 + 19*uint32(p.Keepalives); tcp.Ack != want {
				t.Fatalf("acknowledges %d after %d messages; want %d", tcp.Ack, p.Keepalives, want)
			}
			seen++
		})
	}
	n.run(2 * time.Millisecond)
	for _, p := range n.ports {
		if between := p.sw != nil && p.peer.sw != nil; between && (p.Keepalives < 39 || p.Keepalives > 40) || !between && p.Keepalives != 0 {
			t.Errorf("port %d of node %d received %d keepalives in 2 ms; want 40 from switches, none from hosts", p.ID, p.Node, p.Keepalives)
		}
	}
	if n.Counts.Drops != [numReasons]int64{} || seen < 64*39 || n.Finished != 15 {
		t.Errorf("drops %v, %d keepalives, %d flows finished; want none, %d, 15", n.Counts.Drops, seen, n.Finished, 64*40)
	}
}

// TestKeepalivesPassPausedPorts holds that they continue where data is paused.
func TestKeepalivesPassPausedPorts(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Congestion = nil
	n := fatTree(t, 4, cfg)
	n.speak(t, 20*time.Microsecond)
	n.add(t, traffic.Flow{Src: 0, Dst: 15, Stop: 1e12, Priority: 3})
	n.inject(t, 0, 0, Storm{Host: 15, Priority: 3})
	n.run(2 * time.Millisecond)
	var paused int
	for _, p := range n.ports {
		if p.sw != nil && p.peer.sw != nil && p.Paused(3) {
			paused++
			if got := p.peer.Keepalives; got < 99 {
				t.Errorf("%d keepalives crossed a paused link in 2 ms; want 100", got)
			}
		}
	}
	if paused == 0 {
		t.Error("no link between switches is paused; want the storm to spread")
	}
}

func TestEnableBGPErrors(t *testing.T) {
	n := fatTree(t, 4, DefaultConfig())
	if err := n.EnableBGP(0); err == nil {
		t.Error("SpeakBGP(0) = nil; want an error")
	}
	n.speak(t, time.Millisecond)
	if err := n.EnableBGP(time.Millisecond); err == nil {
		t.Error("SpeakBGP twice = nil; want an error")
	}
}

// TestKeepalivesAllocateNothing, and those that are lost are counted.
func TestKeepalivesAllocateNothing(t *testing.T) {
	n := fatTree(t, 4, DefaultConfig())
	n.speak(t, 10*time.Microsecond)
	n.run(time.Millisecond)
	if got := testing.AllocsPerRun(5, func() { n.Run(n.Now() + engine.Millisecond) }); got != 0 {
		t.Errorf("1 ms of keepalives allocates %v times; want 0", got)
	}
	n.inject(t, 20*time.Millisecond, 0, LinkDown{Port: n.portTo(t, "tor0", "leaf0")})
	n.run(21 * time.Millisecond)
	if got := n.Counts.Drops[DropLinkDown]; got < 199 || got > 201 {
		t.Errorf("%d packets lost on a dead link in 1 ms; want the 200 keepalives", got)
	}
}

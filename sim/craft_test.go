package sim

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/wire/roce"
)

// TestCraftedFramesAreTheSame makes packets of the bytes of all sorts of frames
// and writes them again.
func TestCraftedFramesAreTheSame(t *testing.T) {
	n := everything(t)
	for _, sw := range n.switches {
		sw.programs = programs{} // no labels: they are no part of an IP packet's own bytes
		sw.updateSlowPath()
	}
	seen := map[Kind]int{}
	for _, p := range n.ports {
		p.SetTap(func(_ engine.Time, pkt *Packet) {
			if pkt.Kind == KindPFC {
				return
			}
			frame := n.AppendFrame(nil, pkt, p)
			ip := frame[ethernetSize:]
			if pkt.unpaddedSize() < minFrame {
				ip = ip[:pkt.unpaddedSize()-ethernetSize]
			}
			got, err := p.node.anyCraft(ip)
			if err != nil {
				t.Fatalf("Compose(%x) = %v", ip, err)
			}
			again := n.AppendFrame(nil, got, p)
			if k := &pkt.Key; k.Proto == model.UDP && (k.SrcPort == roce.Port || k.DstPort == roce.Port) && !k.V6 {
				// RoCEv2 leaves the checksum out.
				at := len(frame) - int(pkt.unpaddedSize()) + ethernetSize + int(ipSize(k)) + 6
				for i := range pkt.depth() {
					at += int(ipSize(&pkt.Extra.Outer[i]))
				}
				again[at], again[at+1] = 0, 0
			}
			if !bytes.Equal(again, frame) || got.Size != pkt.Size || got.Key != pkt.Key || got.InnerTTL() != pkt.InnerTTL() || !slices.Equal(got.outers(), pkt.outers()) {
				t.Fatalf("Compose(%x) writes\n%x, %v of %d bytes; want\n%x, %v of %d", ip, again, got.Key, got.Size, frame, pkt.Key, pkt.Size)
			}
			n.sched.workers[0].pool.put(got)
			seen[pkt.Kind]++
		})
	}
	n.run(300 * time.Microsecond)
	for _, k := range []Kind{KindData, KindAck, KindTCP, KindUDP} {
		if seen[k] < 10 {
			t.Errorf("%d packets of kind %d seen; want many", seen[k], k)
		}
	}
}

func (nd *node) anyCraft(ip []byte) (*Packet, error) {
	if nd.sw != nil {
		return nd.sw.Craft(ip)
	}
	return nd.host.Craft(ip)
}

func (p *Packet) outers() []model.FlowKey {
	if p.Extra == nil {
		return nil
	}
	return p.Extra.Outer
}

// TestCraftedProbesWalk sends the bytes of a nested probe.
func TestCraftedProbesWalk(t *testing.T) {
	n := yard(t, nil)
	h := n.Host(0)
	ip := n.AppendFrame(nil, n.probe(t, false, 20, "spine0", "tor0", "spine1"), h.ports[0])[ethernetSize:]
	p, err := h.Craft(ip)
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	n.Host(4).SetReceiver(func(p *Packet) {
		if p.tunnelled() || p.TTL != 18 || p.Payload != 100 {
			t.Errorf("received %+v; want it out of all tunnels, TTL 18", p)
		}
		got++
	})
	h.Send(p, h.ports[0])
	n.run(time.Millisecond)
	if got != 1 {
		t.Errorf("%d probes arrived, drops %v; want 1", got, n.Counts.Drops)
	}
	n.clean(t)
}

// FuzzCraft: every input makes a packet or is rejected, and a packet's bytes
// make the same packet again.
func FuzzCraft(f *testing.F) {
	n := yard(f, nil)
	for _, v6 := range []bool{false, true} {
		f.Add(n.AppendFrame(nil, n.probe(f, v6, 20, "spine0", "tor1"), n.ports[0])[ethernetSize:])
	}
	f.Add([]byte{0x45})
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 2000 {
			return // longer than any link's
		}
		p, err := n.sched.workers[0].craft(in)
		if err != nil {
			return
		}
		frame := n.AppendFrame(nil, p, n.ports[0])
		if len(frame) != int(p.Size) || int(p.Size) != max(minFrame, len(in)+ethernetSize) {
			t.Fatalf("Compose(%x): %d bytes, a frame of %d; want %d", in, p.Size, len(frame), len(in)+ethernetSize)
		}
		again, err := n.sched.workers[0].craft(frame[ethernetSize : ethernetSize+len(in)])
		if err != nil || again.Key != p.Key || again.TTL != p.TTL || again.InnerTTL() != p.InnerTTL() || again.DSCP != p.DSCP || again.ECN != p.ECN || again.IPID != p.IPID ||
			!slices.Equal(again.outers(), p.outers()) || !slices.Equal(again.Extra.inner, p.Extra.inner) || !bytes.Equal(again.Extra.Content, p.Extra.Content) {
			t.Fatalf("Compose(%x) and again = %+v, %v; want %+v", in, again, err, p)
		}
		n.sched.workers[0].pool.put(p)
		n.sched.workers[0].pool.put(again)
	})
}

func TestCraftAllocs(t *testing.T) {
	n := yard(t, nil)
	ip := n.AppendFrame(nil, n.probe(t, true, 20, "spine0", "tor1"), n.ports[0])[ethernetSize:]
	if got := testing.AllocsPerRun(100, func() {
		p, _ := n.sched.workers[0].craft(ip)
		n.sched.workers[0].pool.put(p)
	}); got != 0 {
		t.Errorf("Compose allocates %v times; want 0", got)
	}
}

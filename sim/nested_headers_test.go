package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/wire/packet"
)

// probe is a datagram from h0 to h4 that walks along switches by nested
// headers, the first switch's outermost.
func (n *Network) probe(t testing.TB, v6 bool, ttl uint8, along ...string) *Packet {
	t.Helper()
	h := n.Host(0)
	p := h.NewPacket()
	p.Kind, p.TTL, p.Payload = KindUDP, ttl, 100
	p.Key = model.FlowKey{Src: n.nodeAddr(0, v6), Dst: n.nodeAddr(4, v6), SrcPort: 7, DstPort: 7, Proto: model.UDP, V6: v6}
	p.Size = ethernetSize + ipSize(&p.Key) + udpSize + p.Payload
	for _, name := range slices.Backward(along) {
		h.Encapsulate(p, model.FlowKey{Src: n.nodeAddr(0, v6), Dst: n.nodeAddr(n.named(t, name), v6), V6: v6})
	}
	return p
}

// TestProbesWalkAlongSwitches sends probes by lists of switches, also on a
// round trip, and records each hop: the sender, the number of outer headers
// left, the TTL of the first.
func TestProbesWalkAlongSwitches(t *testing.T) {
	type hop struct {
		node  string
		depth int
		ttl   uint8
	}
	for name, tc := range map[string]struct {
		along []string
		want  []string // nodes, from h0 on
		ttl   []uint8  // of the outermost header on each wire
		depth []int
		inner uint8 // TTL at the end, of 20
	}{
		"none":          {nil, []string{"h0", "tor0", "*", "tor1"}, []uint8{20, 19, 18, 17}, []int{0, 0, 0, 0}, 17},
		"three":         {[]string{"spine0", "tor1", "spine1"}, []string{"h0", "tor0", "spine0", "tor1", "spine1", "tor1"}, []uint8{60, 59, 59, 59, 19, 18}, []int{3, 3, 2, 1, 0, 0}, 18},
		"round trip":    {[]string{"spine1", "tor0", "spine1"}, []string{"h0", "tor0", "spine1", "tor0", "spine1", "tor1"}, []uint8{60, 59, 59, 59, 19, 18}, []int{3, 3, 2, 1, 0, 0}, 18},
		"same twice":    {[]string{"tor0", "tor0"}, []string{"h0", "tor0", "*", "tor1"}, []uint8{60, 19, 18, 17}, []int{2, 0, 0, 0}, 17},
		"to the border": {[]string{"border"}, []string{"h0", "tor0", "*", "border", "*", "tor1"}, []uint8{60, 59, 58, 19, 18, 17}, []int{1, 1, 1, 0, 0, 0}, 17},
	} {
		for _, v6 := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				n := yard(t, func(c *Config) { c.TTL = 60 })
				var seen []hop
				for _, p := range n.ports {
					p.SetTap(func(_ engine.Time, pkt *Packet) {
						frame := n.AppendFrame(nil, pkt, p)
						var got packet.Packet
						if err := got.Parse(frame); err != nil || len(frame) != int(pkt.Size) || got.Innermost().TTL != pkt.InnerTTL() || got.Outer.TTL != pkt.TTL {
							t.Fatalf("Parse(%x) = %v; want %d bytes, TTL %d over %d", frame, err, pkt.Size, pkt.TTL, pkt.InnerTTL())
						}
						seen = append(seen, hop{node: n.fabric.Node(p.Node).Name, depth: pkt.depth(), ttl: pkt.TTL})
					})
				}
				var got []Packet
				n.Host(4).SetReceiver(func(p *Packet) { got = append(got, *p) })
				p := n.probe(t, v6, 20, tc.along...)
				size := p.Size - int32(len(tc.along))*ipSize(&p.Key)
				n.Host(0).Send(p, n.Host(0).ports[0])
				n.run(time.Millisecond)
				if len(seen) != len(tc.want) {
					t.Fatalf("hops %+v; want %v", seen, tc.want)
				}
				for i, h := range seen {
					if h.node != tc.want[i] && tc.want[i] != "*" || h.ttl != tc.ttl[i] || h.depth != tc.depth[i] {
						t.Errorf("hop %d: %+v; want %s, TTL %d, %d headers", i, h, tc.want[i], tc.ttl[i], tc.depth[i])
					}
				}
				if len(got) != 1 || got[0].TTL != tc.inner || got[0].tunnelled() || got[0].Size != size {
					t.Errorf("received %+v; want one of %d bytes, TTL %d, in no tunnel", got, size, tc.inner)
				}
				n.clean(t)
			})
		}
	}
}

// TestProbesEndWhereTheyMay holds that a walk ends with a count: no TTL left
// inside, or a switch's address without anything in it.
func TestProbesEndWhereTheyMay(t *testing.T) {
	for name, tc := range map[string]struct {
		ttl  uint8
		dst  string // instead of h4
		want Reason
	}{
		"inner TTL": {1, "", DropTTL},
		"a switch":  {20, "spine1", DropHost},
	} {
		t.Run(name, func(t *testing.T) {
			n := yard(t, nil)
			p := n.probe(t, false, tc.ttl, "spine0")
			if tc.dst != "" {
				p.Key.Dst = n.nodeAddr(n.named(t, tc.dst), false)
			}
			n.Host(0).Send(p, n.Host(0).ports[0])
			n.run(time.Millisecond)
			if n.Counts.Drops[tc.want] != 1 || n.Counts.Delivered != 0 || n.balance() != 0 {
				t.Errorf("drops %v, %d delivered, books off by %d; want one for %v", n.Counts.Drops, n.Counts.Delivered, n.balance(), tc.want)
			}
		})
	}
}

// TestLongLoopsStayInTheLoop makes packets in a tunnel loop for as long as a
// TTL can last: longer than a flow's known path, and than a byte can count from
// its end.
func TestLongLoopsStayInTheLoop(t *testing.T) {
	n := yardOf(t, func(c *Config) { c.TTL = 255 })
	n.serve(t, Service{VIP: vip4, Backends: []model.Addr{n.fabric.Node(4).IPv4}})
	n.add(t, traffic.Flow{Src: 1, To: vip4, Stop: 1e12, Priority: 3, Rate: 100 * model.Mbps})
	to, tor := prefix(n.fabric.Node(4).IPv4), []model.NodeID{n.named(t, "tor0")}
	n.inject(t, 200*time.Microsecond, 0, Reroute{Entries: []Entry{
		{Switch: n.named(t, "spine0"), To: to, Via: tor}, {Switch: n.named(t, "spine1"), To: to, Via: tor},
	}})
	n.run(3 * time.Millisecond)
	drops := n.Counts.Drops
	if drops[DropTTL] == 0 {
		t.Errorf("drops %v; want some for their TTL", drops)
	}
	drops[DropTTL] = 0
	if drops != [numReasons]int64{} {
		t.Errorf("drops %v beside the TTL's; want none", drops)
	}
}

// tally counts what a program sees at Dequeue.
type tally struct {
	control, data int
	ended         func(*Context)
}

func (t *tally) At(s Stage) Runner {
	if s == StageDequeue {
		return t
	}
	return nil
}

func (s *tally) Run(c *Context) {
	if !c.Packet.Control {
		s.data++
		return
	}
	s.control++
	if s.ended != nil {
		s.ended(c)
	}
}

// TestProgramsSeeControlPackets: what rides in the control queue is shown at
// Dequeue like the rest, and can be ended there.
func TestProgramsSeeControlPackets(t *testing.T) {
	for name, ended := range map[string]func(*Context){"passed": nil, "dropped": (*Context).Drop, "taken": (*Context).Consume} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.AckControl = true
			n := fatTree(t, 4, cfg)
			s := &tally{ended: ended}
			n.Switch(n.named(t, "tor0")).Attach(s)
			n.add(t, steady(15, 0)) // acknowledgements come by tor0
			n.run(time.Millisecond)
			acks := int64(0)
			for _, p := range n.Switch(n.named(t, "tor0")).ports {
				if p.peer.sw != nil {
					acks += p.TxPkts
				}
			}
			ends := n.Counts.Drops[DropProgram] + n.Counts.Consumed
			if s.control < 500 || s.data < 500 || ended == nil && (acks != int64(s.control) || ends != 0) || ended != nil && (acks != 0 || ends != int64(s.control)) {
				t.Errorf("%d control packets and %d others seen, %d sent, %d ended; want all acknowledgements seen", s.control, s.data, acks, ends)
			}
		})
	}
}

// metronome asks for the next timer at every timer.
type metronome struct{ beats int }

func (m *metronome) At(s Stage) Runner {
	if s == StageTimer {
		return m
	}
	return nil
}

func (m *metronome) Run(c *Context) {
	m.beats++
	c.After(m, time.Microsecond, m.beats)
	if c.Timer != m.beats-1 {
		panic("timers come in another order")
	}
}

func TestTimersAllocateNothing(t *testing.T) {
	n := fatTree(t, 4, DefaultConfig())
	m := &metronome{}
	sw := n.Switch(n.named(t, "tor0"))
	sw.Attach(m)
	sw.Start(m, 0)
	n.run(10 * time.Microsecond)
	if got := testing.AllocsPerRun(10, func() { n.Run(n.Now() + 10*engine.Microsecond) }); got != 0 || m.beats < 100 {
		t.Errorf("%v allocations, %d timers; want none, above 100", got, m.beats)
	}
}

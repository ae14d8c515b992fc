package simhost

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/poll"
)

// udpFlow is ten full packets from host 0 to host 2 of the dumbbell.
func udpFlow() traffic.Flow {
	return traffic.Flow{Src: 0, Dst: 2, Bytes: 10 * 1024, Transport: traffic.UDP, Start: 1000}
}

func TestDropAndTakeEndPackets(t *testing.T) {
	for name, tc := range map[string]struct {
		stage inswitch.Stage
		end   func(*inswitch.Actions)
		drops int64
	}{
		"drop at ingress": {inswitch.Ingress, (*inswitch.Actions).Drop, 5},
		"drop at routed":  {inswitch.Routed, (*inswitch.Actions).Drop, 5},
		"drop at enqueue": {inswitch.Enqueue, (*inswitch.Actions).Drop, 5},
		"drop at dequeue": {inswitch.Dequeue, (*inswitch.Actions).Drop, 5},
		"take at ingress": {inswitch.Ingress, (*inswitch.Actions).Consume, 0},
		"take at dequeue": {inswitch.Dequeue, (*inswitch.Actions).Consume, 0},
	} {
		t.Run(name, func(t *testing.T) {
			n := dumbbell(t, sim.DefaultConfig())
			add(t, n, udpFlow())
			seen := 0
			attach(t, n, 4, DefaultConfig(), at(func(ev *inswitch.Event, act *inswitch.Actions) {
				if seen++; seen%2 == 0 {
					tc.end(act)
				}
			}, tc.stage))
			n.Run(1 * ms)
			if n.Counts.Delivered != 5 || n.Counts.Drops[sim.DropProgram] != tc.drops {
				t.Errorf("%d delivered, %d dropped by programs; want 5, %d", n.Counts.Delivered, n.Counts.Drops[sim.DropProgram], tc.drops)
			}
		})
	}
}

func TestLaterProgramsSeeMarks(t *testing.T) {
	n := dumbbell(t, sim.DefaultConfig())
	add(t, n, udpFlow())
	attach(t, n, 4, DefaultConfig(), at(func(_ *inswitch.Event, act *inswitch.Actions) {
		act.SetDSCP(0xff)
		act.SetECN(3)
	}, inswitch.Ingress), at(func(ev *inswitch.Event, _ *inswitch.Actions) {
		if ev.Packet.DSCP != 63 || ev.Packet.ECN != 3 {
			t.Errorf("the later program sees DSCP %d, ECN %d; want 63, 3", ev.Packet.DSCP, ev.Packet.ECN)
		}
	}, inswitch.Ingress))
	next := 0
	attach(t, n, 5, DefaultConfig(), at(func(ev *inswitch.Event, _ *inswitch.Actions) {
		if next++; ev.Packet.DSCP != 63 || ev.Packet.ECN != 3 {
			t.Errorf("the next switch sees DSCP %d, ECN %d; want 63, 3", ev.Packet.DSCP, ev.Packet.ECN)
		}
	}, inswitch.Ingress))
	n.Run(1 * ms)
	if next != 10 {
		t.Errorf("the next switch saw %d packets; want 10", next)
	}
}

// TestClones sends a cut copy of every packet to a host beside the path, and a
// whole one along the path.
func TestClones(t *testing.T) {
	n := dumbbell(t, sim.DefaultConfig())
	add(t, n, udpFlow())
	var sizes []int32
	n.Host(1).SetReceiver(func(p *sim.Packet) { sizes = append(sizes, p.Size) })
	s := attach(t, n, 4, DefaultConfig(), at(func(ev *inswitch.Event, act *inswitch.Actions) {
		act.Clone(inswitch.Clone{Ports: []model.PortID{2, 77}, Limit: 128})
		act.Clone(inswitch.Clone{Ports: []model.PortID{3}})
	}, inswitch.Ingress))
	n.Run(1 * ms)
	if want := []int32{128, 128, 128, 128, 128, 128, 128, 128, 128, 128}; !cmp.Equal(sizes, want) {
		t.Errorf("the host beside the path received %v; want %v", sizes, want)
	}
	// 10 packets and 10 whole copies at the flow's end, 10 cut ones beside it.
	if n.Counts.Delivered != 30 {
		t.Errorf("%d delivered; want 30", n.Counts.Delivered)
	}
	if got := s.Stats().Refused[NoPort]; got != 10 {
		t.Errorf("%d copies to a port that is not there refused; want 10", got)
	}
}

// TestCloneOffThePath sends copies of a flow's packets to switches that are not
// on its path, where they must be routed afresh: packets remember the ports of
// their flow's path, and a spine has fewer than a leaf.
func TestCloneOffThePath(t *testing.T) {
	f, err := topo.LeafSpine(2, 2, 6, topo.DefaultLinks())
	n := network(t, f, err, sim.DefaultConfig())
	add(t, n, traffic.Flow{Src: 0, Dst: 5, Bytes: 10 * 1024, Transport: traffic.UDP, Rate: model.Gbps, Start: 1000})
	leaf := Describe(n, 12, 0)
	attach(t, n, leaf.ID, DefaultConfig(), at(func(ev *inswitch.Event, act *inswitch.Actions) {
		if leaf.Port(ev.In).FacesHost {
			act.Clone(inswitch.Clone{Ports: []model.PortID{7, 8}})
		}
	}, inswitch.Ingress))
	var other counter
	attach(t, n, 13, DefaultConfig(), &other)
	n.Run(10 * ms)
	if n.Counts.Delivered != 30 || other.events[inswitch.Ingress] != 0 {
		t.Errorf("%d packets delivered, %d seen by the other leaf; want 10 and 20 copies, none", n.Counts.Delivered, other.events[inswitch.Ingress])
	}
}

// TestSendingWhileSendingKeepsTheWireSingle sends a clone at Dequeue by the
// very port that is about to send: a wire carries one packet at a time.
func TestSendingWhileSendingKeepsTheWireSingle(t *testing.T) {
	n := dumbbell(t, sim.DefaultConfig())
	add(t, n, udpFlow())
	attach(t, n, 4, DefaultConfig(), at(func(ev *inswitch.Event, act *inswitch.Actions) {
		if ev.In != 0 { // never a clone's clone
			act.Clone(inswitch.Clone{Ports: []model.PortID{3, 1}})
		}
	}, inswitch.Dequeue))
	out := n.Port(model.Port{Node: 4, Port: 3})
	free, sent := engine.Time(0), 0
	out.SetTap(func(now engine.Time, p *sim.Packet) {
		if sent++; now < free {
			t.Errorf("packet %d starts at %v; want not before %v, when the wire is free", sent, now, free)
		}
		free = now + engine.Transmit(int64(p.Size), out.Rate())
	})
	n.Run(1 * ms)
	if sent != 20 {
		t.Errorf("%d packets sent; want 10 and 10 clones", sent)
	}
}

// TestPollIsTakenAndMulticast lets a host send a poll. The switch takes it and
// sends others by ports of its choice, on the queue that PFC never pauses.
func TestPollIsTakenAndMulticast(t *testing.T) {
	n := dumbbell(t, sim.DefaultConfig())
	victim := model.FlowKey{Src: n.Fabric().Node(0).IPv4, Dst: n.Fabric().Node(2).IPv4, SrcPort: 10000, DstPort: 4791, Proto: model.UDP}
	h := n.Host(0)
	n.At(1*µs, func() {
		p := h.NewPacket()
		p.Kind, p.Control, p.Size = sim.KindOther, true, 60
		e := h.Extra(p)
		e.EtherType = poll.EtherType
		e.Content = poll.Poll{Layout: poll.Weft, Flag: poll.Victim, HopLimit: 8, Flow: victim}.AppendTo(e.Content)
		h.Send(p, h.Ports()[0])
	})
	var frame, content []byte
	ports := make([]model.PortID, 0, 4)
	forward := func(ev *inswitch.Event, act *inswitch.Actions) {
		if ev.Packet.EtherType != poll.EtherType {
			return
		}
		frame = ev.Packet.AppendFrame(frame[:0], 0)
		var q poll.Poll
		if _, err := q.Parse(frame[packet.EthernetSize:]); err != nil {
			t.Errorf("poll %x: %v", frame, err)
		}
		out, ok := ev.Switch.Route(&q.Flow)
		if !ok || !ev.Control || *ev.Packet.Key != (model.FlowKey{}) {
			t.Errorf("route %v, control %v, key %v; want one, true, none", ok, ev.Control, ev.Packet.Key)
		}
		q.InPort, q.OutPort, q.HopLimit = ev.In, out, q.HopLimit-1
		content = q.AppendTo(content[:0])
		act.Consume()
		ports = append(ports[:0], 2, out)
		act.Send(inswitch.Send{Ports: ports, EtherType: poll.EtherType, Content: content, Control: true})
	}
	for _, id := range []model.NodeID{4, 5} {
		attach(t, n, id, DefaultConfig(), at(forward, inswitch.Ingress))
	}
	got := map[model.NodeID][]string{}
	for _, h := range n.Hosts() {
		h.SetReceiver(func(p *sim.Packet) {
			var q poll.Poll
			if _, err := q.Parse(p.Extra.Content); err != nil {
				t.Errorf("host %d received %x: %v", h.ID, p.Extra.Content, err)
			}
			got[h.ID] = append(got[h.ID], fmt.Sprintf("in %d out %d hops %d", q.InPort, q.OutPort, q.HopLimit))
		})
	}
	n.Run(1 * ms)
	want := map[model.NodeID][]string{
		1: {"in 1 out 3 hops 7"}, // beside the path
		2: {"in 3 out 1 hops 6"}, // the victim's end
		3: {"in 3 out 1 hops 6"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("polls received (-want +got):\n%s", diff)
	}
	if n.Counts.Drops[sim.DropNoRoute]+n.Counts.Drops[sim.DropProgram] != 0 {
		t.Errorf("drops %v; want none: a poll that is taken is no loss", n.Counts.Drops)
	}
}

// TestSendsAreRouted sends an IP packet by its key.
func TestSendsAreRouted(t *testing.T) {
	n := dumbbell(t, sim.DefaultConfig())
	dev := Describe(n, 4, 0)
	to := func(a model.Addr) model.FlowKey {
		return model.NewFlowKey(netip.AddrPortFrom(dev.IPv4.Netip(), 1000), netip.AddrPortFrom(a.Netip(), 2000), model.UDP)
	}
	s := attach(t, n, 4, DefaultConfig(), at(func(_ *inswitch.Event, act *inswitch.Actions) {
		act.Send(inswitch.Send{Key: to(n.Fabric().Node(3).IPv4), Content: []byte("hello"), DSCP: 10, Priority: 2})
		act.Send(inswitch.Send{Key: to(model.Addr4(0x7f000001)), Content: []byte("nobody")})
		act.Send(inswitch.Send{EtherType: poll.EtherType, Content: []byte("no port")})
		act.Drop() // owner nothing
		act.StripLabels()
		act.Clone(inswitch.Clone{Ports: []model.PortID{1}})
	}, inswitch.Timer))
	var got []byte
	in := n.Port(model.Port{Node: 5, Port: 2})
	in.SetTap(func(_ engine.Time, p *sim.Packet) { got = n.AppendFrame(nil, p, in) })
	n.Run(1 * ms)
	var p packet.Packet
	if err := p.Parse(got); err != nil {
		t.Fatalf("the frame that arrived, %x: %v", got, err)
	}
	if p.Outer.Key != to(n.Fabric().Node(3).IPv4) || p.Outer.DSCP() != 10 || p.Outer.TTL != 63 || len(got) != 60 ||
		!bytes.Equal(got[p.Outer.Payload:p.Outer.Payload+5], []byte("hello")) {
		t.Errorf("frame %x, TTL %d, DSCP %d, %d bytes; want hello to host 3, 63, 10, 60", got, p.Outer.TTL, p.Outer.DSCP(), len(got))
	}
	if diff := cmp.Diff(map[Refusal]uint64{NoRoute: 2, NoPacket: 3}, s.Stats().Refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

// TestProgramsSendTunnels sends an IP packet inside another, to a switch that
// takes the outer header off and sends what is in it on.
func TestProgramsSendTunnels(t *testing.T) {
	n := dumbbell(t, sim.DefaultConfig())
	dev, f := Describe(n, 4, 0), n.Fabric()
	inner := packet.UDP{SrcPort: 7, DstPort: 9, Length: 13}.AppendTo(packet.IPv4{
		Length: 33, TTL: 9, Proto: model.UDP, Src: f.Node(0).IPv4.V4(), Dst: f.Node(2).IPv4.V4(),
	}.AppendTo(nil))
	inner = append(inner, "hello"...)
	s := attach(t, n, 4, DefaultConfig(), at(func(_ *inswitch.Event, act *inswitch.Actions) {
		outer := model.FlowKey{Src: dev.IPv4, Dst: f.Node(5).IPv4, Proto: model.IPIP}
		act.Send(inswitch.Send{Key: outer, Content: inner, TTL: 33, DSCP: 10})
		act.Send(inswitch.Send{Key: outer, Content: []byte("no packet")})
	}, inswitch.Timer))
	var between, last packet.Packet
	for port, into := range map[model.Port]*packet.Packet{{Node: 4, Port: 3}: &between, {Node: 5, Port: 1}: &last} {
		n.Port(port).SetTap(func(_ engine.Time, p *sim.Packet) {
			if into.Depth == 0 {
				if err := into.Parse(n.AppendFrame(nil, p, n.Port(port))); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	n.Run(1 * ms)
	if between.Depth != 2 || between.Outer.TTL != 33 || between.Outer.DSCP() != 10 || between.Innermost().TTL != 9 {
		t.Errorf("between the switches: %+v; want TTL 33 over 9", between)
	}
	want := model.FlowKey{Src: f.Node(0).IPv4, Dst: f.Node(2).IPv4, SrcPort: 7, DstPort: 9, Proto: model.UDP}
	if last.Depth != 1 || last.Outer.Key != want || last.Outer.TTL != 8 {
		t.Errorf("at the end: %+v; want %v alone, TTL 8", last, want)
	}
	if n.Counts.Drops[sim.DropHost] != 1 || len(s.Stats().Refused) != 0 {
		t.Errorf("drops %v, refused %v; want what is no packet to end at the switch", n.Counts.Drops, s.Stats().Refused)
	}
}

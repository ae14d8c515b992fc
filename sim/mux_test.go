package sim

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/wire/packet"
)

// TestFlowsToAVirtualAddress runs flows of every transport and family through
// the muxes: they complete, data comes by a mux and in a tunnel, answers come
// straight from the virtual address.
func TestFlowsToAVirtualAddress(t *testing.T) {
	for name, f := range map[string]traffic.Flow{
		"rdma":      {Priority: 3, To: vip4},
		"rdma ipv6": {Priority: 3, To: vip6},
		"tcp":       {Transport: traffic.TCP, To: vip4},
		"tcp ipv6":  {Transport: traffic.TCP, To: vip6},
		"udp":       {Transport: traffic.UDP, To: vip4},
		"outside":   {Priority: 3, To: vip4, From: outside4, Src: 8},
	} {
		t.Run(name, func(t *testing.T) {
			n := yard(t, nil)
			var flows []traffic.Flow
			for i := range 40 {
				g := f
				g.Bytes, g.Start = 20_000, model.Time(1000+100*i)
				if g.Src == 0 {
					g.Src = model.NodeID(i % 6)
				}
				flows = append(flows, g)
			}
			n.add(t, flows...)
			var wrapped, straight int
			for _, h := range n.hosts {
				h.ports[0].SetTap(func(_ engine.Time, p *Packet) {
					switch id, back := p.Flow(); {
					case back:
						if p.tunnelled() || p.Key.Src != f.To {
							t.Fatalf("an answer leaves %s from %v, in a tunnel: %v; want the virtual address and none", h.Name, p.Key.Src, p.tunnelled())
						}
						straight++
					case h.mux != nil:
						outer := p.Extra.Outer[0]
						if !p.tunnelled() || outer.Src != n.nodeAddr(h.ID, outer.V6) || outer.Dst != n.nodeAddr(n.flows[id].dst.ID, outer.V6) || p.Key.Dst != f.To {
							t.Fatalf("%s sends %v in %v; want it from the mux to %s", h.Name, p.Key, outer, n.flows[id].dst.Name)
						}
						checkFrame(t, n, p, h.ports[0])
						wrapped++
					}
				})
			}
			n.run(100 * time.Millisecond)
			used := map[string]int{}
			for _, r := range n.Records() {
				if !r.Finished || r.Retransmitted != 0 {
					t.Errorf("flow %d finished %v, %d bytes again; want true and none", r.ID, r.Finished, r.Retransmitted)
				}
				used[n.fabric.Node(r.Spec.Dst).Name]++
			}
			if n.Finished != 40 || len(used) != 3 || used["h2"] == 0 || used["h4"] == 0 || used["h5"] == 0 {
				t.Errorf("%d flows finished, at %v; want 40 over h2, h4 and h5", n.Finished, used)
			}
			if wrapped < 40*20 || (straight == 0) != (f.Transport == traffic.UDP) {
				t.Errorf("%d packets in tunnels, %d answers; want all data, and answers but of UDP", wrapped, straight)
			}
			n.clean(t)
		})
	}
}

// checkFrame holds that a packet in a tunnel is as long as its frame, and that
// lengths and checksums of the headers are right.
func checkFrame(t *testing.T, n *Network, p *Packet, from *Port) {
	t.Helper()
	frame := n.AppendFrame(nil, p, from)
	rest := frame[ethernetSize:]
	for range 2 {
		var v4 packet.IPv4
		var v6 packet.IPv6
		size, total, sum := 0, 0, uint16(0)
		if rest[0]>>4 == 6 {
			size, _ = v6.Parse(rest)
			total = int(v6.Length) + size
		} else {
			size, _ = v4.Parse(rest)
			total, sum = int(v4.Length), v4.Checksum-v4.Sum()
		}
		if total != len(rest) || sum != 0 || len(frame) != int(p.Size) {
			t.Fatalf("frame %x of %d bytes: header of %d bytes says %d, checksum off by %d; want %d bytes", frame, len(frame), size, total, sum, p.Size)
		}
		rest = rest[size:]
	}
	var got packet.Packet
	if err := got.Parse(frame); err != nil || got.Innermost().Key != p.Key || got.Outer.Key != p.Extra.Outer[0] {
		t.Fatalf("Parse(%x) = %v in %v, %v; want %v in %v", frame, got.Innermost().Key, got.Outer.Key, err, p.Key, p.Extra.Outer[0])
	}
}

// TestLoneFlowThroughAMuxTakesTheIdealTime is the same promise as without one.
func TestLoneFlowThroughAMuxTakesTheIdealTime(t *testing.T) {
	for _, size := range []model.Bytes{1, 1024, 1025, 100_000, 3_000_000} {
		for _, to := range []model.Addr{vip4, vip6} {
			n := yard(t, nil)
			n.add(t, traffic.Flow{Src: 1, To: to, Bytes: size, Priority: 3, Start: 1000})
			n.run(50 * time.Millisecond)
			r := n.Records()[0]
			if !r.Finished || r.FCT() != r.Ideal || r.FCT() < engine.Of(muxDelay) {
				t.Errorf("%d bytes to %v: completion %d ps; want the ideal %d ps", size, to, r.FCT(), r.Ideal)
			}
			n.clean(t)
		}
	}
}

// TestTunnelKeepsTheInnerHeader checks a packet on its last link: the TTL of
// the tunnel has fallen since the mux, that of the inner packet up to it.
func TestTunnelKeepsTheInnerHeader(t *testing.T) {
	n := yard(t, func(c *Config) { c.TTL = 20 })
	n.add(t, traffic.Flow{Src: 1, To: vip4, Bytes: 100, Priority: 3, Start: 1000})
	dst := n.flows[0].dst
	hops := 1
	if dst.Name != "h2" {
		hops = 3
	}
	seen := 0
	last := dst.ports[0].peer
	last.SetTap(func(_ engine.Time, p *Packet) {
		frame := n.AppendFrame(nil, p, last)
		var got packet.Packet
		if err := got.Parse(frame); err != nil {
			t.Fatal(err)
		}
		// One switch and the mux, then the switches to the backend.
		if in := got.Innermost(); got.Depth != 2 || int(got.Outer.TTL) != 20-hops || in.TTL != 18 || in.Key != n.flows[0].key || in.DSCP() != 24 || got.Outer.DSCP() != 24 {
			t.Errorf("depth %d, TTL %d over %d, key %v, DSCP %d; want 2, %d over 18, %v, 24", got.Depth, got.Outer.TTL, in.TTL, in.Key, in.DSCP(), 20-hops, n.flows[0].key)
		}
		seen++
	})
	n.run(time.Millisecond)
	if seen != 1 || n.Finished != 1 {
		t.Errorf("%d packets seen, %d flows finished; want one", seen, n.Finished)
	}
}

// TestMarksComeOutOfTunnels congests the path after the mux: the receiver must
// see the marks.
func TestMarksComeOutOfTunnels(t *testing.T) {
	n := yardOf(t, func(c *Config) { c.ECN = []ECNParams{{Kmin: 2000, Kmax: 4000, Pmax: 1}} })
	n.serve(t, Service{VIP: vip4, Backends: []model.Addr{n.fabric.Node(2).IPv4}}) // beside mux0
	n.add(t,
		traffic.Flow{Src: 1, To: vip4, Bytes: 1_000_000, Priority: 3, Start: 1000},
		traffic.Flow{Src: 0, Dst: 2, Bytes: 1_000_000, Priority: 3, Start: 1000})
	n.run(10 * time.Millisecond)
	f := n.flows[0]
	if f.dst.Name != "h2" || !f.done || f.rate >= f.port.rate {
		t.Errorf("flow to %s done %v at %v; want h2, true, slowed down", f.dst.Name, f.done, f.rate)
	}
	n.clean(t)
}

func TestSlowMuxIsSlow(t *testing.T) {
	n := yard(t, nil)
	for i := range 60 {
		n.add(t, traffic.Flow{Src: 1, To: vip4, Bytes: 100, Priority: 3, Start: model.Time(1000 + 50_000*i)})
	}
	mux := n.named(t, "mux0")
	n.inject(t, time.Millisecond, time.Millisecond, SlowMux{Host: mux, Delay: 300 * time.Microsecond})
	var last engine.Time
	n.Host(mux).ports[0].SetTap(func(engine.Time, *Packet) {
		m := n.Host(mux).mux
		if m.last < last {
			t.Fatalf("a packet is done at %v, one that came before it at %v", m.last, last)
		}
		last = m.last
	})
	n.run(10 * time.Millisecond)
	slowed := 0
	for _, r := range n.Records() {
		late := r.FCT() - r.Ideal
		during := r.Start >= engine.Millisecond && r.Start < 2*engine.Millisecond-engine.Of(muxDelay)
		switch {
		case during:
			slowed++
			if late < 299*engine.Microsecond || late > 301*engine.Microsecond {
				t.Errorf("the flow from %v is late by %v; want 300 µs", r.Start.Duration(), late.Duration())
			}
		case r.Start < 900*engine.Microsecond && late != 0:
			t.Errorf("the flow from %v is late by %v before the fault", r.Start.Duration(), late.Duration())
		}
	}
	if slowed < 15 || n.Finished != 60 {
		t.Errorf("%d flows slowed, %d finished; want about 20 and 60", slowed, n.Finished)
	}
	n.clean(t)
}

// TestMisdirectingMux injects each kind of wrong mux, for half of the flows.
func TestMisdirectingMux(t *testing.T) {
	for name, tc := range map[string]struct {
		to    string // a host, or an address
		want  Reason
		where string
	}{
		"drops":          {"", DropSilent, "mux0"},
		"wrong host":     {"h3", DropHost, "h3"},
		"outside":        {"203.0.113.99", DropHost, "world"},
		"another family": {"2001:db8::5", DropHost, "world"},
	} {
		t.Run(name, func(t *testing.T) {
			n := yard(t, nil)
			var flows []traffic.Flow
			for i := range 40 {
				flows = append(flows, traffic.Flow{Src: 1, To: vip4, Bytes: 5000, Priority: 3, Start: model.Time(1000 + 1000*i)})
			}
			n.add(t, flows...)
			f := MisdirectingMux{Host: n.named(t, "mux0"), Share: 0.5, Seed: 9}
			if tc.to == "h3" {
				f.To = n.fabric.Node(3).IPv4
			} else if tc.to != "" {
				f.To = addr(tc.to)
			}
			n.inject(t, 0, 3*time.Millisecond, f)
			n.run(2900 * time.Microsecond)
			if n.Finished < 10 || n.Finished > 30 {
				t.Errorf("%d of 40 flows finished under the fault; want about half", n.Finished)
			}
			during := n.Counts.Drops
			if during[tc.want] == 0 {
				t.Errorf("drops %v; want some for %v", during, tc.want)
			}
			if at := n.hosts[n.named(t, tc.where)].ports[0].Drops[tc.want]; at != during[tc.want] {
				t.Errorf("%d of %d drops are at %s; want all", at, during[tc.want], tc.where)
			}
			n.run(50 * time.Millisecond)
			if n.Finished != 40 {
				t.Errorf("%d flows finished after the fault; want all 40", n.Finished)
			}
		})
	}
}

// TestMuxWithoutService loses what it has no backends for.
func TestMuxWithoutService(t *testing.T) {
	n := yard(t, nil)
	stray := n.Host(1).NewPacket()
	stray.Kind, stray.TTL, stray.Size = KindUDP, 9, 100
	stray.Key = model.FlowKey{Src: n.fabric.Node(1).IPv4, Dst: addr("192.0.2.77"), Proto: model.UDP}
	n.Host(1).Send(stray, n.Host(1).ports[0])
	n.run(time.Millisecond)
	if got := n.Host(n.named(t, "mux0")).ports[0].Drops[DropNoRoute]; got != 1 {
		t.Errorf("%d packets to an address without service dropped at the mux; want 1", got)
	}
}

// TestPacketsOfNoFlowPassTheMux sends a datagram without a flow: it leaves the
// tunnel unchanged.
func TestPacketsOfNoFlowPassTheMux(t *testing.T) {
	n := yard(t, nil)
	p := n.Host(1).NewPacket()
	p.Kind, p.TTL, p.DSCP, p.ECN, p.Size, p.IPID = KindUDP, 9, 7, ECT, minFrame, 77
	p.Key = model.FlowKey{Src: n.fabric.Node(1).IPv4, Dst: vip4, SrcPort: 5, DstPort: 6, Proto: model.UDP}
	key := p.Key
	var got []Packet
	for _, h := range n.hosts {
		h.SetReceiver(func(p *Packet) { got = append(got, *p) })
	}
	n.Host(1).Send(p, n.Host(1).ports[0])
	n.run(time.Millisecond)
	if len(got) != 1 {
		t.Fatalf("%d packets received; want 1", len(got))
	}
	if g := got[0]; g.Key != key || g.TTL != 7 || g.DSCP != 7 || g.ECN != ECT || g.Size != minFrame || g.IPID != 77 || g.tunnelled() {
		t.Errorf("received %+v; want it as it was sent, its TTL less by 2", g)
	}
	n.clean(t)
}

func TestServiceErrors(t *testing.T) {
	n := yard(t, nil)
	h1, spare := n.fabric.Node(1).IPv4, addr("192.0.2.11")
	for name, s := range map[string]Service{
		"nobody's":        {VIP: model.Addr{Hi: 1}, Backends: []model.Addr{h1}},
		"a host's":        {VIP: h1, Backends: []model.Addr{h1}},
		"the world's":     {VIP: outside4, Backends: []model.Addr{h1}},
		"the mux's own":   {VIP: n.fabric.Node(n.named(t, "mux0")).IPv4, Backends: []model.Addr{h1}},
		"twice":           {VIP: vip4, Backends: []model.Addr{h1}},
		"no backend":      {VIP: spare},
		"switch backend":  {VIP: spare, Backends: []model.Addr{n.fabric.Node(n.named(t, "tor0")).IPv4}},
		"mux as backend":  {VIP: spare, Backends: []model.Addr{n.fabric.Node(n.named(t, "mux0")).IPv4}},
		"another family":  {VIP: spare, Backends: []model.Addr{n.fabric.Node(1).IPv6}},
		"virtual backend": {VIP: spare, Backends: []model.Addr{addr("192.0.2.12")}},
		"back in time":    {VIP: spare, Backends: []model.Addr{h1}, Delay: -1},
	} {
		if err := n.AddService(s); err == nil {
			t.Errorf("%s: Serve(%v) = nil; want an error", name, s)
		}
	}
	if err := n.AddService(Service{VIP: spare, Backends: []model.Addr{h1}}); err != nil {
		t.Errorf("Serve(a good service) = %v; want no error", err)
	}
}

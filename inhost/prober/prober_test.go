package prober

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/inhost"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/probe"
)

func addr(s string) model.Addr { return model.AddrOf(netip.MustParseAddr(s)) }

func drawPacket(t *rapid.T) Packet {
	family := func(v6 bool) model.Addr {
		if v6 {
			return model.Addr{Hi: 0x2001_0db8 << 32, Lo: rapid.Uint64().Draw(t, "low")}
		}
		return model.Addr4(rapid.Uint32().Draw(t, "v4"))
	}
	v6 := rapid.Bool().Draw(t, "v6")
	p := Packet{
		Key: model.FlowKey{Src: family(v6), Dst: family(v6), V6: v6, Proto: rapid.SampledFrom([]model.Proto{model.TCP, model.UDP, 253}).Draw(t, "proto")},
		TTL: rapid.Uint8().Draw(t, "ttl"), DSCP: rapid.Uint8Range(0, 63).Draw(t, "dscp"), ECN: rapid.Uint8Range(0, 3).Draw(t, "ecn"),
		IPID: rapid.Uint16().Draw(t, "ipid"), Payload: rapid.IntRange(0, 300).Draw(t, "payload"),
	}
	if p.Key.Proto != 253 {
		p.Key.SrcPort, p.Key.DstPort = rapid.Uint16().Draw(t, "sport"), rapid.Uint16Range(5000, 6000).Draw(t, "dport")
	}
	if p.Key.Proto == model.TCP {
		p.Seq, p.TCPFlags = rapid.Uint32().Draw(t, "seq"), packet.TCPFlags(rapid.Uint8().Draw(t, "flags"))
	}
	for range rapid.IntRange(0, 7).Draw(t, "depth") {
		outer := rapid.Bool().Draw(t, "outer v6")
		p.Tunnels = append(p.Tunnels, Tunnel{Src: family(outer), Dst: family(outer), TTL: rapid.Uint8().Draw(t, "outer ttl")})
	}
	return p
}

// TestPacketsAreRead takes probes apart again, header by header: all is what
// was asked for, marked at every depth, with a checksum that no host accepts.
func TestPacketsAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPacket(t)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		s := probe.Stamp{Origin: 3, Series: rapid.Uint32().Draw(t, "series"), Number: rapid.Uint32().Draw(t, "number")}
		ip := p.AppendTo(nil, s, 1)
		if len(ip) != p.Size() {
			t.Fatalf("%d bytes; want %d", len(ip), p.Size())
		}
		frame := append(packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil), ip...)
		if ip[0]>>4 == 6 {
			frame[12], frame[13] = 0x86, 0xdd
		}
		if got, err := probe.FindStamp(frame[:p.StampEnd()]); err != nil || got != s {
			t.Fatalf("stamp %+v, %v in the first %d bytes; want %+v", got, err, p.StampEnd(), s)
		}
		for depth := range len(p.Tunnels) + 1 {
			var got packet.Packet
			if err := got.ParseIP(ip); err != nil || int(got.Depth) != len(p.Tunnels)+1-depth || got.Outer.DSCP() != p.DSCP|1 || got.Outer.ECN() != p.ECN {
				t.Fatalf("depth %d of %x: %v, %d headers, DSCP %d; want %d, %d", depth, ip, err, got.Depth, got.Outer.DSCP(), len(p.Tunnels)+1-depth, p.DSCP|1)
			}
			in := got.Innermost()
			if in.Key != p.Key || in.Flags&(packet.Truncated|packet.Malformed) != 0 || in.Seq != p.Seq || in.TCPFlags != p.TCPFlags && p.Key.Proto == model.TCP {
				t.Fatalf("%+v inside; want %+v", in, p)
			}
			if !p.Key.V6 && uint16(in.ID) != p.IPID+uint16(s.Number) {
				t.Fatalf("IPID %d; want %d", in.ID, p.IPID+uint16(s.Number))
			}
			if depth < len(p.Tunnels) {
				if h := p.Tunnels[depth]; got.Outer.Key.Src != h.Src || got.Outer.Key.Dst != h.Dst || h.TTL != 0 && got.Outer.TTL != h.TTL {
					t.Fatalf("tunnel %d: %+v; want %+v", depth, got.Outer, h)
				}
				ip = ip[ipSize(got.Outer.Key.V6):]
				continue
			}
			segment := ip[ipSize(p.Key.V6):]
			if p.Key.Proto == 253 {
				continue
			}
			if packet.TransportChecksum(p.Key.Src, p.Key.Dst, p.Key.V6, p.Key.Proto, segment) == 0 {
				t.Fatalf("segment %x has a right checksum", segment)
			}
			if p.Key.Proto == model.UDP && segment[6] == 0 && segment[7] == 0 {
				t.Fatalf("datagram %x says that it has no checksum", segment)
			}
		}
	})
}

func TestChecks(t *testing.T) {
	good := Packet{Key: model.FlowKey{Src: addr("10.0.0.1"), Dst: addr("10.0.0.2"), Proto: model.UDP}}
	for name, change := range map[string]func(p *Packet){
		"no address":   func(p *Packet) { p.Key = model.FlowKey{} },
		"two families": func(p *Packet) { p.Key.Dst = addr("2001:db8::1") },
		"long":         func(p *Packet) { p.Payload = 5000 },
		"dscp":         func(p *Packet) { p.DSCP = 64 },
		"deep":         func(p *Packet) { p.Tunnels = make([]Tunnel, 8) },
		"odd tunnel":   func(p *Packet) { p.Tunnels = []Tunnel{{Src: addr("10.0.0.1"), Dst: addr("2001:db8::1")}} },
	} {
		p := good
		if change(&p); p.Check() == nil {
			t.Errorf("%s: no error about %+v", name, p)
		}
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	p, _ := New(DefaultConfig(1))
	for name, s := range map[string]Series{
		"no packets":  {Count: 1, Interval: 1},
		"none":        {Patterns: []Packet{good}, Interval: 1},
		"no interval": {Patterns: []Packet{good}, Count: 1},
		"bad packet":  {Patterns: []Packet{{}}, Count: 1, Interval: 1},
	} {
		if p.Start(0, s) == nil {
			t.Errorf("%s: no error about %+v", name, s)
		}
	}
}

// sent is a probe and when it was.
type sent struct {
	at model.Time
	probe.Stamp
}

// TestSeriesKeepTheirBeat draws series and asks as a host does: as often as Wake
// says. Every probe is sent once, none early, within the budget, in the order
// and at the times that a list of all due times gives.
func TestSeriesKeepTheirBeat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig(5)
		bounded := rapid.Bool().Draw(t, "bounded")
		if !bounded {
			cfg.Budget = inhost.Budget{}
		} else {
			cfg.Budget = inhost.Budget{Rate: 8 * model.Mbps, Burst: model.Bytes(rapid.IntRange(44, 500).Draw(t, "burst"))} // a byte per µs
		}
		p, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		packets := []Packet{
			{Key: model.FlowKey{Src: addr("10.0.0.1"), Dst: addr("10.0.0.2"), Proto: model.UDP}},
			{Key: model.FlowKey{Src: addr("10.0.0.1"), Dst: addr("10.0.0.3"), Proto: model.UDP}},
		}
		var want []sent
		for i := range rapid.IntRange(1, 4).Draw(t, "series") {
			s := Series{ID: uint32(i), Patterns: packets, Interval: time.Duration(rapid.IntRange(1, 200_000).Draw(t, "interval")), Count: uint32(rapid.IntRange(1, 20).Draw(t, "count"))}
			if err := p.Start(0, s); err != nil {
				t.Fatal(err)
			}
			for k := range s.Count {
				want = append(want, sent{model.Time(time.Duration(k) * s.Interval), probe.Stamp{Origin: 5, Series: s.ID, Number: k}})
			}
		}
		slices.SortStableFunc(want, func(a, b sent) int { return int(a.at - b.at) })
		var got []sent
		buf := make([]byte, 0, 100)
		bytes, stalls := model.Bytes(0), 0
		for now := model.Time(0); ; {
			at, ok := p.NextSend(now)
			if !ok {
				break
			}
			if at < now {
				t.Fatalf("wake at %v, it is %v", at, now)
			}
			now = at
			var b []byte
			if b, ok = p.AppendNext(now, buf[:0]); !ok {
				now++ // the budget is rounded to nanoseconds
				if stalls++; stalls > len(want) {
					t.Fatalf("nothing to send %d times although it was due", stalls)
				}
				continue
			}
			var read packet.Packet
			if err := read.ParseIP(b); err != nil {
				t.Fatal(err)
			}
			var s probe.Stamp
			if _, err := s.Parse(b[read.Outer.Payload:]); err != nil {
				t.Fatal(err)
			}
			if read.Outer.Key != packets[s.Number%2].Key {
				t.Fatalf("probe %d to %v; want patterns in turn", s.Number, read.Outer.Key)
			}
			got = append(got, sent{now, s})
			bytes += model.Bytes(len(b))
			if bounded && float64(bytes) > float64(cfg.Budget.Burst)+float64(now)/1000+45 {
				t.Fatalf("%v sent by %v; want %v and a byte per µs", bytes, now, cfg.Budget.Burst)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d probes; want %d", len(got), len(want))
		}
		for i := range got {
			if got[i].Stamp != want[i].Stamp || got[i].at < want[i].at || !bounded && got[i].at != want[i].at {
				t.Fatalf("probe %d: %+v; want %+v", i, got[i], want[i])
			}
		}
		if s := p.Stats(); s.Sent != uint64(len(want)) || s.Bytes != bytes || !bounded && s.Delayed != 0 {
			t.Fatalf("%+v; want %d probes, %v", s, len(want), bytes)
		}
	})
}

func TestStop(t *testing.T) {
	cfg := DefaultConfig(1)
	cfg.MaxSeries = 2
	p, _ := New(cfg)
	s := Series{ID: 1, Patterns: []Packet{{Key: model.FlowKey{Src: addr("10.0.0.1"), Dst: addr("10.0.0.2"), Proto: model.UDP}}}, Count: 5, Interval: 10}
	for i, want := range []bool{true, false} {
		if err := p.Start(0, s); (err == nil) != want {
			t.Errorf("start %d of series 1: %v", i, err)
		}
	}
	s.ID = 2
	_ = p.Start(0, s)
	s.ID = 3
	if err := p.Start(0, s); err != ErrFull {
		t.Errorf("a third series: %v; want %v", err, ErrFull)
	}
	if !p.Stop(1) || p.Stop(1) || !p.Stop(2) {
		t.Error("series end other than they should")
	}
	if _, ok := p.NextSend(0); ok {
		t.Error("all series were stopped, and something is due")
	}
}

func TestSendAllocs(t *testing.T) {
	p, _ := New(DefaultConfig(1))
	s := Series{ID: 1, Patterns: []Packet{{Key: model.FlowKey{Src: addr("10.0.0.1"), Dst: addr("10.0.0.2"), Proto: model.UDP}}}, Count: 1 << 30, Interval: 1}
	if err := p.Start(0, s); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 0, 200)
	now := model.Time(0)
	if n := testing.AllocsPerRun(100, func() {
		now += 1e6
		b, _ = p.AppendNext(now, b[:0])
	}); n != 0 {
		t.Errorf("Send allocates %v times; want 0", n)
	}
}

package postcard

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/keyed"
	"github.com/weft-telemetry/weft/wire/packet"
)

// numbered is a packet with a sequence number.
type numbered struct {
	inswitch.Source
	seq uint32
}

func (n numbered) Seq() uint32 { return n.seq }

// tor has a host at its first port.
func tor(id model.NodeID) inswitch.Device {
	return inswitch.Device{ID: id, Ports: []inswitch.Port{{FacesHost: true}, {}}}
}

func departure(key *model.FlowKey, ipid uint16, seq uint32, ttl uint8, out model.PortID) inswitch.Event {
	return inswitch.Event{
		Stage: inswitch.Dequeue, Out: out, Now: 5e9, Latency: 1500, DepthAtEnqueue: 9000,
		Packet: &inswitch.Packet{Key: key, Outer: key, IPID: ipid, TTL: ttl, EtherType: packet.TypeIPv4, Source: numbered{seq: seq}},
	}
}

func anyFlow(t *rapid.T) model.FlowKey {
	if rapid.Bool().Draw(t, "IPv6") {
		src := netip.AddrPortFrom(netip.MustParseAddr("fd00::2"), rapid.Uint16().Draw(t, "port"))
		return model.NewFlowKey(src, netip.MustParseAddrPort("[fd00::3]:80"), model.TCP)
	}
	src := netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), rapid.Uint16().Draw(t, "port"))
	return model.NewFlowKey(src, netip.MustParseAddrPort("10.0.1.2:80"), model.TCP)
}

// TestAllSwitchesSendTheSamePostcards sends packets through three switches: all or none
// report it, under the same keys, each with its own hop and values.
func TestAllSwitchesSendTheSamePostcards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		cfg.FlowOneIn = rapid.SampledFrom([]uint32{0, 1, 3}).Draw(t, "flows")
		cfg.PacketOneIn, cfg.MarkedOneIn = rapid.SampledFrom([]uint32{1, 4}).Draw(t, "packets"), rapid.SampledFrom([]uint32{1, 4}).Draw(t, "marked packets")
		cfg.Seed = rapid.Uint64().Draw(t, "seed")
		key := anyFlow(t)
		ipid, seq := rapid.Uint16().Draw(t, "IPID"), rapid.Uint32().Draw(t, "sequence number")
		marked := rapid.Bool().Draw(t, "marked")
		start := rapid.SampledFrom([]uint8{64, 128, 255}).Draw(t, "TTL")
		var keys [3][]string
		for hop := range uint8(3) {
			p, err := New(tor(model.NodeID(70+hop)), cfg)
			if err != nil {
				t.Fatal(err)
			}
			out := model.PortID(2)
			if hop == 2 {
				out = 1
			}
			ev := departure(&key, ipid, seq, start-1-hop, out)
			if marked {
				ev.Packet.DSCP = 1
			}
			var act inswitch.Actions
			p.Observe(&ev, &act)
			var words [keyed.Parts]uint32
			for i := range act.Reports {
				r := &act.Reports[i]
				var k keyed.PostcardKey
				if err := r.Check(); err != nil || r.Primitive != dta.Postcarding || r.Hop != hop || k.Parse(r.Key) != nil || int(k.Part) != i || len(r.Data) != 4 {
					t.Fatalf("report %+v, %v; want part %d of hop %d", r, err, i, hop)
				}
				if want := uint8(hop+1) * (hop / 2); r.Path != want {
					t.Fatalf("path of %d hops at hop %d; want %d, known by the last only", r.Path, hop, want)
				}
				words[i] = binary.BigEndian.Uint32(r.Data)
				keys[hop] = append(keys[hop], string(r.Key))
			}
			if len(act.Reports) == 0 {
				if cfg.MarkedOneIn == 1 && marked || cfg.PacketOneIn == 1 && cfg.FlowOneIn == 1 {
					t.Fatal("no postcard of a packet that must have one")
				}
				continue
			}
			if !marked && cfg.FlowOneIn == 0 {
				t.Fatal("a postcard of a packet that is neither marked nor sampled")
			}
			got, ok := keyed.ParsePostcard(words, ev.Now)
			if !ok || got.Switch != model.NodeID(70+hop) || got.Latency != 1504 || got.Queue != 9024 {
				t.Fatalf("postcard %+v, %v; want the switch's, 1500 ns and 9000 bytes, rounded", got, ok)
			}
		}
		for hop := 1; hop < 3; hop++ {
			if len(keys[hop]) != len(keys[0]) {
				t.Fatalf("hop 0 sent %d reports, hop %d %d", len(keys[0]), hop, len(keys[hop]))
			}
			for i := range keys[hop] {
				if keys[hop][i] != keys[0][i] {
					t.Fatalf("hop %d has key %x; want %x", hop, keys[hop][i], keys[0][i])
				}
			}
		}
	})
}

// TestPacketsWithoutPostcards: each chosen packet has a postcard or is counted.
func TestPacketsWithoutPostcards(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MarkedOneIn, cfg.Rate, cfg.Burst = 1, 1000, 2
	key := model.NewFlowKey(netip.MustParseAddrPort("10.0.0.2:1"), netip.MustParseAddrPort("10.0.1.2:80"), model.UDP)
	report, tunnel := key, key
	report.DstPort, tunnel.Dst = dta.Port, model.Addr4(9)
	p, err := New(tor(1), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(ev *inswitch.Event)
		want   func(s *Stats)
	}{
		"TTL of no host":     {func(ev *inswitch.Event) { ev.Packet.TTL = 40 }, func(s *Stats) { s.NoHop++ }},
		"originated here":    {func(ev *inswitch.Event) { ev.Packet.TTL = 255 }, func(s *Stats) { s.NoHop++ }},
		"in a tunnel":        {func(ev *inswitch.Event) { ev.Packet.Outer = &tunnel }, func(s *Stats) { s.Tunnelled++ }},
		"a report":           {func(ev *inswitch.Event) { ev.Packet.Key, ev.Packet.Outer = &report, &report }, func(s *Stats) { s.Chosen-- }},
		"not IP":             {func(ev *inswitch.Event) { ev.Packet.EtherType = 0x8808 }, func(s *Stats) { s.Chosen-- }},
		"without a mark":     {func(ev *inswitch.Event) { ev.Packet.DSCP = 2 }, func(s *Stats) { s.Chosen-- }},
		"one that has":       {func(*inswitch.Event) {}, func(s *Stats) { s.Sent++ }},
		"one a second later": {func(ev *inswitch.Event) { ev.Now += 1e9 }, func(s *Stats) { s.Sent++ }},
	} {
		ev := departure(&key, 7, 7, 63, 1)
		ev.Packet.DSCP = 1
		tc.change(&ev)
		want := p.Stats()
		want.Chosen++
		tc.want(&want)
		p.full = 0
		p.Observe(&ev, &inswitch.Actions{})
		if got := p.Stats(); got != want {
			t.Errorf("%s: %+v; want %+v", name, got, want)
		}
	}
	p.full = 0
	before := p.Stats()
	for range 5 {
		ev := departure(&key, 7, 7, 63, 1)
		ev.Packet.DSCP = 1
		p.Observe(&ev, &inswitch.Actions{})
	}
	if got := p.Stats(); got.Sent-before.Sent != 2 || got.RateLimited != 3 || got.Chosen != got.Sent+got.Tunnelled+got.NoHop+got.RateLimited {
		t.Errorf("%+v after five packets at once; want two sent and three limited", got)
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	cfg := DefaultConfig()
	cfg.FlowOneIn, cfg.PacketOneIn = 1, 1
	p, _ := New(tor(1), cfg)
	key := model.NewFlowKey(netip.MustParseAddrPort("[fd00::2]:1"), netip.MustParseAddrPort("[fd00::3]:80"), model.UDP)
	ev := departure(&key, 0, 7, 63, 1)
	var act inswitch.Actions
	if n := testing.AllocsPerRun(100, func() { act.Reset(); ev.Now += model.Time(time.Second); p.Observe(&ev, &act) }); n != 0 {
		t.Errorf("Observe allocates %v times; want 0", n)
	}
	if p.Stats().Sent == 0 {
		t.Error("no postcard was sent")
	}
}

func TestCheck(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.FlowOneIn = maxOneIn + 1 },
		func(c *Config) { c.PacketOneIn = 0 },
		func(c *Config) { c.MarkedOneIn = 0 },
		func(c *Config) { c.DebugMask = 64 },
		func(c *Config) { c.Rate = 0 },
		func(c *Config) { c.Burst = 0 },
	} {
		c := DefaultConfig()
		change(&c)
		if _, err := New(tor(1), c); err == nil {
			t.Errorf("New(%+v) = nil; want an error", c)
		}
	}
	if _, err := New(tor(1<<16), DefaultConfig()); err == nil {
		t.Error("New with a switch id of 17 bits = nil; want an error")
	}
}

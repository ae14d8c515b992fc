package mirror

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/erspan"
	"github.com/weft-telemetry/weft/wire/gre"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// source is a packet of given bytes.
type source struct {
	seq   uint32
	frame []byte
}

func (s *source) Seq() uint32                     { return s.seq }
func (s *source) Labels() (b label.Block)         { return b }
func (s *source) CanPushLabel(label.Params) error { return nil }
func (s *source) AppendFrame(b []byte, limit int) []byte {
	if limit == 0 || limit > len(s.frame) {
		limit = len(s.frame)
	}
	return append(b, s.frame[:limit]...)
}

func (s *source) Route(key *model.FlowKey) (model.PortID, bool)         { return 2, true }
func (s *source) Queue(model.PortID, model.Priority) (q inswitch.Queue) { return q }

func flowKey(t testing.TB, s string) *model.FlowKey {
	t.Helper()
	k, err := model.ParseFlowKey(s)
	if err != nil {
		t.Fatal(err)
	}
	return &k
}

// rig is one switch and the packet that it is shown.
type rig struct {
	*Program
	src source
	pkt inswitch.Packet
	ev  inswitch.Event
	act inswitch.Actions
}

func newRig(t testing.TB, id model.NodeID, cfg Config) *rig {
	t.Helper()
	p, err := New(inswitch.Device{ID: id, IPv4: model.Addr4(0x0a0000fe), Ports: make([]inswitch.Port, 3)}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Program: p}
	key := flowKey(t, "tcp 10.0.0.2:40000 > 10.0.1.2:80")
	r.src.frame = make([]byte, 1000)
	r.pkt = inswitch.Packet{Key: key, Outer: key, Size: 1000, EtherType: packet.TypeIPv4, IPID: 7, TTL: 60, Source: &r.src}
	r.ev = inswitch.Event{Stage: inswitch.Ingress, In: 1, Now: 5000, Packet: &r.pkt, Switch: &r.src}
	return r
}

// why shows the packet and returns why it was mirrored.
func (r *rig) why(t testing.TB) mirror.Reasons {
	t.Helper()
	r.act.Reset()
	r.Observe(&r.ev, &r.act)
	if len(r.act.Reports) == 0 {
		return 0
	}
	var m mirror.Mirror
	if n, err := m.Parse(r.act.Reports[0].Data); err != nil || n != len(r.act.Reports[0].Data) {
		t.Fatalf("report %x: %d bytes, %v", r.act.Reports[0].Data, n, err)
	}
	return m.Reasons
}

func TestReasons(t *testing.T) {
	all := DefaultConfig()
	for name, tc := range map[string]struct {
		packet func(r *rig)
		cfg    func(c *Config)
		want   mirror.Reasons
	}{
		"plain":             {func(r *rig) {}, nil, 0},
		"SYN":               {func(r *rig) { r.pkt.TCPFlags = 2 }, nil, mirror.Flag},
		"RST":               {func(r *rig) { r.pkt.TCPFlags = 4 }, nil, mirror.Flag},
		"FIN, ACK":          {func(r *rig) { r.pkt.TCPFlags = 0x11 }, nil, mirror.Flag},
		"ACK":               {func(r *rig) { r.pkt.TCPFlags = 0x10 }, nil, 0},
		"SYN, not wanted":   {func(r *rig) { r.pkt.TCPFlags = 2 }, func(c *Config) { c.TCPFlags = false }, 0},
		"flags without":     {func(r *rig) { r.pkt.TCPFlags = 2; r.pkt.Key = flowKey(t, "udp 10.0.0.2:4 > 10.0.1.2:80") }, nil, 0},
		"marked":            {func(r *rig) { r.pkt.DSCP = 9 }, nil, mirror.Debug},
		"marked SYN":        {func(r *rig) { r.pkt.DSCP = 1; r.pkt.TCPFlags = 2 }, nil, mirror.Debug | mirror.Flag},
		"BGP":               {func(r *rig) { r.pkt.Key = flowKey(t, "tcp 10.0.0.2:40000 > 10.0.1.2:179") }, nil, mirror.Protocol},
		"BGP, reverse":      {func(r *rig) { r.pkt.Key = flowKey(t, "tcp 10.0.0.2:179 > 10.0.1.2:40000") }, nil, mirror.Protocol},
		"not BGP":           {func(r *rig) { r.pkt.Key = flowKey(t, "udp 10.0.0.2:179 > 10.0.1.2:40000") }, nil, 0},
		"CNP":               {func(r *rig) { r.pkt.Kind = inswitch.CNP }, nil, mirror.Protocol},
		"NAK":               {func(r *rig) { r.pkt.Kind = inswitch.Nak }, nil, mirror.Protocol},
		"RDMA CM":           {func(r *rig) { r.pkt.Kind = inswitch.ConnectionManagement }, nil, mirror.Protocol},
		"RDMA ack":          {func(r *rig) { r.pkt.Kind = inswitch.Ack }, nil, 0},
		"PFC":               {func(r *rig) { r.ev.Stage = inswitch.PFC; r.pkt.Key = &model.FlowKey{}; r.pkt.Outer = r.pkt.Key }, nil, mirror.Protocol},
		"all":               {func(r *rig) {}, func(c *Config) { c.SampleOneIn = 1 }, mirror.Sample},
		"rule":              {func(r *rig) {}, func(c *Config) { c.Rules = []Rule{{DstPorts: PortRange{80, 80}}} }, mirror.Rule},
		"another's rule":    {func(r *rig) {}, func(c *Config) { c.Rules = []Rule{{DstPorts: PortRange{81, 81}}} }, 0},
		"skipped":           {func(r *rig) { r.pkt.TCPFlags = 2 }, func(c *Config) { c.Rules = []Rule{{Skip: true}} }, 0},
		"skipped, marked":   {func(r *rig) { r.pkt.DSCP = 1 }, func(c *Config) { c.Rules = []Rule{{Skip: true}} }, mirror.Debug},
		"a higher priority": {func(r *rig) {}, func(c *Config) { c.Rules = []Rule{{Skip: true}, {Priority: 1}} }, mirror.Rule},
		"frame by type": {
			func(r *rig) { r.pkt.Key, r.pkt.EtherType = &model.FlowKey{}, 0x6888; r.pkt.Outer = r.pkt.Key },
			func(c *Config) { c.Rules = []Rule{{EtherType: 0x6888}} }, mirror.Rule,
		},
		"report": {func(r *rig) { r.pkt.Key = flowKey(t, "udp 10.0.0.2:4 > 10.0.1.2:40040") }, func(c *Config) { c.SampleOneIn = 1 }, 0},
		"answer": {func(r *rig) { r.pkt.Key = flowKey(t, "udp 10.0.0.2:4 > 10.0.1.2:40044") }, func(c *Config) { c.SampleOneIn = 1 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := all
			if tc.cfg != nil {
				tc.cfg(&cfg)
			}
			r := newRig(t, 9, cfg)
			tc.packet(r)
			if got := r.why(t); got != tc.want {
				t.Errorf("mirrored for %v; want %v", got, tc.want)
			}
		})
	}
}

func TestReportHoldsAllFields(t *testing.T) {
	cfg := DefaultConfig()
	cfg.SampleOneIn, cfg.List, cfg.Lists = 1, 100, 8
	r := newRig(t, 9, cfg)
	for i := range r.src.frame {
		r.src.frame[i] = byte(i)
	}
	r.why(t)
	var m mirror.Mirror
	if _, err := m.Parse(r.act.Reports[0].Data); err != nil {
		t.Fatal(err)
	}
	if m.Switch != 9 || m.In != 1 || m.Out != 2 || m.Time != 5000 || m.Length != 1000 || string(m.Frame) != string(r.src.frame[:128]) {
		t.Errorf("mirror %+v; want switch 9, ports 1 and 2, time 5000, 128 of 1000 bytes", m)
	}
	if want := 100 + dta.ListID(mirror.Shard(r.pkt.Key, 8)); r.act.Reports[0].List != want {
		t.Errorf("list %d; want %d", r.act.Reports[0].List, want)
	}
	r.pkt.Size, r.pkt.LabelCount = 1000+label.FirstGrowth, 1
	r.why(t)
	if _, err := m.Parse(r.act.Reports[0].Data); err != nil || len(m.Frame) != 128+label.FirstGrowth {
		t.Errorf("%d bytes of a packet with a label, %v; want the label beside 128", len(m.Frame), err)
	}
}

// TestSwitchesChooseTheSame: whatever switches and tunnels on the path do to a
// packet, all choose it or none does, and its mirrors meet in one list.
func TestSwitchesChooseTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		cfg.SampleOneIn, cfg.Lists = uint32(rapid.IntRange(1, 4).Draw(t, "every")), uint32(rapid.IntRange(1, 9).Draw(t, "lists"))
		a, b := newRig2(t, 1, cfg), newRig2(t, 2, cfg)
		for range 20 {
			key := drawKey(t)
			a.pkt.Key, a.pkt.Outer, b.pkt.Key, b.pkt.Outer = &key, &key, &key, &key
			id := rapid.Uint16Range(0, 3).Draw(t, "IPID")
			seq := rapid.Uint32Range(0, 3).Draw(t, "seq")
			a.pkt.IPID, b.pkt.IPID, a.src.seq, b.src.seq = id, id, seq, seq
			b.pkt.TTL, b.pkt.ECN, b.ev.In, b.ev.Now = 3, 3, 2, 77
			if rapid.Bool().Draw(t, "in a tunnel") {
				outer := drawKey(t)
				b.pkt.Outer = &outer
			}
			for _, r := range []*rig{a, b} {
				r.act.Reset()
				r.Observe(&r.ev, &r.act)
			}
			if len(a.act.Reports) != len(b.act.Reports) {
				t.Fatalf("one of two switches chooses %v, IPID %d, number %d", key, id, seq)
			}
			if len(a.act.Reports) > 0 && !key.IsZero() && a.act.Reports[0].List != b.act.Reports[0].List {
				t.Fatalf("mirrors of %v go to lists %d and %d", key, a.act.Reports[0].List, b.act.Reports[0].List)
			}
		}
	})
}

func newRig2(t *rapid.T, id model.NodeID, cfg Config) *rig {
	p, err := New(inswitch.Device{ID: id, Ports: make([]inswitch.Port, 3)}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Program: p}
	r.src.frame = make([]byte, 200)
	r.pkt = inswitch.Packet{Size: 200, Source: &r.src}
	r.ev = inswitch.Event{Stage: inswitch.Ingress, In: 1, Packet: &r.pkt, Switch: &r.src}
	return r
}

// TestSampleIsOneInN: within four standard deviations, by IPID and by number,
// and a thinner sample is part of a thicker one.
func TestSampleIsOneInN(t *testing.T) {
	const packets = 20000
	for _, every := range []uint32{2, 10, 100} {
		for _, byIPID := range []bool{true, false} {
			cfg := DefaultConfig()
			cfg.SampleOneIn, cfg.Rate = every, 0
			r := newRig(t, 1, cfg)
			cfg.SampleOneIn *= 3
			thin := newRig(t, 1, cfg)
			for i := range packets {
				for _, x := range []*rig{r, thin} {
					x.pkt.IPID, x.src.seq = 0, uint32(i)
					if byIPID {
						x.pkt.IPID, x.src.seq = uint16(i+1), 0
					}
				}
				if fat := r.why(t); thin.why(t) != 0 && fat == 0 {
					t.Fatalf("packet %d is in one of %d and not in one of %d", i, cfg.SampleOneIn, every)
				}
			}
			p := 1 / float64(every)
			if got := float64(r.Stats().Sample); math.Abs(got-packets*p) > 4*math.Sqrt(packets*p*(1-p)) {
				t.Errorf("one in %d of %d packets is %v", every, packets, got)
			}
		}
	}
}

// TestNeverMirrorsAMirror sends what the program itself sends, in all kinds,
// also inside of tunnels, through a switch that mirrors everything.
func TestNeverMirrorsAMirror(t *testing.T) {
	inner := make([]byte, 60)
	greKey := flowKey(t, "gre 10.0.0.2:0 > 10.0.1.2:0")
	outer := flowKey(t, "4 10.0.9.9:0 > 10.0.8.8:0")
	for name, tc := range map[string]struct {
		content []byte
		own     bool
	}{
		"I":        {erspan.Mirror{Kind: erspan.TypeI, Frame: inner}.AppendTo(nil), true},
		"II":       {erspan.Mirror{Kind: erspan.TypeII, Frame: inner}.AppendTo(nil), true},
		"III":      {erspan.Mirror{Kind: erspan.TypeIII, Frame: inner}.AppendTo(nil), true},
		"Mellanox": {erspan.Mirror{Kind: erspan.Mellanox, Frame: inner}.AppendTo(nil), true},
		"GRE":      {append(gre.Header{Protocol: 0x1234}.AppendTo(nil), inner...), false},
	} {
		for _, tunnel := range []bool{false, true} {
			cfg := DefaultConfig()
			cfg.SampleOneIn = 1
			r := newRig(t, 1, cfg)
			r.pkt.Key, r.pkt.Outer = greKey, greKey
			b := ipv4(greKey, tc.content)
			if tunnel {
				r.pkt.Outer = outer
				b = ipv4(outer, b)
			}
			r.src.frame = append(packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil), b...)
			r.pkt.Size = int32(len(r.src.frame))
			if got := r.why(t) == 0; got != tc.own || (r.Stats().Telemetry == 1) != tc.own {
				t.Errorf("%s, in a tunnel %v: left alone %v, stats %+v; want %v", name, tunnel, got, r.Stats(), tc.own)
			}
		}
	}
}

func ipv4(key *model.FlowKey, content []byte) []byte {
	h := packet.IPv4{Length: uint16(packet.IPv4Size + len(content)), TTL: 9, Proto: key.Proto, Src: key.Src.V4(), Dst: key.Dst.V4()}
	return append(h.AppendTo(nil), content...)
}

func TestERSPAN(t *testing.T) {
	for _, kind := range []erspan.Kind{erspan.TypeI, erspan.TypeII, erspan.TypeIII, erspan.Mellanox} {
		cfg := DefaultConfig()
		cfg.SampleOneIn, cfg.Kind, cfg.Session = 1, kind, 7
		cfg.Collectors = []model.Addr{model.Addr4(0x0a000009), model.Addr4(0x0a00000a), {Hi: 0xfd00 << 48, Lo: 1}}
		r := newRig(t, 1, cfg)
		for i := range uint16(50) {
			key := *r.pkt.Key
			key.SrcPort = i
			r.pkt.Key, r.pkt.Outer = &key, &key
			r.act.Reset()
			r.Observe(&r.ev, &r.act)
			if len(r.act.Sends) != 1 || len(r.act.Reports) != 0 {
				t.Fatalf("%d packets and %d reports; want one packet", len(r.act.Sends), len(r.act.Reports))
			}
			s := r.act.Sends[0]
			var m erspan.Mirror
			if _, err := m.Parse(s.Content); err != nil || m.Kind != kind || len(m.Frame) != 128 {
				t.Fatalf("%+v, %v; want 128 bytes of kind %d", m, err, kind)
			}
			if port, ok := m.Port(); ok && port != 1 || kind == erspan.TypeII && (!ok || m.Session != 7 || !m.Truncated || m.GRE.Seq != uint32(i)) {
				t.Errorf("mirror %d: %+v; want port 1, session 7, truncated", i, m)
			}
			if want := cfg.Collectors[mirror.Shard(&key, 3)]; s.Key.Dst != want || s.Key.V6 == want.Is4() || s.Key.Proto != model.GRE || s.DSCP != 8 || s.TTL != 255 {
				t.Errorf("sent as %+v; want to %v", s, want)
			}
		}
	}
}

// TestBudget: the bytes of mirrors never exceed burst and rate times time, all
// that is not mirrored is counted, and marked packets pass when samples do not.
func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		cfg.SampleOneIn, cfg.Rate, cfg.Burst = 1, model.Rate(rapid.Int64Range(1, 1e10).Draw(t, "rate")), model.Bytes(rapid.Int64Range(1024, 10000).Draw(t, "burst"))
		r := newRig2(t, 1, cfg)
		key := model.FlowKey{Proto: model.TCP, SrcPort: 1}
		r.pkt.Key, r.pkt.Outer = &key, &key
		start := r.ev.Now
		for range 200 {
			r.ev.Now += model.Time(rapid.Int64Range(-100, 3000).Draw(t, "step"))
			start = min(start, r.ev.Now)
			r.act.Reset()
			r.Observe(&r.ev, &r.act)
		}
		s := r.Stats()
		// Steps back are counted again when they are gone forward again: 100
		// ns each at most.
		most := float64(cfg.Burst) + float64(cfg.Rate)/8*(r.ev.Now.Sub(start)+200*100*time.Nanosecond).Seconds()
		if float64(s.Bytes) > most || s.Mirrored+s.RateLimited != 200 {
			t.Fatalf("%+v; want at most %v bytes, and 200 packets accounted for", s, most)
		}
	})
	cfg := DefaultConfig()
	cfg.SampleOneIn, cfg.Rate, cfg.Burst = 1, 1, 8192
	r := newRig(t, 1, cfg)
	for range 100 {
		r.why(t)
	}
	r.pkt.DSCP = 1
	if r.why(t) != mirror.Debug|mirror.Sample || r.Stats().RateLimited == 0 {
		t.Errorf("a marked packet is not mirrored after a flood: %+v", r.Stats())
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	cfg := DefaultConfig()
	cfg.SampleOneIn = 1
	for range MaxRules {
		cfg.Rules = append(cfg.Rules, Rule{DstPorts: PortRange{80, 90}, OneIn: 2})
	}
	spanning := cfg
	spanning.Collectors = []model.Addr{model.Addr4(1)}
	for _, cfg := range []Config{cfg, spanning} {
		r := newRig(t, 1, cfg)
		if n := testing.AllocsPerRun(1000, func() {
			r.pkt.IPID++
			r.act.Reset()
			r.Observe(&r.ev, &r.act)
		}); n != 0 {
			t.Errorf("%v allocations; want 0", n)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	for name, change := range map[string]func(c *Config){
		"nothing":  func(c *Config) {},
		"sampling": func(c *Config) { c.SampleOneIn = 1 << 30 },
		"rules": func(c *Config) {
			for i := range MaxRules {
				c.Rules = append(c.Rules, Rule{SrcPorts: PortRange{uint16(i + 1), uint16(i + 9)}, Proto: model.UDP})
			}
		},
		"all": func(c *Config) { c.SampleOneIn, c.Rate = 1, 0 },
	} {
		b.Run(name, func(b *testing.B) {
			cfg := DefaultConfig()
			change(&cfg)
			r := newRig(b, 1, cfg)
			for b.Loop() {
				r.act.Reset()
				r.Observe(&r.ev, &r.act)
			}
		})
	}
}

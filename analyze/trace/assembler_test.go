package trace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// The fabric of these tests: hosts 0 to 15, ToRs 16 to 23, leaves 24 to 31,
// spines 32 to 35.
var fabric, routes, intent = func() (*topo.Fabric, *topo.Routes, *topo.Intent) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		panic(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		panic(err)
	}
	return f, r, topo.NewIntent(r)
}()

// header is one IP header of a packet.
type header struct {
	src, dst model.Addr
	ttl      uint8
}

func ipOf(id model.NodeID) model.Addr { return fabric.Node(id).IPv4 }

// frame writes a UDP packet under nested headers, the first one first.
func frame(headers []header, port, id uint16, payload []byte) []byte {
	b := packet.UDP{SrcPort: port, DstPort: 9, Length: uint16(8 + len(payload))}.AppendTo(nil)
	b = append(b, payload...)
	for i, h := range slices.Backward(headers) {
		proto := model.IPIP
		if i == len(headers)-1 {
			proto = model.UDP
		}
		ip := packet.IPv4{Length: uint16(20 + len(b)), ID: id, TTL: h.ttl, Proto: proto, Src: h.src.V4(), Dst: h.dst.V4()}
		b = append(ip.AppendTo(nil), b...)
	}
	return append(packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil), b...)
}

// seen is a mirror of a packet without tunnel from host 0.
func seen(at model.NodeID, to model.NodeID, ttl uint8, id uint16, when model.Time) *mirror.Mirror {
	f := frame([]header{{ipOf(0), ipOf(to), ttl}}, 1, id, make([]byte, 20))
	return &mirror.Mirror{Reasons: mirror.Sample, Switch: at, Time: when, Length: uint16(len(f)), Frame: f}
}

// gather assembles and returns copies of all that is closed.
func gather(t testing.TB, cfg Config, add func(a *Assembler)) ([]*Trace, Stats) {
	t.Helper()
	var list []*Trace
	a, err := NewAssembler(cfg, intent, func(tr *Trace) { list = append(list, tr.Clone()) })
	if err != nil {
		t.Fatal(err)
	}
	add(a)
	a.Flush()
	return list, a.Stats()
}

// noPorts is for mirrors without the out port.
func noPorts() Config {
	c := DefaultConfig()
	c.OutPorts = false
	return c
}

// pathTo is the switches of a packet from host 0 to another.
func pathTo(t testing.TB, to model.NodeID) (list []model.NodeID) {
	t.Helper()
	path, err := routes.Path(model.FlowKey{Src: ipOf(0), Dst: ipOf(to), SrcPort: 1, DstPort: 9, Proto: model.UDP}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range path[1 : len(path)-1] {
		list = append(list, h.Node)
	}
	return list
}

// TestDoublesAreCounted: a mirror that comes twice, and a packet that does.
func TestDoublesAreCounted(t *testing.T) {
	list, s := gather(t, noPorts(), func(a *Assembler) {
		a.AddMirror(0, seen(16, 15, 64, 7, 100))
		a.AddMirror(1, seen(24, 15, 63, 7, 200))
		a.AddMirror(2, seen(16, 15, 64, 7, 100))
		a.AddMirror(3, seen(16, 15, 64, 7, 900))
		a.AddMirror(4, seen(16, 15, 65, 7, 50)) // as if a hop before came late
	})
	got := list[0]
	if len(list) != 1 || got.Duplicates != 1 || got.Repeats != 1 || got.Reordered != 1 || got.Hops[1].Copies != 1 || s.Duplicates != 1 || s.Repeats != 1 {
		t.Errorf("%+v of %+v; want a duplicate, a repeat and one out of order", got, s)
	}
}

// TestFrameIsOfTheFirstHop: a mirror of a later hop comes first. The frame and its
// length are those that the first switch saw, not those with its labels.
func TestFrameIsOfTheFirstHop(t *testing.T) {
	first, later := seen(16, 15, 64, 7, 100), seen(24, 15, 63, 7, 200)
	later.Length = first.Length + 36
	list, _ := gather(t, noPorts(), func(a *Assembler) {
		a.AddMirror(0, later)
		a.AddMirror(1, first)
	})
	if len(list) != 1 || list[0].Length != first.Length || !bytes.Equal(list[0].Frame, first.Frame) {
		t.Errorf("%+v; want the frame %x", list[0], first.Frame)
	}
}

// TestPacketsAreDistinguished: by IPID, by payload, by flow, and by time.
func TestPacketsAreDistinguished(t *testing.T) {
	one := func(port, id uint16, payload string) *mirror.Mirror {
		f := frame([]header{{ipOf(0), ipOf(15), 64}}, port, id, []byte(payload))
		return &mirror.Mirror{Switch: 16, Frame: f, Length: uint16(len(f))}
	}
	list, _ := gather(t, DefaultConfig(), func(a *Assembler) {
		for _, m := range []*mirror.Mirror{one(1, 0, "one"), one(1, 0, "two"), one(1, 5, "one"), one(2, 0, "one"), one(1, 0, "")} {
			a.AddMirror(0, m)
		}
		a.AddMirror(model.Time(time.Second), one(1, 0, "one")) // the first is complete
	})
	if len(list) != 6 {
		t.Errorf("%d packets; want 6", len(list))
	}
}

// TestAssemblerEqualsReference compares with a map of packets that is searched as a
// whole, under any order of mirrors, any time between them, and a low limit of traces.
func TestAssemblerEqualsReference(t *testing.T) {
	type hop struct {
		Switch model.NodeID
		TTL    uint8
	}
	type packet struct {
		port, id uint16
		last     model.Time
		order    int // of its last mirror
		hops     map[hop]model.Time
	}
	rapid.Check(t, func(t *rapid.T) {
		cfg := noPorts()
		cfg.CloseAfter = time.Duration(rapid.IntRange(1, 50).Draw(t, "close"))
		cfg.MaxTraces = rapid.IntRange(1, 8).Draw(t, "traces")
		cfg.MaxHops = rapid.IntRange(1, 30).Draw(t, "hops")
		var got, want []string
		hops := uint64(0)
		a, err := NewAssembler(cfg, intent, func(tr *Trace) {
			text := fmt.Sprintf("%d/%d evicted %v:", tr.Key.SrcPort, tr.IPID, tr.Evicted)
			hops += uint64(len(tr.Hops))
			for _, h := range tr.Hops {
				text += fmt.Sprintf(" %d at %d", h.Switch, h.TTL)
			}
			got = append(got, text)
		})
		if err != nil {
			t.Fatal(err)
		}
		var open []*packet
		finish := func(p *packet, evicted bool) {
			text := fmt.Sprintf("%d/%d evicted %v:", p.port, p.id, evicted)
			var hops []hop
			for h := range p.hops {
				hops = append(hops, h)
			}
			slices.SortFunc(hops, func(a, b hop) int {
				if a.TTL != b.TTL {
					return int(b.TTL) - int(a.TTL)
				}
				return int(a.Switch) - int(b.Switch)
			})
			for _, h := range hops {
				text += fmt.Sprintf(" %d at %d", h.Switch, h.TTL)
			}
			want = append(want, text)
			open = slices.DeleteFunc(open, func(q *packet) bool { return q == p })
		}
		oldest := func() *packet { return slices.MinFunc(open, func(a, b *packet) int { return a.order - b.order }) }
		now := model.Time(0)
		for i := range rapid.IntRange(0, 100).Draw(t, "mirrors") {
			now += model.Time(rapid.IntRange(0, 20).Draw(t, "step"))
			port, id := rapid.Uint16Range(1, 2).Draw(t, "port"), rapid.Uint16Range(0, 3).Draw(t, "id")
			h := hop{model.NodeID(rapid.IntRange(16, 20).Draw(t, "switch")), rapid.Uint8Range(60, 64).Draw(t, "ttl")}
			f := frame([]header{{ipOf(0), ipOf(15), h.TTL}}, port, id, nil)
			a.AddMirror(now, &mirror.Mirror{Switch: h.Switch, Time: now, Frame: f, Length: uint16(len(f))})

			for len(open) > 0 && oldest().last.Add(cfg.CloseAfter) <= now {
				finish(oldest(), false)
			}
			at := slices.IndexFunc(open, func(p *packet) bool { return p.port == port && p.id == id })
			if at < 0 {
				if len(open) == cfg.MaxTraces {
					finish(oldest(), true)
				}
				at = len(open)
				open = append(open, &packet{port: port, id: id, hops: map[hop]model.Time{}})
			}
			p := open[at]
			p.last, p.order = now, i
			if _, there := p.hops[h]; !there && len(p.hops) < cfg.MaxHops {
				p.hops[h] = now
			}
		}
		a.Flush()
		for len(open) > 0 {
			finish(oldest(), false)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("other traces than the reference's:\n%s", diff)
		}
		if s := a.Stats(); s.Mirrors != s.Malformed+s.Overflow+s.Duplicates+s.Repeats+hops || s.Closed != uint64(len(got)) || s.Open != 0 {
			t.Fatalf("%+v with %d hops does not add up", s, hops)
		}
	})
}

func TestAddAllocatesNothing(t *testing.T) {
	cfg := noPorts()
	cfg.CloseAfter, cfg.MaxTraces = 1000, 64
	a, err := NewAssembler(cfg, intent, func(*Trace) {})
	if err != nil {
		t.Fatal(err)
	}
	m := seen(16, 15, 64, 0, 0)
	now, id := model.Time(0), uint16(0)
	add := func() {
		for range 100 {
			now += 7
			id++
			binary.BigEndian.PutUint16(m.Frame[18:], id/3)
			m.Frame[22] = byte(60 + id%3)
			a.AddMirror(now, m)
		}
	}
	add()
	if n := testing.AllocsPerRun(50, add); n != 0 {
		t.Errorf("%v allocations for 100 mirrors; want 0", n)
	}
}

func TestMalformedIsCounted(t *testing.T) {
	_, s := gather(t, DefaultConfig(), func(a *Assembler) {
		a.AddMirror(0, &mirror.Mirror{Frame: []byte{1, 2, 3}})
		a.AddMirror(0, &mirror.Mirror{Frame: append(packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil), 0x45)})
		a.AddMirror(0, &mirror.Mirror{Reasons: mirror.Protocol, Frame: append(packet.Ethernet{Type: packet.TypeMACControl}.AppendTo(nil), make([]byte, 46)...)})
	})
	if s.Malformed != 2 || s.Closed != 1 {
		t.Errorf("%+v; want two malformed, and a pause frame", s)
	}
}

// FuzzAdd: no mirror, whatever it holds, does harm.
func FuzzAdd(f *testing.F) {
	m := seen(16, 15, 64, 7, 100)
	f.Add(m.AppendTo(nil), uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, step uint32) {
		j, err := NewJudge(DefaultJudgeConfig(), fabric)
		if err != nil {
			t.Fatal(err)
		}
		c := NewCounters()
		a, err := NewAssembler(DefaultConfig(), intent, func(tr *Trace) {
			j.AddTrace(tr)
			c.AddTrace(tr, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		var m mirror.Mirror
		if _, err := m.Parse(b); err != nil {
			return
		}
		a.AddMirror(0, &m)
		a.AddMirror(model.Time(step), &m)
		a.Flush()
		j.Findings()
	})
}

func BenchmarkAdd(b *testing.B) {
	cfg := noPorts()
	cfg.CloseAfter = 10000 * time.Nanosecond
	a, err := NewAssembler(cfg, intent, func(*Trace) {})
	if err != nil {
		b.Fatal(err)
	}
	w := pathTo(b, 15)
	var list []*mirror.Mirror
	for hop, id := range w {
		list = append(list, seen(id, 15, uint8(64-hop), 0, 0))
	}
	for n := model.Time(0); b.Loop(); n++ {
		m := list[n%5]
		binary.BigEndian.PutUint32(m.Frame[42:], uint32(n/5))
		a.AddMirror(n, m)
	}
}

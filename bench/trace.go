package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

var traceSuite = Suite{
	Name:  "trace",
	About: "assemble mirrored packets into complete traces, compared with gopacket and one Go map",
	Input: "reports of packets that five switches mirrored, 128 bytes of TCP each, 64 flows, 1K and 64K packets in flight at a time; a million packets in total",
	run: func(ctx context.Context) ([]Result, error) {
		var all []Result
		for _, open := range []int{1 << 10, 1 << 16} {
			one, err := compareTraces(ctx, open)
			if err != nil {
				return nil, err
			}
			all = append(all, one...)
		}
		return all, nil
	},
	plots: traceGrowth,
}

func compareTraces(ctx context.Context, open int) ([]Result, error) {
	ours, err := newMirrored(open)
	if err != nil {
		return nil, err
	}
	theirs, err := newMirrored(open)
	if err != nil {
		return nil, err
	}
	quick, err := newMirrored(open)
	if err != nil {
		return nil, err
	}
	cfg := trace.DefaultConfig()
	cfg.CloseAfter, cfg.MaxTraces = ours.quiet(), 4*open
	arrived := 0
	a, err := trace.NewAssembler(cfg, ours.intent, func(t *trace.Trace) {
		if t.End == trace.Arrived {
			arrived++
		}
	})
	if err != nil {
		return nil, err
	}
	obvious := &mapAssembler{routes: ours.intent.At(0), quiet: ours.quiet(), traces: map[mapKey]*mapTrace{}}
	reused := &mapAssembler{routes: ours.intent.At(0), quiet: ours.quiet(), traces: map[mapKey]*mapTrace{}}
	reused.reuse()
	weft := func(n int) {
		var m mirror.Mirror
		for range n {
			now, data := ours.next()
			if _, err := m.Parse(data); err != nil {
				panic("bench: " + err.Error())
			}
			a.AddMirror(now, &m)
		}
	}
	weft(5_000_000) // a million packets: its slabs have reached their final size
	if s := a.Stats(); s.Evicted > 0 || s.Open > 3*open || arrived < 900_000 {
		return nil, fmt.Errorf("bench: %+v and %d traces arrived, want a million less those in flight and none evicted", s, arrived)
	}
	ns, err := alternateRoundsOfProcess(ctx, 500_000, weft, func(n int) {
		for range n {
			now, data := theirs.next()
			obvious.add(now, data)
		}
	}, func(n int) {
		for range n {
			now, data := quick.next()
			reused.add(now, data)
		}
	})
	if err != nil {
		return nil, err
	}
	if n := obvious.lost + reused.lost; n > 0 {
		return nil, fmt.Errorf("bench: the map loses %d packets, want none", n)
	}
	name := fmt.Sprintf("mirrors into traces, %dK in flight", open>>10)
	return []Result{
		higherIsBetter(name, 1e9/ns[0], "mirrors/s", "gopacket.NewPacket and a map", 1e9/ns[1], 5),
		// This peer knows one stack of headers, and neither tunnels nor duplicates.
		higherIsBetter(name, 1e9/ns[0], "mirrors/s", "a reused gopacket decoder and a map", 1e9/ns[2], 1),
	}, nil
}

// alternateRoundsOfProcess is alternateRounds with the CPU time of the whole
// process: it includes garbage collection, which other threads do. The first round
// warms up.
func alternateRoundsOfProcess(ctx context.Context, n int, sides ...side) ([]float64, error) {
	const rounds = 5
	times := make([][]float64, len(sides))
	for round := range rounds + 1 {
		for i, s := range sides {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			runtime.GC() // garbage of earlier rounds
			start := processTime()
			s(n)
			if round > 0 {
				times[i] = append(times[i], float64(processTime()-start)/float64(n))
			}
		}
	}
	medians := make([]float64, len(sides))
	for i := range sides {
		slices.Sort(times[i])
		medians[i] = times[i][rounds/2]
	}
	return medians, nil
}

const mirroredFlows = 64

// mirrorSource makes the reports of five switches about an endless sequence of
// packets, a number of them in flight at a time.
type mirrorSource struct {
	intent *topo.Intent
	open   int
	loss   uint64 // share of mirrors that are lost, in 2^64
	n      int
	paths  [mirroredFlows][5][]byte // report of each flow at each hop
}

func newMirrored(open int) (*mirrorSource, error) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		return nil, err
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		return nil, err
	}
	s := &mirrorSource{intent: topo.NewIntent(r), open: open}
	for i := range s.paths {
		key := model.FlowKey{
			Src: f.Node(0).IPv4, Dst: f.Node(15).IPv4, SrcPort: uint16(40000 + i), DstPort: 80,
			Proto: model.TCP,
		}
		path, err := r.Path(key, 0)
		if err != nil || len(path) != 7 {
			return nil, fmt.Errorf("bench: %d nodes on the path of %v, want 7: %w", len(path), key, err)
		}
		for hop, at := range path[1:6] {
			ip := packet.IPv4{
				Length: 1486, TTL: uint8(64 - hop), Proto: model.TCP, Src: key.Src.V4(),
				Dst: key.Dst.V4(),
			}
			b := packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)
			b = ip.AppendTo(b)
			b = packet.TCP{SrcPort: key.SrcPort, DstPort: key.DstPort, Flags: uint16(packet.ACK)}.AppendTo(b)
			b = append(b, make([]byte, 128-len(b))...)
			m := mirror.Mirror{Reasons: mirror.Sample, Switch: at.Node, In: at.In, Out: at.Out, Length: 1500, Frame: b}
			s.paths[i][hop] = m.AppendTo(nil)
		}
	}
	return s, nil
}

// quiet returns the time after which no mirror of a packet can arrive.
func (s *mirrorSource) quiet() time.Duration { return time.Duration(6 * s.open) }

// next returns the next report. All packets of a batch are mirrored by their first
// switches, then by their second ones, and so on.
func (s *mirrorSource) next() (now model.Time, data []byte) {
	for key := (model.FlowKey{}); s.loss > 0 && key.Hash(uint64(s.n)) < s.loss; {
		s.n++
	}
	n := s.n
	s.n++
	number := n/(5*s.open)*s.open + n%s.open
	data = s.paths[number%mirroredFlows][n/s.open%5]
	frame := data[mirror.HeadSize:]
	binary.BigEndian.PutUint16(frame[18:], uint16(number)) // IPID
	binary.BigEndian.PutUint32(frame[38:], uint32(number)) // sequence number
	return model.Time(n), data
}

// mapAssembler is a straightforward assembler.
type mapAssembler struct {
	routes *topo.Routes
	quiet  time.Duration
	swept  model.Time
	traces map[mapKey]*mapTrace
	lost   int

	eth     layers.Ethernet
	ip      layers.IPv4
	tcp     layers.TCP
	payload gopacket.Payload
	parser  *gopacket.DecodingLayerParser // nil: NewPacket
	decoded []gopacket.LayerType
}

type mapKey struct {
	key  model.FlowKey
	ipid uint16
	seq  uint32
}

type mapTrace struct {
	last model.Time
	hops []mapHop
}

type mapHop struct {
	at  model.NodeID
	ttl uint8
}

// reuse decodes into the same layers every time.
func (a *mapAssembler) reuse() {
	a.parser = gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &a.eth, &a.ip, &a.tcp, &a.payload)
}

func (a *mapAssembler) decode(frame []byte) (ip *layers.IPv4, tcp *layers.TCP) {
	if a.parser != nil {
		if a.parser.DecodeLayers(frame, &a.decoded) != nil {
			panic("bench: gopacket rejects the frame")
		}
		return &a.ip, &a.tcp
	}
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
	ip, _ = p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
	tcp, _ = p.Layer(layers.LayerTypeTCP).(*layers.TCP)
	return ip, tcp
}

func (a *mapAssembler) add(now model.Time, data []byte) {
	var m mirror.Mirror
	if _, err := m.Parse(data); err != nil {
		panic("bench: " + err.Error())
	}
	ip, tcp := a.decode(m.Frame)
	k := mapKey{
		key: model.FlowKey{
			Src: model.Addr4(binary.BigEndian.Uint32(ip.SrcIP.To4())), Dst: model.Addr4(binary.BigEndian.Uint32(ip.DstIP.To4())),
			SrcPort: uint16(tcp.SrcPort), DstPort: uint16(tcp.DstPort), Proto: model.TCP,
		},
		ipid: ip.Id, seq: tcp.Seq,
	}
	t := a.traces[k]
	if t == nil {
		t = &mapTrace{}
		a.traces[k] = t
	}
	t.last = now
	t.hops = append(t.hops, mapHop{m.Switch, ip.TTL})
	if now.Sub(a.swept) >= a.quiet {
		a.sweep(now)
	}
}

// sweep closes quiet traces and checks where they ended.
func (a *mapAssembler) sweep(now model.Time) {
	a.swept = now
	for k, t := range a.traces {
		if now.Sub(t.last) < a.quiet {
			continue
		}
		delete(a.traces, k)
		last := t.hops[0]
		for _, h := range t.hops {
			if h.ttl < last.ttl {
				last = h
			}
		}
		arrived := false
		for _, id := range a.routes.ExpectedLastHops(k.key.Dst) {
			arrived = arrived || id == last.at
		}
		if !arrived {
			a.lost++
		}
	}
}

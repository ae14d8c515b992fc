package ebpf

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/packet"
)

const testSwitch = 7

// testConfig has tables with collisions, so that sums and XORs show.
func testConfig() flowset.Config {
	g := sketch.Geometry{FilterHashes: 16, FilterBits: 1 << 13, Tables: 3, TableCells: 97}
	h := sketch.Geometry{FilterHashes: 20, FilterBits: 64 * 101, Tables: 4, TableCells: 64}
	return flowset.Config{
		Slot: 10 * time.Millisecond, Bursts: 1, Seed: 42, ProbeMark: 1,
		IPv4: flowset.Table{Geometry: g, Layout: flowset.Layout4}, IPv6: flowset.Table{Geometry: h, Layout: flowset.Layout6},
	}
}

// reference is a host of inswitch/flowset that works on frames.
type reference struct {
	t      testing.TB
	p      *flowset.Program
	act    inswitch.Actions
	now    model.Time
	route  func(key *model.FlowKey) (model.PortID, bool)
	chunks [][]byte
}

func newReference(t testing.TB, cfg flowset.Config, now model.Time, route func(*model.FlowKey) (model.PortID, bool)) *reference {
	t.Helper()
	p, err := flowset.New(inswitch.Device{ID: testSwitch, Ports: make([]inswitch.Port, 8)}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &reference{t: t, p: p, now: now, route: route}
	r.observe(&inswitch.Event{Stage: inswitch.Timer})
	return r
}

func (r *reference) Route(key *model.FlowKey) (model.PortID, bool)     { return r.route(key) }
func (r *reference) Queue(model.PortID, model.Priority) inswitch.Queue { return inswitch.Queue{} }

func (r *reference) observe(ev *inswitch.Event) {
	ev.Now, ev.Switch = r.now, r
	r.act.Reset()
	r.p.Observe(ev, &r.act)
	for _, rep := range r.act.Reports {
		r.chunks = append(r.chunks, slices.Clone(rep.Data))
	}
}

// frameSource implements what the program needs of inswitch.Source.
type frameSource struct {
	inswitch.Source
	frame []byte
	seq   uint32
}

func (s frameSource) Seq() uint32 { return s.seq }

func (s frameSource) AppendFrame(b []byte, limit int) []byte {
	return append(b, s.frame[:min(limit, len(s.frame))]...)
}

// frame shows the program a frame as a host that works on bytes does.
func (r *reference) frame(in model.PortID, frame []byte) {
	r.observe(&inswitch.Event{Stage: inswitch.Ingress, In: in, Packet: viewOf(r.t, frame)})
}

// viewOf returns the view of a frame that programs get.
func viewOf(t testing.TB, frame []byte) *inswitch.Packet {
	t.Helper()
	var p packet.Packet
	_ = p.Parse(frame) // without a key on an error
	inner := p.Innermost()
	pkt := inswitch.Packet{
		Key: &inner.Key, Outer: &p.Outer.Key, Size: int32(len(frame)), TCPFlags: uint8(inner.TCPFlags),
		EtherType: p.EtherType, DSCP: p.Outer.DSCP(), Source: frameSource{frame: frame, seq: inner.Seq},
	}
	if !inner.Key.V6 {
		pkt.IPID = uint16(inner.ID)
	}
	if p.Outer.Flags.Has(packet.Labelled) {
		at := int(p.Outer.Start) + packet.IPv6Size
		if !p.Outer.Key.V6 {
			at = int(p.Outer.Start) + int(frame[p.Outer.Start]&0xf)*4
		}
		var o label.Option
		if _, err := o.Parse(frame[at:]); err != nil {
			t.Fatalf("labels of a labelled packet: %v", err)
		}
		pkt.LabelCount = uint8(o.Count())
	}
	return &pkt
}

// endSlot lets time pass to the next slot, and returns the chunks of this one.
func (r *reference) endSlot(slot time.Duration) [][]byte {
	r.chunks = nil
	r.now += model.Time(slot)
	// The timer that began the slot may have an older bank to send first.
	for range 4 {
		r.observe(&inswitch.Event{Stage: inswitch.Timer, Timer: 1})
		r.now++
	}
	return r.chunks
}

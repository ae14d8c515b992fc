package flows

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// counts is what a flow really had.
type counts struct {
	packets, bytes uint64
	in, out        model.PortID
}

// recorded is a flowset as a switch made it, and the truth about it.
type recorded struct {
	header   flowset.Header
	filter   sketch.Filter
	cells    []flowset.Cell
	truth    map[model.FlowKey]counts // of every flow that was counted
	inserted map[model.FlowKey]bool   // those that the filter took for new
}

// encoder fills a flowset flow by flow.
type encoder struct {
	recorded
	v4 *sketch.Set[sketch.Key4]
	v6 *sketch.Set[sketch.Key6]
}

func newEncoder(tb testing.TB, sw model.NodeID, seed uint64, g sketch.Geometry, l flowset.Layout) *encoder {
	tb.Helper()
	e := &encoder{recorded: recorded{
		header: flowset.Header{
			Switch: sw, Seed: seed, Slot: 7, Start: 70e6, Length: 10 * time.Millisecond,
			Geometry: flowset.Geometry(g), Layout: l,
		},
		truth: map[model.FlowKey]counts{}, inserted: map[model.FlowKey]bool{},
	}}
	var err error
	if l.Key == model.KeyLen6 {
		e.v6, err = sketch.NewSet[sketch.Key6](g, seed)
	} else {
		e.v4, err = sketch.NewSet[sketch.Key4](g, seed)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// cellsOf returns the cells of a flow.
func (e *encoder) cellsOf(k *model.FlowKey) (cells [sketch.MaxTables]uint32) {
	var f *sketch.Family
	var h sketch.Hash
	if e.v6 != nil {
		key := sketch.Pack6(k)
		f = e.v6.Family()
		h = sketch.HashOf(f, &key)
	} else {
		key := sketch.Pack4(k)
		f = e.v4.Family()
		h = sketch.HashOf(f, &key)
	}
	for t := range int(f.Tables) {
		cells[t] = f.Cell(h, t)
	}
	return cells
}

// add counts all packets of a flow, which all have one size.
func (e *encoder) add(k model.FlowKey, packets int, size uint32, in, out model.PortID) {
	for range packets {
		var isNew bool
		if e.v6 != nil {
			isNew = insert(e.v6, sketch.Pack6(&k), size, in, out)
		} else {
			isNew = insert(e.v4, sketch.Pack4(&k), size, in, out)
		}
		if isNew {
			e.inserted[k] = true
		}
	}
	c, again := e.truth[k]
	if !again {
		c.in, c.out = in, out // those of the first packet
	}
	c.packets += uint64(packets)
	c.bytes += uint64(packets) * uint64(size)
	e.truth[k] = c
	e.header.Counts.Packets += uint64(packets)
	e.header.Counts.Bytes += uint64(packets) * uint64(size)
}

func insert[K sketch.Key](s *sketch.Set[K], k K, size uint32, in, out model.PortID) bool {
	h, isNew := s.AddPacket(&k, size)
	if isNew {
		s.InsertFlow(&k, h, in, out)
	}
	return isNew
}

// done returns what the switch exports.
func (e *encoder) done() *recorded {
	if e.v6 != nil {
		export(&e.recorded, e.v6)
	} else {
		export(&e.recorded, e.v4)
	}
	return &e.recorded
}

func export[K sketch.Key](r *recorded, s *sketch.Set[K]) {
	r.header.Counts.Flows = s.Inserted()
	r.filter = append(sketch.Filter(nil), s.Filter()...)
	for _, c := range s.AppendCells(nil) {
		cell := flowset.Cell{Flows: c.Flows, Packets: c.Packets, Bytes: c.Bytes, InPort: c.In, OutPort: c.Out}
		sketch.PutKey(&cell.Key, &c.Key)
		r.cells = append(r.cells, cell)
	}
}

// chunks cuts the flowset into pieces of at most size bytes.
func (r *recorded) chunks(tb testing.TB, size int) (out [][]byte) {
	tb.Helper()
	split, err := r.header.Split(size)
	if err != nil {
		tb.Fatal(err)
	}
	for span, ok := split.Next(); ok; span, ok = split.Next() {
		b := r.header.Open(nil, span)
		if span.Section == flowset.Filter {
			b = r.filter.AppendBytes(b, span.First, span.Count)
		} else {
			for i := span.First; i < span.First+span.Count; i++ {
				b = r.header.Layout.AppendCell(b, &r.cells[i])
			}
		}
		out = append(out, flowset.Seal(b, 0))
	}
	return out
}

// assembled puts chunks together; what is not among them is lost.
func assembled(tb testing.TB, chunks ...[]byte) *Flowset {
	tb.Helper()
	a, err := NewAssembler(DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	var out []*Flowset
	for _, c := range chunks {
		if out, err = a.AddChunk(0, c, out); err != nil {
			tb.Fatal(err)
		}
	}
	if out = a.Flush(out); len(out) != 1 {
		tb.Fatalf("%d flowsets of %d chunks; want 1", len(out), len(chunks))
	}
	return out[0]
}

// whole assembles all of r.
func (r *recorded) whole(tb testing.TB) *Flowset {
	tb.Helper()
	return assembled(tb, r.chunks(tb, 9000)...)
}

// someKey makes a key of few different parts, as real ones are, so that XORs of
// several look like keys, too.
func someKey(r *rand.Rand, v6 bool) model.FlowKey {
	k := model.FlowKey{
		Src: model.Addr4(0x0a000000 + r.Uint32N(64)), Dst: model.Addr4(0x0a000000 + r.Uint32N(64)),
		SrcPort: uint16(32768 + r.Uint32N(256)), DstPort: uint16(80 + r.Uint32N(4)), Proto: model.TCP,
	}
	if v6 {
		k.V6 = true
		k.Src.Hi, k.Dst.Hi = 0xfd00<<48, 0xfd00<<48
	}
	return k
}

package adapter

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

var (
	flow4 = model.NewFlowKey(netip.MustParseAddrPort("10.0.0.1:4000"), netip.MustParseAddrPort("10.0.0.2:80"), model.TCP)
	flow6 = model.NewFlowKey(netip.MustParseAddrPort("[fd00::1]:4000"), netip.MustParseAddrPort("[fd00::2]:80"), model.TCP)
	flows = []model.FlowKey{flow4, flow6}
)

// bench is a collector with memory for every record.
type bench struct {
	t      *testing.T
	mem    *translate.Memory
	tr     *translate.Translator
	cursor map[uint32]*list.Cursor
}

func newBench(t *testing.T) *bench {
	t.Helper()
	m := &translate.Memory{}
	for _, v := range []int{1, 4, 9, 20} {
		cfg := keywrite.DefaultConfig(1 << 16)
		cfg.Value, cfg.Slots = v, 1<<12
		k, err := keywrite.Open("", cfg)
		if err != nil {
			t.Fatal(err)
		}
		m.KeyWrites = append(m.KeyWrites, k)
	}
	var err [3]error
	m.Counts, err[0] = count.Open("", count.DefaultConfig(1<<16))
	m.Postcards, err[1] = postcard.Open("", postcard.DefaultConfig(1<<16))
	l, e := list.Open("", list.Config{Layout: list.Weft, Batch: 4, Classes: []list.Class{{Lists: 16, Entry: 60, Capacity: 64, Sized: true}}})
	err[2], m.Lists = e, []*list.Table{l}
	for _, e := range err {
		if e != nil {
			t.Fatal(e)
		}
	}
	t.Cleanup(func() {
		for _, r := range m.Regions() {
			r.Close()
		}
	})
	out, e := translate.NewLocalWriter(m, 0, false, nil)
	if e != nil {
		t.Fatal(e)
	}
	tr, e := translate.New(translate.DefaultConfig(), out.Plan, out)
	if e != nil {
		t.Fatal(e)
	}
	return &bench{t, m, tr, map[uint32]*list.Cursor{}}
}

// send encodes and parses reports and writes them into memory.
func (b *bench) send(all ...dta.Report) {
	b.t.Helper()
	for _, r := range all {
		var got dta.Report
		if _, err := got.Parse(r.AppendTo(nil)); err != nil {
			b.t.Fatalf("%+v: %v", r, err)
		}
		if v := b.tr.Admit(&got); v != dta.Stored {
			b.t.Fatalf("%+v is %v; want stored", r, v)
		}
		b.tr.Put(0, []dta.Report{got})
	}
	b.tr.Drain(0)
}

// value reads the value of a key.
func (b *bench) value(size int, key []byte) []byte {
	b.t.Helper()
	for _, k := range b.mem.KeyWrites {
		if k.Config().Value == size {
			a, err := k.Read(key, keywrite.Query{})
			if err != nil || a.Outcome != keywrite.Found {
				b.t.Fatalf("key %x: %+v, %v; want found", key, a, err)
			}
			return a.Value
		}
	}
	b.t.Fatalf("no memory for %d bytes", size)
	return nil
}

// entries reads the new entries of a list.
func (b *bench) entries(id uint32) (all [][]byte) {
	b.t.Helper()
	if b.cursor[id] == nil {
		b.cursor[id] = &list.Cursor{List: id}
	}
	raw, err := b.mem.Lists[0].Read(nil, b.cursor[id], 64)
	if err != nil {
		b.t.Fatal(err)
	}
	class, _ := b.mem.Lists[0].Class(id)
	for e := range class.Entries(raw) {
		all = append(all, bytes.Clone(e))
	}
	return all
}

func (b *bench) one(id uint32) []byte {
	b.t.Helper()
	all := b.entries(id)
	if len(all) != 1 {
		b.t.Fatalf("%d entries on list %d; want 1", len(all), id)
	}
	return all[0]
}

func expect[T any](t *testing.T, what string, got, want T, err error) {
	t.Helper()
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s reads as %v, %v; want %v", what, got, err, want)
	}
}

func TestKeyWrites(t *testing.T) {
	b := newBench(t)
	var s Scratch
	for _, f := range flows {
		path := Path{Flow: f, Switches: [PathHops]uint32{5, 6, 7}}
		b.send(path.Report(&s, 2))
		got, err := ParsePath(b.value(20, f.AppendTo(nil)))
		expect(t, "INT-MD path", got, path.Switches, err)

		b.send(HostCounter{f.Src, 99}.Report(&s, 2))
		n, err := Word(b.value(4, s.address(f.Src)))
		expect(t, "Marple host counter", n, 99, err)

		b.send(Timeouts{f, 3}.Report(&s, 4))
		n, err = Word(b.value(4, f.AppendTo(nil)))
		expect(t, "Marple TCP timeouts", n, 3, err)

		b.send(Traversal{Switch: 12, Flow: f, Data: []byte("traversal")}.Report(&s, 2))
		expect(t, "PacketScope traversal", string(b.value(9, TraversalKey(&s, 12, f))), "traversal", nil)

		seen := map[uint8]uint8{}
		for packet := range uint64(50) {
			d := Digest{Flow: f, Packet: packet, Value: uint8(packet)}
			b.send(d.Report(&s, 4, 2))
			seen[Lane(packet, 4)] = uint8(packet)
		}
		if len(seen) != 4 {
			t.Errorf("50 packets use %d lanes; want 4", len(seen))
		}
		for lane, v := range seen {
			expect(t, "PINT digest", b.value(1, DigestKey(&s, f, lane))[0], v, nil)
		}
	}
	b.send(Result{Query: 7, Data: []byte("result 7!")}.Report(&s, 2))
	expect(t, "Sonata result", string(b.value(9, ResultKey(&s, 7))), "result 7!", nil)
}

func TestKeyIncrements(t *testing.T) {
	b := newBench(t)
	var s Scratch
	for _, f := range flows {
		b.send(HostCounter{f.Src, 5}.Add(&s, 4), HostCounter{f.Src, 7}.Add(&s, 4))
		a, err := b.mem.Counts.Read(s.address(f.Src), 4)
		expect(t, "Marple host counter", a.Sum, 12, err)
		b.send(Microflow{f, 100}.Add(&s, 2), Microflow{f, 11}.Add(&s, 2))
		a, err = b.mem.Counts.Read(f.AppendTo(nil), 2)
		expect(t, "TurboFlow record", a.Sum, 111, err)
	}
}

func TestPostcards(t *testing.T) {
	b := newBench(t)
	var s Scratch
	for _, f := range flows {
		var together []dta.Report
		scratch := make([]Scratch, 3)
		for hop := range uint8(3) {
			together = append(together, Postcard{Flow: f, Hop: hop, Path: 3, Value: 40 + uint32(hop)}.Report(&scratch[hop], 2))
		}
		b.send(together...)
		a, err := b.mem.Postcards.Read(f.AppendTo(nil), postcard.Query{})
		expect(t, "INT-XD postcards", a.Hops, []uint32{40, 41, 42}, err)
	}
	var together []dta.Report
	scratch := make([]Scratch, 2)
	for hop := range uint8(2) {
		together = append(together, Trajectory{Label: 0xabc, Hop: hop, Path: 2, Switch: 9 + uint32(hop)}.Report(&scratch[hop], 1))
	}
	b.send(together...)
	a, err := b.mem.Postcards.Read(TrajectoryKey(&s, 0xabc), postcard.Query{})
	expect(t, "trajectory", a.Hops, []uint32{9, 10}, err)
}

func TestAppends(t *testing.T) {
	b := newBench(t)
	var s Scratch
	b.send(Congestion(77).Report(&s, 1))
	n, err := Word(b.one(1))
	expect(t, "INT congestion event", n, 77, err)
	for _, f := range flows {
		bounds := []float64{0.01, 0.1}
		for i, rate := range []float64{0.001, 0.01, 0.5} {
			b.send(LossyFlow{f, rate}.Report(&s, 2, bounds))
			got, err := ParseFlow(b.one(2 + uint32(i)))
			expect(t, "Marple lossy flow", got, f, err)
		}
		let := Flowlet{f, 12}
		b.send(let.Report(&s, 5))
		gotLet, err := ParseFlowlet(b.one(5))
		expect(t, "Marple flowlet", gotLet, let, err)

		drop := Drop{Flow: f, Switch: 300, Port: 4, Count: 2, Reason: 9}
		r := drop.Report(&s, 6)
		if f == flow4 && len(r.Data) != 18 {
			t.Errorf("NetSeer's event has %d bytes; want 18", len(r.Data))
		}
		b.send(r)
		gotDrop, err := ParseDrop(b.one(6))
		expect(t, "NetSeer drop", gotDrop, drop, err)

		pipe := Pipeline{Flow: f, Stage: 5}
		r = pipe.Report(&s, 7)
		if f == flow4 && len(r.Data) != 14 {
			t.Errorf("PacketScope's event has %d bytes; want 14", len(r.Data))
		}
		b.send(r)
		gotPipe, err := ParsePipeline(b.one(7))
		expect(t, "PacketScope drop", gotPipe, pipe, err)

		to := Summary{f, []byte("there")}.Report(8, 4)
		back := Summary{f.Reverse(), []byte("back")}.Report(8, 4)
		if to.List != back.List {
			t.Errorf("the directions of a flow go to lists %d and %d; want one", to.List, back.List)
		}
		b.send(to, back)
		got := b.entries(uint32(to.List))
		expect(t, "dShark summaries", string(slices.Concat(got...)), "thereback", nil)
	}
	b.send(Tuple{Query: 6, Data: []byte("tuple")}.Report(12, 4))
	expect(t, "Sonata tuple", string(b.one(14)), "tuple", nil)
}

func TestParseRefuses(t *testing.T) {
	for name, err := range map[string]error{
		"word":     second(Word([]byte{1})),
		"path":     second(ParsePath(make([]byte, 19))),
		"flow":     second(ParseFlow(make([]byte, 12))),
		"flowlet":  second(ParseFlowlet(make([]byte, 3))),
		"drop":     second(ParseDrop(make([]byte, 4))),
		"pipeline": second(ParsePipeline(nil)),
	} {
		if err == nil {
			t.Errorf("%s: bytes of the wrong size are read", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestReportsAllocateNothing(t *testing.T) {
	var s Scratch
	var r dta.Report
	if n := testing.AllocsPerRun(100, func() {
		r = Path{Flow: flow6}.Report(&s, 2)
		r = Traversal{Switch: 1, Flow: flow6}.Report(&s, 2)
		r = Digest{Flow: flow4, Packet: 9}.Report(&s, 4, 2)
		r = Drop{Flow: flow6}.Report(&s, 1)
		r = Postcard{Flow: flow4}.Report(&s, 1)
	}); n != 0 || r.Primitive != dta.Postcarding {
		t.Errorf("reports allocate %v times; want 0", n)
	}
}

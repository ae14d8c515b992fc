package flows

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// damage is what happens to a flowset on its way to the decoder.
type damage struct {
	lost     int    // one chunk in this number does not arrive; 0: all do
	changed  int    // one cell in this number has another value; 0: none
	part     int    // of a cell that is changed: any, packets or bytes
	negative bool   // a flow has less than no packets, modulo 2³²
	filter   bool   // the filter has bits cleared
	totals   bool   // the header has other totals
	flows    uint32 // added to the header's flows
	repeated bool   // chunks arrive twice
}

func drawDamage(t *rapid.T) damage {
	return damage{
		lost:     rapid.SampledFrom([]int{0, 0, 0, 8}).Draw(t, "lost"),
		changed:  rapid.SampledFrom([]int{0, 0, 0, 5, 50}).Draw(t, "changed"),
		part:     rapid.IntRange(anyPart, bytesPart).Draw(t, "part"),
		negative: rapid.IntRange(0, 5).Draw(t, "negative") == 0,
		filter:   rapid.IntRange(0, 5).Draw(t, "filter") == 0,
		totals:   rapid.IntRange(0, 5).Draw(t, "totals") == 0,
		flows:    rapid.SampledFrom([]uint32{0, 0, 0, 7, ^uint32(0)}).Draw(t, "header flows"),
		repeated: rapid.Bool().Draw(t, "repeated"),
	}
}

const (
	anyPart = iota
	packetsPart
	bytesPart
)

// inflict changes r and returns the chunks that arrive.
func (x damage) inflict(t *rapid.T, tb testing.TB, r *recorded, rnd *rand.Rand) (kept [][]byte) {
	for i := range r.cells {
		if x.changed == 0 || rnd.IntN(x.changed) != 0 {
			continue
		}
		c := &r.cells[i]
		switch n := rnd.IntN(5); {
		case x.part == packetsPart || x.part == anyPart && n == 0:
			// The sum of all cells remains.
			if other := &r.cells[rnd.IntN(len(r.cells))]; other.Packets > 0 {
				other.Packets--
				c.Packets++
			}
		case x.part == bytesPart || n == 3:
			c.Bytes ^= uint64(rnd.Uint32N(1000))
		case n == 1:
			c.Key[rnd.IntN(int(r.header.Layout.Key))] ^= byte(rnd.Uint32())
		case n == 2:
			c.Flows += uint32(rnd.IntN(3)) - 1
		default:
			c.InPort ^= model.PortID(rnd.Uint32N(9))
		}
	}
	if x.negative && len(r.truth) > 0 {
		family, err := sketch.NewFamily(sketch.Geometry(r.header.Geometry), r.header.Seed)
		if err != nil {
			tb.Fatal(err)
		}
		k := slices.MinFunc(slices.Collect(maps.Keys(r.truth)), model.FlowKey.Compare)
		key, key6 := sketch.Pack4(&k), sketch.Pack6(&k)
		h := sketch.HashOf(&family, &key)
		if k.V6 {
			h = sketch.HashOf(&family, &key6)
		}
		for t := range int(family.Tables) {
			at := &r.cells[family.Cell(h, t)]
			at.Packets = uint64(uint32(at.Packets - r.truth[k].packets - 2))
		}
	}
	if x.filter {
		r.filter[rnd.IntN(len(r.filter))] &^= rnd.Uint64()
	}
	if x.totals {
		r.header.Counts.Packets = uint64(rnd.Uint32N(200))
		r.header.Counts.Bytes = uint64(rnd.Uint32N(100_000))
	}
	r.header.Counts.Flows += x.flows
	chunks := r.chunks(tb, flowset.Overhead+r.header.Layout.Size()*rapid.IntRange(1, 9).Draw(t, "cells per chunk"))
	for i, b := range chunks {
		if i > 0 && x.lost > 0 && rnd.IntN(x.lost) == 0 {
			continue
		}
		kept = append(kept, b)
		if x.repeated && i < len(chunks)-1 {
			kept = append(kept, b)
		}
	}
	return kept
}

// equalResults fails unless two results are the same, record by record.
func equalResults(t *rapid.T, got, want *Decoded) {
	if got.Undecoded != want.Undecoded || got.Unexplained != want.Unexplained || !slices.Equal(got.Likely, want.Likely) {
		t.Fatalf("%d flows undecoded, %d packets unexplained, likely %v; want %d, %d, %v",
			got.Undecoded, got.Unexplained, got.Likely, want.Undecoded, want.Unexplained, want.Likely)
	}
	if len(got.Records) != len(want.Records) {
		t.Fatalf("%d records; want %d", len(got.Records), len(want.Records))
	}
	for i := range got.Records {
		if got.Records[i] != want.Records[i] {
			t.Fatalf("record %d: %+v; want %+v", i, got.Records[i], want.Records[i])
		}
	}
}

// TestSingleEqualsOracle compares records, their order and every grade with the
// oracle's on tables of all loads, widths and families, whole, in parts and damaged.
// The decoder's memory is that of the tables before.
func TestSingleEqualsOracle(t *testing.T) {
	var d Decoder
	emptied, others := 0, 0
	compare := func(rt *rapid.T) {
		g := sketch.Geometry{
			FilterHashes: uint8(rapid.SampledFrom([]int{4, 12, 24}).Draw(rt, "filter hashes")),
			FilterBits:   64 * rapid.Uint32Range(4, 300).Draw(rt, "filter words"),
			Tables:       rapid.Uint8Range(1, sketch.MaxTables).Draw(rt, "tables"), TableCells: rapid.Uint32Range(1, 60).Draw(rt, "cells"),
		}
		r := drawRecorded(rt, t, g)
		if rapid.Bool().Draw(rt, "usual layout") {
			key := r.header.Layout.Key
			r.header.Layout = productLayout
			r.header.Layout.Key = key
		}
		chunks := drawDamage(rt).inflict(rt, t, r, rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "damage"), 2)))
		fs := assembled(t, chunks...)
		got, want := d.SingleDecode(fs), oracleDecode(t, chunks)
		equalResults(rt, &got, &want)
		again := d.SingleDecode(fs)
		equalResults(rt, &again, &want)
		if _, ok := new(Decoder).decodesAlone(fs); ok {
			emptied++
		} else {
			others++
		}
	}
	// Four tables a check: 100 tables in all may miss what a rare damage shows.
	rapid.Check(t, func(rt *rapid.T) {
		for range 4 {
			compare(rt)
		}
	})
	if emptied == 0 || others == 0 {
		t.Errorf("%d tables emptied, %d did not; the test needs both", emptied, others)
	}
	t.Logf("%d tables emptied, %d did not", emptied, others)
}

// TestSingleDecodeAllocates holds SingleDecode of a table that empties to one allocation,
// whatever the number of flows: the test for a flow.
func TestSingleDecodeAllocates(t *testing.T) {
	fs := slotOf(t, 1, 2000).whole(t)
	var d Decoder
	if got := d.SingleDecode(fs); !got.Complete() {
		t.Fatalf("%d flows undecoded; want none", got.Undecoded)
	}
	if n := testing.AllocsPerRun(10, func() { d.SingleDecode(fs) }); n > 1 {
		t.Errorf("SingleDecode allocates %v times; want 1", n)
	}
}

// decodesAlone reports whether a table empties by itself.
func (d *Decoder) decodesAlone(fs *Flowset) (Decoded, bool) {
	if t, ok := fs.body.(*table[sketch.Key4]); ok {
		return d.v4.alone.decode(fs, t)
	}
	return d.v6.alone.decode(fs, fs.body.(*table[sketch.Key6]))
}

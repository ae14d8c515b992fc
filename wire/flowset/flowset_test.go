package flowset

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
)

// paper is the layout and shape the paper's figure has, in small.
func paper() Header {
	return Header{
		Switch: 7, Scope: 3, Seed: 0x0102030405060708,
		Slot: 9, Start: 90e6, Length: 10 * time.Millisecond,
		Geometry: Geometry{FilterHashes: 7, FilterBits: 20, Tables: 4, TableCells: 5},
		Layout:   Layout{Key: model.KeyLen4, Flows: 1, Packets: 4},
		Counts:   Counts{Packets: 1000, Bytes: 64000, Flows: 12, Unkeyed: 2, Missed: 1},
	}
}

const head = "00000007 0003" + // switch, scope
	"07 04" + // k_f, k_c
	"0d 01 04 00 00 000000" + // widths, reserved
	"00000009" + // slot
	"0102030405060708" + // seed
	"00000000055d4a80" + // start
	"0000000000989680" + // length
	"00000014 00000005" + // filter bits, cells per table
	"00000000000003e8 000000000000fa00 0000000c 00000002 00000001" // counts

const (
	filterChunk = "5746 01 01" + head + "00000001 00000002" + "a50f"
	cellChunk   = "5746 01 02" + head + "00000013 00000001" +
		"0a000001 0a000002 c000 12b7 11" + "02" + "00000100"
)

// seal decodes hexadecimal and appends the checksum, computed apart from the
// encoder.
func seal(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// patch overwrites bytes of a sealed chunk and seals it again.
func patch(b []byte, at int, v ...byte) []byte {
	b = bytes.Clone(b[:len(b)-crcSize])
	copy(b[at:], v)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

func TestParse(t *testing.T) {
	filter, cell := seal(t, filterChunk), seal(t, cellChunk)
	flipped := bytes.Clone(cell)
	flipped[HeaderSize] ^= 1
	withProbes := paper()
	withProbes.Counts.Probes = 0x10203
	probed := patch(cell, 17, 1, 2, 3)
	for name, tc := range map[string]struct {
		in   []byte
		want Chunk
		err  error
	}{
		"filter":  {in: filter, want: Chunk{Header: paper(), Section: Filter, First: 1, Data: []byte{0xa5, 0x0f}}},
		"cell":    {in: cell, want: Chunk{Header: paper(), Section: Cells, First: 19, Data: cell[HeaderSize : len(cell)-4]}},
		"trailer": {in: append(bytes.Clone(filter), 0, 0), want: Chunk{Header: paper(), Section: Filter, First: 1, Data: []byte{0xa5, 0x0f}}},

		"empty":                    {err: ErrShort},
		"header cut":               {in: cell[:HeaderSize-1], err: ErrShort},
		"data cut":                 {in: cell[:len(cell)-crcSize-1], err: ErrShort},
		"checksum cut":             {in: cell[:len(cell)-1], err: ErrShort},
		"magic":                    {in: patch(cell, 0, 0x57, 0x45), err: ErrMagic},
		"version":                  {in: patch(cell, 2, 2), err: ErrVersion},
		"probes":                   {in: probed, want: Chunk{Header: withProbes, Section: Cells, First: 19, Data: cell[HeaderSize : len(cell)-4]}},
		"flipped bit":              {in: flipped, err: ErrChecksum},
		"section 0":                {in: patch(cell, 3, 0), err: ErrSpan},
		"section 3":                {in: patch(cell, 3, 3), err: ErrSpan},
		"key of 14":                {in: patch(cell, 12, 14), err: ErrLayout},
		"flow count of 0":          {in: patch(cell, 13, 0), err: ErrLayout},
		"flow count of 8":          {in: patch(cell, 13, 8), err: ErrLayout},
		"packet count of 0":        {in: patch(cell, 14, 0), err: ErrLayout},
		"byte count of 3":          {in: patch(cell, 15, 3), err: ErrLayout},
		"ports of 3":               {in: patch(cell, 16, 3), err: ErrLayout},
		"no filter hash":           {in: patch(cell, 10, 0), err: ErrGeometry},
		"no table":                 {in: patch(cell, 11, 0), err: ErrGeometry},
		"no filter":                {in: patch(cell, 48, 0, 0, 0, 0), err: ErrGeometry},
		"no cell":                  {in: patch(cell, 52, 0, 0, 0, 0), err: ErrGeometry},
		"more than 2^32 cells":     {in: patch(cell, 52, 0x40, 0, 0, 0), err: ErrGeometry},
		"slot without length":      {in: patch(cell, 40, 0, 0, 0, 0, 0, 0, 0, 0), err: ErrGeometry},
		"slot of negative length":  {in: patch(cell, 40, 0xff), err: ErrGeometry},
		"no unit":                  {in: patch(cell, 88, 0, 0, 0, 0), err: ErrSpan},
		"past the table":           {in: patch(cell, 84, 0, 0, 0, 20), err: ErrSpan},
		"past the filter":          {in: patch(filter, 84, 0, 0, 0, 2), err: ErrSpan},
		"span that wraps":          {in: patch(cell, 84, 0xff, 0xff, 0xff, 0xff), err: ErrSpan},
		"more units than there is": {in: patch(cell, 84, 0, 0, 0, 0, 0, 0, 0, 20), err: ErrShort},
	} {
		t.Run(name, func(t *testing.T) {
			got := Chunk{Section: 9, First: 9, Data: []byte{9}} // must be overwritten
			n, err := got.Parse(tc.in)
			if diff := cmp.Diff(tc.want, got); err != tc.err || diff != "" {
				t.Errorf("Parse(%x) = _, %v; want %v; chunk (-want +got):\n%s", tc.in, err, tc.err, diff)
			}
			if want := Overhead + len(tc.want.Data); err == nil && n != want {
				t.Errorf("Parse(%x) used %d bytes; want %d", tc.in, n, want)
			}
		})
	}
}

func TestCellOfThePapersLayout(t *testing.T) {
	var c Chunk
	if _, err := c.Parse(seal(t, cellChunk)); err != nil {
		t.Fatal(err)
	}
	want := Cell{Flows: 2, Packets: 256}
	copy(want.Key[:], []byte{10, 0, 0, 1, 10, 0, 0, 2, 0xc0, 0, 0x12, 0xb7, 17})
	var got Cell
	if c.Cell(0, &got); got != want || c.Len() != 1 {
		t.Errorf("%d cells, Cell(0) = %+v; want 1, %+v", c.Len(), got, want)
	}
}

func TestCheck(t *testing.T) {
	good := Chunk{Header: paper(), Section: Cells, First: 18, Data: make([]byte, 36)}
	for name, tc := range map[string]struct {
		spoil func(*Chunk)
		err   error
	}{
		"good":          {func(*Chunk) {}, nil},
		"layout":        {func(c *Chunk) { c.Layout.Key = 12 }, ErrLayout},
		"geometry":      {func(c *Chunk) { c.Tables = 0 }, ErrGeometry},
		"section":       {func(c *Chunk) { c.Section = 0 }, ErrSpan},
		"half a cell":   {func(c *Chunk) { c.Data = c.Data[:35] }, ErrSpan},
		"empty":         {func(c *Chunk) { c.Data = nil }, ErrSpan},
		"past the end":  {func(c *Chunk) { c.First++ }, ErrSpan},
		"zero":          {func(c *Chunk) { *c = Chunk{} }, ErrLayout},
		"cells of none": {func(c *Chunk) { *c = Chunk{Section: Cells, Data: []byte{1}} }, ErrLayout},
	} {
		t.Run(name, func(t *testing.T) {
			c := good
			tc.spoil(&c)
			if err := c.Check(); err != tc.err {
				t.Errorf("Check = %v; want %v", err, tc.err)
			}
			// AppendTo cannot fail, and what Check refuses Parse does, too; only
			// half a cell is omitted.
			var back Chunk
			_, err := back.Parse(c.AppendTo(nil))
			if (err == nil) != (tc.err == nil || name == "half a cell") {
				t.Errorf("Parse(AppendTo) = %v; Check says %v", err, tc.err)
			}
		})
	}
}

func FuzzChunk(f *testing.F) {
	f.Add(seal(f, filterChunk))
	f.Add(seal(f, cellChunk))
	wide := Chunk{Header: paper(), Section: Cells, Data: make([]byte, 2*57)}
	wide.Layout = Layout{Key: model.KeyLen6, Flows: 4, Packets: 8, Bytes: 4, Ports: 2}
	f.Add(wide.AppendTo(nil))
	narrow := Chunk{Header: paper(), Section: Cells, Data: make([]byte, 2*18)}
	narrow.Layout = Layout{Key: model.KeyLen4, Flows: 1, Packets: 2, Ports: 1}
	f.Add(narrow.AppendTo(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		// A fuzzer does not guess checksums: try the input with one, too.
		for _, in := range [][]byte{in, patch(append(bytes.Clone(in), 0, 0, 0, 0), 0)} {
			var c Chunk
			n, err := c.Parse(in)
			if err != nil {
				continue
			}
			if out := c.AppendTo(nil); !bytes.Equal(out, in[:n]) {
				t.Fatalf("round trip %x -> %x", in[:n], out)
			}
			if err := c.Check(); err != nil {
				t.Fatalf("Parse(%x) accepts what Check refuses: %v", in[:n], err)
			}
			if c.Section != Cells {
				continue
			}
			var again []byte
			for i := range c.Len() {
				var cell Cell
				c.Cell(i, &cell)
				again = c.Layout.AppendCell(again, &cell)
			}
			if !bytes.Equal(again, c.Data) {
				t.Fatalf("cells %x -> %x", c.Data, again)
			}
		}
	})
}

func TestAllocs(t *testing.T) {
	var c Chunk
	var cell Cell
	buf := seal(t, cellChunk)
	if n := testing.AllocsPerRun(100, func() {
		c.Parse(buf)
		c.Cell(0, &cell)
	}); n != 0 {
		t.Errorf("Parse and Cell allocate %v times", n)
	}
	out := make([]byte, 0, 2048)
	if n := testing.AllocsPerRun(100, func() { out = c.AppendTo(out[:0]) }); n != 0 {
		t.Errorf("AppendTo allocates %v times", n)
	}
	h := paper()
	if n := testing.AllocsPerRun(100, func() {
		s, err := h.Split(200)
		for span, ok := s.Next(); ok && err == nil; span, ok = s.Next() {
			out = h.Open(out[:0], span)
			for range span.Count {
				out = h.Layout.AppendCell(out, &cell)
			}
			out = Seal(out, 0)
		}
	}); n != 0 {
		t.Errorf("Split, Open, AppendCell and Seal allocate %v times", n)
	}
}

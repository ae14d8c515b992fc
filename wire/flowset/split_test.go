package flowset

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

func TestSplit(t *testing.T) {
	h := paper() // 3 bytes of filter, 20 cells of 18 bytes
	s, err := h.Split(Overhead + 9*18)
	if err != nil {
		t.Fatal(err)
	}
	var got []Span
	for span, ok := s.Next(); ok; span, ok = s.Next() {
		got = append(got, span)
	}
	want := []Span{{Filter, 0, 3}, {Cells, 0, 9}, {Cells, 9, 9}, {Cells, 18, 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Split (-want +got):\n%s", diff)
	}
	if span, ok := s.Next(); ok {
		t.Errorf("Next after the last = %v; want none", span)
	}
}

func TestSplitErrors(t *testing.T) {
	h := paper()
	want := "flowset: chunk size 113, want at least 114"
	if _, err := h.Split(Overhead + 17); err == nil || err.Error() != want {
		t.Errorf("Split(113) = %v; want %s", err, want)
	}
	h.Tables = 0
	if _, err := h.Split(1400); err != ErrGeometry {
		t.Errorf("Split with no table = %v; want %v", err, ErrGeometry)
	}
}

func drawHeader(t *rapid.T) Header {
	width := func(name string, from ...uint8) uint8 { return rapid.SampledFrom(from).Draw(t, name) }
	return Header{
		Switch: model.NodeID(rapid.Uint32().Draw(t, "switch")),
		Scope:  model.PortID(rapid.Uint16().Draw(t, "scope")),
		Seed:   rapid.Uint64().Draw(t, "seed"),
		Slot:   rapid.Uint32().Draw(t, "slot"),
		Start:  model.Time(rapid.Int64().Draw(t, "start")),
		Length: time.Duration(rapid.Int64Min(1).Draw(t, "length")),
		Geometry: Geometry{
			FilterHashes: rapid.Uint8Min(1).Draw(t, "filter hashes"),
			FilterBits:   rapid.Uint32Range(1, 5000).Draw(t, "filter bits"),
			Tables:       rapid.Uint8Range(1, 6).Draw(t, "tables"),
			TableCells:   rapid.Uint32Range(1, 30).Draw(t, "cells"),
		},
		Layout: Layout{
			Key:   width("key", model.KeyLen4, model.KeyLen6),
			Flows: width("flow count", 1, 2, 4), Packets: width("packet count", 1, 2, 4, 8),
			Bytes: width("byte count", 0, 1, 2, 4, 8), Ports: width("ports", 0, 1, 2),
		},
		Counts: Counts{
			Packets: rapid.Uint64().Draw(t, "packets"), Bytes: rapid.Uint64().Draw(t, "bytes"),
			Flows:   rapid.Uint32().Draw(t, "flows"),
			Unkeyed: rapid.Uint32().Draw(t, "unkeyed"), Missed: rapid.Uint32().Draw(t, "missed"),
		},
	}
}

// through is what a value becomes in a field of that many bytes, said slowly.
func through(v uint64, width uint8) uint64 {
	switch {
	case width == 0:
		return 0
	case width == 1 && v > math.MaxUint8:
		return math.MaxUint8
	case width == 2 && v > math.MaxUint16:
		return math.MaxUint16
	case width == 4 && v > math.MaxUint32:
		return math.MaxUint32
	}
	return v
}

// TestExportReachesTheReader writes whole flowsets chunk by chunk and expects
// every bit and every cell back, once.
func TestExportReachesTheReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHeader(t)
		l := h.Layout
		filter := rapid.SliceOfN(rapid.Byte(), int(h.Units(Filter)), int(h.Units(Filter))).Draw(t, "filter")
		cells := make([]Cell, h.Units(Cells))
		for i := range cells {
			copy(cells[i].Key[:l.Key], rapid.SliceOfN(rapid.Byte(), 1, 37).Draw(t, "key"))
			cells[i].Flows = rapid.Uint32().Draw(t, "cell flows")
			cells[i].Packets = rapid.Uint64().Draw(t, "cell packets")
			cells[i].Bytes = rapid.Uint64().Draw(t, "cell bytes")
			cells[i].InPort = model.PortID(rapid.Uint16().Draw(t, "in"))
			cells[i].OutPort = model.PortID(rapid.Uint16().Draw(t, "out"))
		}
		size := Overhead + l.Size() + rapid.IntRange(0, 500).Draw(t, "spare")
		split, err := h.Split(size)
		if err != nil {
			t.Fatal(err)
		}

		gotFilter := make([]byte, 0, len(filter))
		gotCells := make([]Cell, 0, len(cells))
		for span, ok := split.Next(); ok; span, ok = split.Next() {
			before := []byte("earlier") // chunks may share a buffer
			b := h.Open(before, span)
			for i := span.First; i < span.First+span.Count; i++ {
				if span.Section == Filter {
					b = append(b, filter[i])
				} else {
					b = l.AppendCell(b, &cells[i])
				}
			}
			b = Seal(b, len(before))[len(before):]
			var c Chunk
			if n, err := c.Parse(b); err != nil || n != len(b) || n > size {
				t.Fatalf("Parse(chunk %v of %d bytes) = %d, %v; want all of it, at most %d", span, len(b), n, err, size)
			}
			if c.Header != h {
				t.Fatalf("header %+v; want %+v", c.Header, h)
			}
			if c.Section == Filter {
				gotFilter = append(gotFilter, c.Data...)
				continue
			}
			for i := range c.Len() {
				cell := Cell{Bytes: 9, InPort: 9} // must be overwritten
				c.Cell(i, &cell)
				gotCells = append(gotCells, cell)
			}
		}
		for i := range cells {
			c := &cells[i]
			c.Flows = uint32(through(uint64(c.Flows), l.Flows))
			c.Packets, c.Bytes = through(c.Packets, l.Packets), through(c.Bytes, l.Bytes)
			switch l.Ports {
			case 0:
				c.InPort, c.OutPort = 0, 0
			case 1:
				c.InPort, c.OutPort = c.InPort%256, c.OutPort%256
			}
		}
		if diff := cmp.Diff(filter, gotFilter); diff != "" {
			t.Fatalf("filter (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(cells, gotCells); diff != "" {
			t.Fatalf("cells (-want +got):\n%s", diff)
		}
	})
}

func TestLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		layout         Layout
		flows          uint32
		packets, bytes uint64
	}{
		"narrow": {Layout{Flows: 1, Packets: 2}, 255, 65535, 0},
		"wide":   {Layout{Flows: 4, Packets: 8, Bytes: 4}, math.MaxUint32, math.MaxUint64, math.MaxUint32},
	} {
		t.Run(name, func(t *testing.T) {
			f, p, b := tc.layout.Limits()
			if f != tc.flows || p != tc.packets || b != tc.bytes {
				t.Errorf("%+v.Limits() = %d, %d, %d; want %d, %d, %d", tc.layout, f, p, b, tc.flows, tc.packets, tc.bytes)
			}
		})
	}
}

// bigChunk fills a datagram of 1500 bytes with the cells a switch exports.
func bigChunk() (Header, Span) {
	h := paper()
	h.TableCells = 1 << 14
	h.Layout = Layout{Key: model.KeyLen4, Flows: 2, Packets: 4, Bytes: 4}
	return h, Span{Cells, 0, uint32((1465 - Overhead) / h.Layout.Size())}
}

func BenchmarkExport(b *testing.B) {
	h, span := bigChunk()
	cell := Cell{Flows: 2, Packets: 300, Bytes: 1 << 20}
	buf := make([]byte, 0, 1500)
	for b.Loop() {
		buf = h.Open(buf[:0], span)
		for range span.Count {
			buf = h.Layout.AppendCell(buf, &cell)
		}
		buf = Seal(buf, 0)
	}
	b.ReportMetric(float64(b.N)*float64(span.Count)/b.Elapsed().Seconds()/1e6, "Mcell/s")
}

func BenchmarkRead(b *testing.B) {
	h, span := bigChunk()
	buf := h.Open(nil, span)
	buf = Seal(append(buf, make([]byte, int(span.Count)*h.Layout.Size())...), 0)
	var c Chunk
	var cell Cell
	for b.Loop() {
		if _, err := c.Parse(buf); err != nil {
			b.Fatal(err)
		}
		for i := range c.Len() {
			c.Cell(i, &cell)
		}
	}
	b.ReportMetric(float64(b.N)*float64(span.Count)/b.Elapsed().Seconds()/1e6, "Mcell/s")
}

package intreport

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stack is INT-MD of two hops written by hand: each adds its node, its queue,
// one word for domain 7 and a checksum complement.
var stack = []byte{
	0x18, 0x0b, 0x00, 0x06, // INT-MD in front of protocol 6, 11 words
	0x20, 0x00, 0x04, 0x06, // 4 words a hop, 6 hops remain
	0x90, 0x01, 0x00, 0x07, // node, queue, complement; domain 7
	0x80, 0x00, 0x00, 0x00, // its first bit

	0x00, 0x00, 0x00, 0x02, 0x01, 0x00, 0x00, 0x64, 0x0d, 0x05, 0x00, 0x02, 0xff, 0xff, 0xff, 0xff,
	0x00, 0x00, 0x00, 0x01, 0x03, 0x00, 0x00, 0x32, 0x0d, 0x05, 0x00, 0x01, 0x00, 0x00, 0x12, 0x34,
}

func TestStackParse(t *testing.T) {
	var s Stack
	n, err := s.Parse(append(append([]byte{}, stack...), 0xaa))
	want := Stack{
		Shim:   Shim{Type: ShimMD, NextType: NextProto, Length: 11, Next: 6},
		Header: MDHeader{HopWords: 4, RemainingHops: 6, Bits: BitNode | BitQueue | BitLast, Domain: 7, DSBits: 0x8000},
		Hops:   stack[16:],
		Source: []byte{},
	}
	if diff := cmp.Diff(want, s); n != len(stack) || err != nil || diff != "" {
		t.Fatalf("Parse(%x) = %d, %v (-want +got):\n%s", stack, n, err, diff)
	}
	bits := s.Header.Bits
	hops := []Hop{
		{Metadata{Bits: bits, Missing: BitLast, Node: 2, Queue: 1, QueueDepth: 100}, []byte{0x0d, 0x05, 0, 2}},
		{Metadata{Bits: bits, Node: 1, Queue: 3, QueueDepth: 50, Last: 0x1234}, []byte{0x0d, 0x05, 0, 1}},
	}
	if s.Len() != len(hops) {
		t.Fatalf("Len = %d; want %d", s.Len(), len(hops))
	}
	for i, want := range hops {
		if diff := cmp.Diff(want, s.Hop(i)); diff != "" {
			t.Errorf("Hop(%d) (-want +got):\n%s", i, diff)
		}
		if got := want.AppendTo(nil); !bytes.Equal(got, stack[16+16*i:32+16*i]) {
			t.Errorf("Hop %d AppendTo = %x; want %x", i, got, stack[16+16*i:32+16*i])
		}
	}
}

func TestStackParseRejects(t *testing.T) {
	edit := func(b []byte, at int, v ...byte) []byte {
		b = append([]byte{}, b...)
		copy(b[at:], v)
		return b
	}
	for name, tc := range map[string]struct {
		in  []byte
		err error
	}{
		"shim cut":                    {stack[:3], ErrShort},
		"stack cut":                   {stack[:47], ErrShort},
		"INT-MX":                      {edit(stack, 0, 0x38), ErrType},
		"too short for a header":      {edit(stack, 1, 2), ErrShort},
		"version 1":                   {edit(stack, 4, 0x10), ErrVersion},
		"bitmap wider than a hop":     {edit(stack, 6, 2), ErrMetadata},
		"hops of no words":            {edit(stack, 6, 0), ErrMetadata},
		"hops of no words, no bits":   {edit(edit(stack, 6, 0), 8, 0, 0), ErrMetadata},
		"left over, domain adds none": {edit(append(edit(stack, 1, 12), 1, 2, 3, 4), 12, 0), ErrMetadata},
	} {
		t.Run(name, func(t *testing.T) {
			s := Stack{Source: []byte{1}}
			if n, err := s.Parse(tc.in); n != 0 || err != tc.err || s.Source != nil || s.Hops != nil {
				t.Errorf("Parse(%x) = %+v, %d, %v; want nothing, 0, %v", tc.in, s, n, err, tc.err)
			}
		})
	}
}

func TestMDHeaderParse(t *testing.T) {
	in := func(word ...byte) []byte { return append(word, 0x80, 0, 0, 1, 0, 2, 0, 3) }
	want := func(h MDHeader) MDHeader {
		h.Bits, h.Domain, h.DSBits, h.DSFlags = BitNode, 1, 2, 3
		return h
	}
	for name, tc := range map[string]struct {
		in   []byte
		want MDHeader
		err  error
	}{
		"discard":       {in(0x28, 0, 0, 0), want(MDHeader{Discard: true}), nil},
		"hops exceeded": {in(0x24, 0, 0, 0), want(MDHeader{HopsExceeded: true}), nil},
		"MTU exceeded":  {in(0x22, 0, 0, 0), want(MDHeader{MTUExceeded: true}), nil},
		"reserved":      {in(0x21, 0xff, 0xe0, 0), want(MDHeader{Reserved: 0xfff}), nil},
		"hop words":     {in(0x20, 0, 0x1f, 9), want(MDHeader{HopWords: 31, RemainingHops: 9}), nil},
		"version 3":     {in(0x30, 0, 0, 0), MDHeader{}, ErrVersion},
		"cut":           {in(0x20, 0, 0, 0)[:11], MDHeader{}, ErrShort},
	} {
		got := MDHeader{Domain: 99}
		if n, err := got.Parse(tc.in); err != tc.err || got != tc.want || (err == nil) != (n == MDHeaderSize) {
			t.Errorf("%s: Parse(%x) = %+v, %d, %v; want %+v, %v", name, tc.in, got, n, err, tc.want, tc.err)
		}
	}
	wide := MDHeader{Reserved: 0xffff, HopWords: 0xff}
	if got, want := wide.AppendTo(nil)[:4], []byte{0x21, 0xff, 0xff, 0}; !bytes.Equal(got, want) {
		t.Errorf("AppendTo of fields too wide = %x; want %x", got, want)
	}
}

// TestStackSource: the first hop may add more for its domain than the others.
func TestStackSource(t *testing.T) {
	in := append([]byte{}, stack...)
	in[1]++
	in = append(in, 1, 2, 3, 4)
	var s Stack
	if n, err := s.Parse(in); n != len(in) || err != nil || s.Len() != 2 || !bytes.Equal(s.Source, []byte{1, 2, 3, 4}) {
		t.Errorf("Parse(%x) = %d, %v with %d hops and %x from the source; want 2 and 01020304", in, n, err, s.Len(), s.Source)
	}
}

func TestStackWithoutHops(t *testing.T) {
	in := []byte{0x14, 3, 0x12, 0xb5, 0x2e, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0}
	var s Stack
	n, err := s.Parse(in)
	if n != 16 || err != nil || s.Len() != 0 || !s.Header.Discard || !s.Header.HopsExceeded || !s.Header.MTUExceeded || s.Shim.Next != 4789 {
		t.Errorf("Parse(%x) = %+v, %d, %v; want all three flags, port 4789 and no hop", in, s, n, err)
	}
}

func TestStackAppendCuts(t *testing.T) {
	s := Stack{Header: MDHeader{HopWords: 1}, Hops: make([]byte, 252*4+7), Source: make([]byte, 8)}
	if got := s.AppendTo(nil); len(got) != 256*4 || got[1] != 255 {
		t.Errorf("AppendTo of %d bytes of hops makes %d bytes, %d words stated; want 1024, 255", len(s.Hops), len(got), got[1])
	}
}

func TestHopParseRejects(t *testing.T) {
	for name, in := range map[string][]byte{"too short": make([]byte, 4), "half a word": make([]byte, 10)} {
		h := Hop{DS: []byte{1}}
		if n, err := h.Parse(BitNode|BitLast, in); n != 0 || err != ErrMetadata || h.DS != nil {
			t.Errorf("%s: Parse(%x) = %+v, %d, %v; want nothing, 0, ErrMetadata", name, in, h, n, err)
		}
	}
}

func FuzzShim(f *testing.F) {
	f.Add(stack[:4])
	f.Fuzz(func(t *testing.T, in []byte) {
		var s Shim
		if n, err := s.Parse(in); err == nil && !bytes.Equal(s.AppendTo(nil), in[:n]) {
			t.Fatalf("round trip %x -> %+v -> %x", in[:n], s, s.AppendTo(nil))
		}
	})
}

func FuzzMDHeader(f *testing.F) {
	f.Add(stack[4:16])
	f.Add([]byte{0x2f, 0xff, 0xff, 8, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		var h MDHeader
		if n, err := h.Parse(in); err == nil && !bytes.Equal(h.AppendTo(nil), in[:n]) {
			t.Fatalf("round trip %x -> %+v -> %x", in[:n], h, h.AppendTo(nil))
		}
	})
}

func FuzzHop(f *testing.F) {
	f.Add(uint16(BitNode|BitQueue|BitLast), stack[16:32])
	f.Fuzz(func(t *testing.T, announced uint16, in []byte) {
		var h Hop
		if n, err := h.Parse(Bits(announced), in); err == nil && !bytes.Equal(h.AppendTo(nil), in[:n]) {
			t.Fatalf("round trip %016b %x -> %+v -> %x", announced, in[:n], h, h.AppendTo(nil))
		}
	})
}

func FuzzStack(f *testing.F) {
	f.Add(stack)
	f.Fuzz(func(t *testing.T, in []byte) {
		var s Stack
		n, err := s.Parse(in)
		if err != nil {
			return
		}
		if out := s.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %+v -> %x", in[:n], s, out)
		}
		var hops []byte
		for i := range s.Len() {
			hops = s.Hop(i).AppendTo(hops)
		}
		if !bytes.Equal(hops, s.Hops) {
			t.Fatalf("hop by hop %x -> %x", s.Hops, hops)
		}
	})
}

func BenchmarkStackParse(b *testing.B) {
	var (
		s Stack
		h Hop
	)
	for b.Loop() {
		_, _ = s.Parse(stack)
		for i := range s.Len() {
			h = s.Hop(i)
		}
	}
	_ = h
}

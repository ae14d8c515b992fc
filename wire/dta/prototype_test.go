package dta

import (
	"bytes"
	"strconv"
	"testing"
)

// prototypes are written by hand from the prototype's header definitions.
var prototypes = map[string]struct {
	wire []byte
	want Prototype
}{
	"key-write, base 3": {
		fromHex("01 2a c5" + "04 3b9aca00 00000001"),
		Prototype{Layout: Base3, Seq: 42, Reserved: 5, Report: Report{
			Primitive: KeyWrite, Immediate: true, Retransmit: true, Redundancy: 4,
			Key: []byte{0x3b, 0x9a, 0xca, 0}, Data: []byte{0, 0, 0, 1},
		}},
	},
	"key-write, base 2": {
		fromHex("01 05" + "02 0a000001 0000beef"),
		Prototype{Layout: Base2, Reserved: 5, Report: Report{
			Primitive: KeyWrite, Redundancy: 2, Key: []byte{10, 0, 0, 1}, Data: []byte{0, 0, 0xbe, 0xef},
		}},
	},
	"key-write of 12 bytes": {
		fromHex("01 00 00" + "01 00000001" + "000102030405060708090a0b"),
		Prototype{Layout: Base3, Report: Report{
			Primitive: KeyWrite, Redundancy: 1, Key: []byte{0, 0, 0, 1},
			Data: []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		}},
	},
	"key-write of 28 bytes, base 2": {
		append(fromHex("01 80"+"01 00000001"), bytes.Repeat([]byte{7}, 28)...),
		Prototype{Layout: Base2, Report: Report{
			Primitive: KeyWrite, Immediate: true, Redundancy: 1, Key: []byte{0, 0, 0, 1},
			Data: bytes.Repeat([]byte{7}, 28),
		}},
	},
	"append, base 3": {
		fromHex("02 01 40" + "00000003 0000000a"),
		Prototype{Layout: Base3, Seq: 1, Report: Report{
			Primitive: Append, Retransmit: true, List: 3, Data: []byte{0, 0, 0, 10},
		}},
	},
	"append, base 2": {
		fromHex("02 7f" + "00000003 0000000a"),
		Prototype{Layout: Base2, Reserved: 127, Report: Report{Primitive: Append, List: 3, Data: []byte{0, 0, 0, 10}}},
	},
	"key-increment, base 3": {
		fromHex("03 00 00" + "02 00000001 0000000000000064"),
		Prototype{Layout: Base3, Report: Report{Primitive: KeyIncrement, Redundancy: 2, Key: []byte{0, 0, 0, 1}, Delta: 100}},
	},
	"key-increment, base 2": {
		fromHex("03 00" + "02 00000001 0000000000000064"),
		Prototype{Layout: Base2, Report: Report{Primitive: KeyIncrement, Redundancy: 2, Key: []byte{0, 0, 0, 1}, Delta: 100}},
	},
	"postcard of the first hop, base 3": {
		fromHex("04 00 00" + "00000001 01 00000011"),
		Prototype{Layout: Base3, Report: Report{
			Primitive: Postcarding, Redundancy: 1, Hop: 0, Key: []byte{0, 0, 0, 1}, Data: []byte{0, 0, 0, 17},
		}},
	},
	"postcard of the fifth hop, base 2": {
		fromHex("04 00" + "00000001 05 00000011"),
		Prototype{Layout: Base2, Report: Report{
			Primitive: Postcarding, Redundancy: 1, Hop: 4, Key: []byte{0, 0, 0, 1}, Data: []byte{0, 0, 0, 17},
		}},
	},
}

func TestPrototype(t *testing.T) {
	for name, tc := range prototypes {
		t.Run(name, func(t *testing.T) {
			layout, err := DetectLayout(tc.wire)
			if layout != tc.want.Layout || err != nil {
				t.Errorf("DetectLayout(%x) = %d, %v; want %d, nil", tc.wire, layout, err, tc.want.Layout)
			}
			got := Prototype{Seq: 9, Reserved: 9, Report: Report{Hop: 9, List: 9, Key: []byte{9}, Data: []byte{9}, Delta: 9}}
			n, err := got.Parse(tc.wire, tc.want.Layout)
			if n != len(tc.wire) || err != nil || !equal(got.Report, tc.want.Report) ||
				got.Layout != tc.want.Layout || got.Seq != tc.want.Seq || got.Reserved != tc.want.Reserved {
				t.Errorf("Parse(%x) = %+v, %d, %v; want %+v, %d, nil", tc.wire, got, n, err, tc.want, len(tc.wire))
			}
			if out := tc.want.AppendTo([]byte{0xaa}); !bytes.Equal(out[1:], tc.wire) || out[0] != 0xaa {
				t.Errorf("%+v.AppendTo(aa) = %x; want aa%x", tc.want, out, tc.wire)
			}
			// A translator takes the report as it takes its own.
			if err := got.Report.Check(); err != nil {
				t.Errorf("Check() of the report in %x = %v; want nil", tc.wire, err)
			}
		})
	}
}

// The sizes that the prototype's programs send.
func TestPrototypeSizes(t *testing.T) {
	key, data := make([]byte, 4), make([]byte, 4)
	for _, tc := range []struct {
		primitive    Primitive
		base3, base2 int
	}{
		{KeyWrite, 12, 11},
		{KeyIncrement, 16, 15},
		{Append, 11, 10},
		{Postcarding, 12, 11},
	} {
		p := Prototype{Report: Report{Primitive: tc.primitive, Redundancy: 1, Key: key, Data: data}}
		for layout, want := range map[Layout]int{Base3: tc.base3, Base2: tc.base2} {
			p.Layout = layout
			if got := len(p.AppendTo(nil)); got != want {
				t.Errorf("a %v with a %d-byte base has %d bytes; want %d", tc.primitive, layout, got, want)
			}
		}
	}
}

// Whatever the length, at most one layout parses it, and DetectLayout names it.
func TestPrototypeLayoutsAreNeverAmbiguous(t *testing.T) {
	for first := range 256 {
		for size := range 64 {
			b := bytes.Repeat([]byte{1}, size) // redundancy 1, hop 1
			if size > 0 {
				b[0] = byte(first)
			}
			var p Prototype
			_, err2 := p.Parse(b, Base2)
			_, err3 := p.Parse(b, Base3)
			layout, err := DetectLayout(b)
			want2, want3 := err == nil && layout == Base2, err == nil && layout == Base3
			if (err2 == nil) != want2 || (err3 == nil) != want3 {
				t.Errorf("%d bytes starting with %#02x: base 2 %v, base 3 %v, DetectLayout %d, %v", size, first, err2, err3, layout, err)
			}
		}
	}
}

func TestPrototypeErrors(t *testing.T) {
	for in, want := range map[string]struct {
		layout Layout
		parse  error
		detect error
	}{
		"":                                        {Base3, ErrShort, ErrShort},
		"01":                                      {Base2, ErrShort, ErrLayout},
		"01 00":                                   {Base3, ErrShort, ErrLayout},
		"00 00 00 01 00000001 00000001":           {Base3, ErrPrimitive, ErrPrimitive},
		"05 00 00 01 00000001 00000001":           {Base3, ErrPrimitive, ErrPrimitive},
		"d1 00 0000 00000001 00000001":            {Base3, ErrPrimitive, ErrPrimitive},
		"01 00 00 01 00000001 0000000001":         {Base3, ErrLayout, ErrLayout},
		"01 00 00 01 00000001 00000001":           {Base2, ErrLayout, nil},
		"04 00 00 00000001 01 00000001":           {4, ErrLayout, nil},
		"01 00 00 00 00000001 00000001":           {Base3, ErrRedundancy, nil},
		"03 00 05 00000001 " + "0000000000000001": {Base2, ErrRedundancy, nil},
		"04 00 00 00000001 00 00000001":           {Base3, ErrHop, nil},
	} {
		b := fromHex(in)
		var p Prototype
		if n, err := p.Parse(b, want.layout); n != 0 || err != want.parse {
			t.Errorf("Parse(%x, %d) = %d, %v; want 0, %v", b, want.layout, n, err, want.parse)
		}
		if _, err := DetectLayout(b); err != want.detect {
			t.Errorf("DetectLayout(%x) = %v; want %v", b, err, want.detect)
		}
	}
}

func TestPrototypeCheck(t *testing.T) {
	key, data := make([]byte, 13), make([]byte, 28)
	write := func(keyLen, dataLen int) Report {
		return Report{Primitive: KeyWrite, Redundancy: 1, Key: key[:keyLen], Data: data[:dataLen]}
	}
	for name, tc := range map[string]struct {
		p    Prototype
		want error
	}{
		"no layout":         {Prototype{Report: write(4, 4)}, ErrLayout},
		"flow key":          {Prototype{Layout: Base3, Report: write(13, 4)}, ErrKeyLen},
		"8 bytes":           {Prototype{Layout: Base3, Report: write(4, 8)}, ErrDataLen},
		"28 bytes":          {Prototype{Layout: Base3, Report: write(4, 28)}, nil},
		"no report":         {Prototype{Layout: Base3}, ErrPrimitive},
		"append of 8 bytes": {Prototype{Layout: Base2, Report: Report{Primitive: Append, Data: data[:8]}}, ErrDataLen},
		"append":            {Prototype{Layout: Base2, Report: Report{Primitive: Append, Data: data[:4]}}, nil},
		"hop 254":           {Prototype{Layout: Base3, Report: Report{Primitive: Postcarding, Redundancy: 2, Hop: 254, Path: 5, Key: key[:4], Data: data[:4]}}, nil},
		"hop 255":           {Prototype{Layout: Base3, Report: Report{Primitive: Postcarding, Redundancy: 1, Hop: 255, Key: key[:4], Data: data[:4]}}, ErrHop},
	} {
		if got := tc.p.Check(); got != tc.want {
			t.Errorf("%s: Check() = %v; want %v", name, got, tc.want)
		}
		if got := panics(func() { tc.p.AppendTo(nil) }); got != (tc.want != nil) {
			t.Errorf("%s: AppendTo panics: %v; want %v", name, got, tc.want != nil)
		}
	}
}

func FuzzPrototype(f *testing.F) {
	for _, tc := range prototypes {
		f.Add(tc.wire, byte(tc.want.Layout))
	}
	f.Fuzz(func(t *testing.T, in []byte, layout byte) {
		var p Prototype
		n, err := p.Parse(in, Layout(layout))
		if err != nil {
			return
		}
		if out := p.AppendTo(nil); !bytes.Equal(out, in) || n != len(in) {
			t.Fatalf("round trip %x -> %+v -> %x, %d bytes used", in, p, out, n)
		}
		if got, err := DetectLayout(in); got != p.Layout || err != nil {
			t.Fatalf("DetectLayout(%x) = %d, %v; want %d, nil", in, got, err, p.Layout)
		}
		// The same report crosses version 1 unchanged.
		var r Report
		if _, err := r.Parse(p.Report.AppendTo(nil)); err != nil || !equal(r, p.Report) {
			t.Fatalf("%+v through version 1 is %+v, %v", p.Report, r, err)
		}
	})
}

func TestPrototypeAllocs(t *testing.T) {
	buf := make([]byte, 0, 64)
	var p Prototype
	for name, tc := range prototypes {
		if n := testing.AllocsPerRun(100, func() {
			layout, _ := DetectLayout(tc.wire)
			p.Parse(tc.wire, layout)
			buf = p.AppendTo(buf[:0])
		}); n != 0 {
			t.Errorf("%s: Parse and AppendTo allocate %v times; want 0", name, n)
		}
	}
}

func TestPrototypeAck(t *testing.T) {
	for in, want := range map[string]PrototypeAck{
		"2a80": {Seq: 42, Nack: true},
		"d105": {Seq: 0xd1, Reserved: 5},
	} {
		wire := fromHex(in)
		var got PrototypeAck
		if n, err := got.Parse(wire); got != want || n != PrototypeAckSize || err != nil {
			t.Errorf("Parse(%x) = %+v, %d, %v; want %+v, %d, nil", wire, got, n, err, want, PrototypeAckSize)
		}
		if out := want.AppendTo(nil); !bytes.Equal(out, wire) {
			t.Errorf("%+v.AppendTo(nil) = %x; want %x", want, out, wire)
		}
	}
	for size, want := range map[int]error{0: ErrShort, 1: ErrShort, 3: ErrTrailing, AckSize: ErrTrailing} {
		var got PrototypeAck
		if n, err := got.Parse(make([]byte, size)); n != 0 || err != want {
			t.Errorf("Parse of "+strconv.Itoa(size)+" bytes = %d, %v; want 0, %v", n, err, want)
		}
	}
}

func FuzzPrototypeAck(f *testing.F) {
	f.Add([]byte{42, 0x80})
	f.Fuzz(func(t *testing.T, in []byte) {
		var a PrototypeAck
		if _, err := a.Parse(in); err != nil {
			return
		}
		if out := a.AppendTo(nil); !bytes.Equal(out, in) {
			t.Fatalf("round trip %x -> %+v -> %x", in, a, out)
		}
	})
}

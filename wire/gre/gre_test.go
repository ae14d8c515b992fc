package gre

import (
	"bytes"
	"testing"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		in   []byte
		want Header
		err  error
	}{
		"plain": {in: []byte{0, 0, 8, 0}, want: Header{Protocol: 0x0800}},
		"all fields": {
			in:   []byte{0xb0, 0, 0x65, 0x58, 0x11, 0x11, 0x22, 0x22, 0x33, 0x33, 0x33, 0x33, 0x44, 0x44, 0x44, 0x44},
			want: Header{Protocol: 0x6558, HasChecksum: true, HasKey: true, HasSeq: true, Checksum: 0x1111, Reserved1: 0x2222, Key: 0x33333333, Seq: 0x44444444},
		},
		"sequence alone":     {in: []byte{0x10, 0, 0x88, 0xbe, 0, 0, 0, 9}, want: Header{Protocol: 0x88be, HasSeq: true, Seq: 9}},
		"stray flags kept":   {in: []byte{0x05, 0x08, 8, 0}, want: Header{Protocol: 0x0800, Flags: 0x0508}},
		"routing":            {in: []byte{0x40, 0, 8, 0, 0, 0, 0, 0}, err: ErrHeader},
		"PPTP":               {in: []byte{0x20, 1, 0x88, 0x0b, 0, 0, 0, 0}, err: ErrHeader},
		"short":              {in: []byte{0, 0, 8}, err: ErrShort},
		"cut optional field": {in: []byte{0x30, 0, 8, 0, 0, 0, 0, 1, 0, 0, 0}, err: ErrShort},
	} {
		t.Run(name, func(t *testing.T) {
			got := Header{Key: 99}
			n, err := got.Parse(append(bytes.Clone(tc.in), 0xee)[:len(tc.in)])
			if err != tc.err || got != tc.want || err == nil && n != len(tc.in) {
				t.Errorf("Parse(%x) = %+v, %d, %v; want %+v, %v", tc.in, got, n, err, tc.want, tc.err)
			}
			if out := tc.want.AppendTo(nil); tc.err == nil && !bytes.Equal(out, tc.in) {
				t.Errorf("AppendTo(%+v) = %x; want %x", tc.want, out, tc.in)
			}
		})
	}
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte{0xb0, 0, 0x65, 0x58, 0x11, 0x11, 0x22, 0x22, 0x33, 0x33, 0x33, 0x33, 0x44, 0x44, 0x44, 0x44})
	f.Fuzz(func(t *testing.T, in []byte) {
		var h Header
		n, err := h.Parse(in)
		if err != nil {
			return
		}
		if out := h.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %x", in[:n], out)
		}
	})
}

func TestAllocs(t *testing.T) {
	in := Header{HasKey: true, Key: 5}.AppendTo(nil)
	var h Header
	buf := make([]byte, 0, 16)
	if n := testing.AllocsPerRun(100, func() {
		h.Parse(in)
		buf = h.AppendTo(buf[:0])
	}); n != 0 {
		t.Errorf("Parse and AppendTo allocate %v times; want 0", n)
	}
}

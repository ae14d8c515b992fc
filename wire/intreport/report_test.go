package intreport

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReportParse(t *testing.T) {
	long := append([]byte{0x04, 0xff, 0, 0}, make([]byte, 255*4)...)
	for name, tc := range map[string]struct {
		in   []byte
		want Report
		n    int
		err  error
	}{
		"empty":                     {in: []byte{0, 0, 0, 0, 9, 9}, want: Report{Contents: []byte{}}, n: 4},
		"inner only":                {in: []byte{0x03, 1, 0, 0x40, 1, 2, 3, 4, 9}, want: Report{Inner: InnerEthernet, Flags: Congested, Contents: []byte{1, 2, 3, 4}}, n: 8},
		"stray metadata length":     {in: []byte{0x04, 0, 9, 0x0f}, want: Report{Inner: InnerIPv4, Flags: 0x0f, MDLen: 9, Contents: []byte{}}, n: 4},
		"another type":              {in: []byte{0x25, 1, 1, 0, 1, 2, 3, 4}, want: Report{Type: IOAM, Inner: InnerIPv6, MDLen: 1, Contents: []byte{1, 2, 3, 4}}, n: 8},
		"to the end":                {in: long, want: Report{Inner: InnerIPv4, ToEnd: true, Contents: long[4:]}, n: len(long)},
		"to the end, though short":  {in: long[:7], want: Report{Inner: InnerIPv4, ToEnd: true, Contents: []byte{0, 0, 0}}, n: 7},
		"header cut":                {in: []byte{0, 0, 0}, err: ErrShort},
		"body cut":                  {in: []byte{0, 1, 0, 0, 1, 2, 3}, err: ErrShort},
		"INT without main contents": {in: []byte{0x10, 1, 0, 0, 0, 0, 0, 0}, err: ErrLength},
		"metadata beyond report":    {in: []byte{0x10, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1}, err: ErrLength},
		"bitmap beyond metadata":    {in: []byte{0x10, 3, 1, 0, 0x60, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1}, err: ErrMetadata},
	} {
		t.Run(name, func(t *testing.T) {
			got := Report{MDLen: 99}
			n, err := got.Parse(tc.in)
			if n != tc.n || err != tc.err {
				t.Errorf("Parse(%x) = %d, %v; want %d, %v", tc.in, n, err, tc.n, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Parse(%x) reads another report (-want +got):\n%s", tc.in, diff)
			}
		})
	}
}

// TestReportAppend: lengths that the encoder has to work out.
func TestReportAppend(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Report
		want []byte
	}{
		"contents padded":     {Report{Inner: InnerIPv4, Contents: []byte{1, 2, 3, 4, 5}}, []byte{4, 2, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0}},
		"open end not padded": {Report{Inner: InnerIPv4, ToEnd: true, Contents: []byte{1}}, []byte{4, 0xff, 0, 0, 1}},
		"metadata counted": {
			Report{Type: INT, MDLen: 77, Metadata: Metadata{Bits: BitHopLatency, HopLatency: 5}, DS: []byte{1, 2, 3, 4, 5}},
			[]byte{0x10, 4, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4},
		},
	} {
		if got := tc.in.AppendTo(nil); !bytes.Equal(got, tc.want) {
			t.Errorf("%s: AppendTo of %+v = %x; want %x", name, tc.in, got, tc.want)
		}
	}
	for _, tc := range []struct {
		contents, want int
		length         byte
	}{{254 * 4, 254 * 4, 254}, {254*4 - 1, 254 * 4, 254}, {254*4 + 1, 254*4 + 1, 0xff}, {255 * 4, 255 * 4, 0xff}} {
		got := Report{Contents: make([]byte, tc.contents)}.AppendTo(nil)
		if len(got) != ReportSize+tc.want || got[1] != tc.length {
			t.Errorf("AppendTo of %d bytes makes %d of length %d; want %d of length %d",
				tc.contents, len(got)-ReportSize, got[1], tc.want, tc.length)
		}
	}
	all := Report{Type: INT, DS: make([]byte, 2000)}
	all.Bits = 0xffff
	var back Report
	if _, err := back.Parse(all.AppendTo(nil)); err != nil || back.MDLen != 255 || len(back.DS) != 255*4-all.Bits.Size() {
		t.Errorf("2000 bytes of DS come back as %d, %d words of metadata, %v; want the 255 words that fit", len(back.DS), back.MDLen, err)
	}
}

func TestTLV(t *testing.T) {
	in := []byte{0x2f, 1, 0x12, 0x34, 0x45, 0, 0, 0, 0x10, 0, 0, 0}
	var tlv TLV
	if n, err := tlv.Parse(in); n != 8 || err != nil || tlv.Type != 2 || tlv.Reserved != 15 || tlv.Template != 0x1234 || !bytes.Equal(tlv.Data, in[4:8]) {
		t.Errorf("Parse(%x) = %+v, %d, %v; want IPv4 in 8 bytes", in, tlv, n, err)
	}
	for _, cut := range [][]byte{in[:3], in[:7]} {
		if n, err := tlv.Parse(cut); n != 0 || err != ErrShort || tlv.Data != nil {
			t.Errorf("Parse(%x) = %+v, %d, %v; want nothing, 0, ErrShort", cut, tlv, n, err)
		}
	}
	if got, want := (TLV{Type: 3, Data: []byte{9}}).AppendTo(nil), []byte{0x30, 1, 0, 0, 9, 0, 0, 0}; !bytes.Equal(got, want) {
		t.Errorf("AppendTo = %x; want %x", got, want)
	}
	if got := (TLV{Data: make([]byte, 1025)}).AppendTo(nil); len(got) != 4+1020 || got[1] != 255 {
		t.Errorf("AppendTo of 1025 bytes makes %d, %d words; want 1024, 255", len(got), got[1])
	}
}

func FuzzReport(f *testing.F) {
	f.Add(datagram[8:48])
	f.Add(datagram[48:64])
	f.Add(datagram[64:])
	f.Fuzz(func(t *testing.T, in []byte) {
		var r Report
		n, err := r.Parse(in)
		if err != nil {
			return
		}
		if out := r.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %+v -> %x", in[:n], r, out)
		}
	})
}

func FuzzTLV(f *testing.F) {
	f.Add([]byte{0x2f, 1, 0x12, 0x34, 0x45, 0, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		var tlv TLV
		n, err := tlv.Parse(in)
		if err != nil {
			return
		}
		if out := tlv.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %+v -> %x", in[:n], tlv, out)
		}
	})
}

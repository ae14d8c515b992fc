package dta

import (
	"bytes"
	"testing"
)

func TestAck(t *testing.T) {
	for name, tc := range map[string]struct {
		wire []byte
		want Ack
	}{
		"stored":          {fromHex("d1 00 0000 00000007 00000009 00000002"), Ack{Verdict: Stored, Reporter: 7, First: 9, Count: 2}},
		"gap":             {fromHex("d1 01 0000 01020304 fffffffe 00010000"), Ack{Verdict: Gap, Reporter: 0x1020304, First: 0xfffffffe, Count: 65536}},
		"unknown verdict": {fromHex("d1 ff 0000 00000000 00000000 00000000"), Ack{Verdict: 255}},
	} {
		var got Ack
		if n, err := got.Parse(append(bytes.Clone(tc.wire), 0xee)); got != tc.want || n != AckSize || err != nil {
			t.Errorf("%s: Parse(%xee) = %+v, %d, %v; want %+v, %d, nil", name, tc.wire, got, n, err, tc.want, AckSize)
		}
		if out := tc.want.AppendTo([]byte{0xaa}); !bytes.Equal(out[1:], tc.wire) || out[0] != 0xaa {
			t.Errorf("%s: %+v.AppendTo(aa) = %x; want aa%x", name, tc.want, out, tc.wire)
		}
	}
	for in, wantErr := range map[string]error{
		"":                                      ErrShort,
		"d180":                                  ErrShort, // the prototype's, whose sequence number happens to be 0xd1
		"d1 00 0000 00000007 00000009 000000":   ErrShort,
		"d2 00 0000 00000007 00000009 00000002": ErrVersion,
		"d1 00 0100 00000007 00000009 00000002": ErrReserved,
		"d1 00 0001 00000007 00000009 00000002": ErrReserved,
	} {
		got := Ack{Count: 1}
		if n, err := got.Parse(fromHex(in)); got != (Ack{}) || n != 0 || err != wantErr {
			t.Errorf("Parse(%s) = %+v, %d, %v; want {}, 0, %v", in, got, n, err, wantErr)
		}
	}
}

func FuzzAck(f *testing.F) {
	f.Add(Ack{Verdict: RateLimited, Reporter: 7, First: 9, Count: 2}.AppendTo(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		var a Ack
		n, err := a.Parse(in)
		if err != nil {
			return
		}
		if out := a.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %+v -> %x", in[:n], a, out)
		}
	})
}

func TestAckAllocs(t *testing.T) {
	wire := Ack{Verdict: Gap}.AppendTo(nil)
	var a Ack
	var p PrototypeAck
	if n := testing.AllocsPerRun(100, func() {
		a.Parse(wire)
		wire = a.AppendTo(wire[:0])
		p.Parse(wire[:PrototypeAckSize])
		wire = p.AppendTo(wire[:0])
		wire = a.AppendTo(wire[:0])
	}); n != 0 {
		t.Errorf("Parse and AppendTo allocate %v times; want 0", n)
	}
}

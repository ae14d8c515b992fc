package dta

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// fromHex reads hex digits with any white space between them.
func fromHex(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

// equal compares reports; a field that is not there may be nil or empty.
func equal(a, b Report) bool { return cmp.Equal(a, b, cmpopts.EquateEmpty()) }

// reports are written by hand, one and more per primitive.
var reports = map[string]struct {
	wire []byte
	want Report
}{
	"key-write of a flow": {
		fromHex("1 0 4d 0004" + "0a000001 0a000002 0050 9c40 06" + "00000007"),
		Report{
			Primitive: KeyWrite, Redundancy: 2,
			Key:  []byte{10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 0x9c, 0x40, 6},
			Data: []byte{0, 0, 0, 7},
		},
	},
	"key-write without data": {
		fromHex("1 c c1 0000" + "05"),
		Report{Primitive: KeyWrite, Immediate: true, Retransmit: true, Redundancy: 4, Key: []byte{5}},
	},
	"append": {
		fromHex("2 8 00 0003" + "00010203" + "aabbcc"),
		Report{Primitive: Append, Immediate: true, List: 0x10203, Data: []byte{0xaa, 0xbb, 0xcc}},
	},
	"key-increment": {
		fromHex("3 4 02 0008" + "abcd" + "0000000100000002"),
		Report{Primitive: KeyIncrement, Retransmit: true, Redundancy: 1, Key: []byte{0xab, 0xcd}, Delta: 1<<32 | 2},
	},
	"postcard": {
		fromHex("4 0 84 0004" + "03 05" + "01020304" + "0000002a"),
		Report{Primitive: Postcarding, Redundancy: 3, Hop: 3, Path: 5, Key: []byte{1, 2, 3, 4}, Data: []byte{0, 0, 0, 42}},
	},
}

func TestReport(t *testing.T) {
	for name, tc := range reports {
		t.Run(name, func(t *testing.T) {
			in := append(bytes.Clone(tc.wire), 0xee)
			// Nothing of an earlier report may survive.
			got := Report{Retransmit: true, Hop: 9, Path: 9, List: 9, Key: []byte{9}, Data: []byte{9}, Delta: 9}
			if n, err := got.Parse(in); !equal(got, tc.want) || n != len(tc.wire) || err != nil {
				t.Errorf("Parse(%x) = %+v, %d, %v; want %+v, %d, nil", in, got, n, err, tc.want, len(tc.wire))
			}
			if out := tc.want.AppendTo([]byte{0xaa}); !bytes.Equal(out[1:], tc.wire) || out[0] != 0xaa {
				t.Errorf("%+v.AppendTo(aa) = %x; want aa%x", tc.want, out, tc.wire)
			}
			for cut := range tc.wire {
				if n, err := got.Parse(tc.wire[:cut]); n != 0 || err != ErrShort {
					t.Errorf("Parse(%x) = %d, %v; want 0, %v", tc.wire[:cut], n, err, ErrShort)
				}
			}
		})
	}
}

func TestReportParseErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		head string
		want error
	}{
		"primitive 0":                   {"00 01 0004", ErrPrimitive},
		"primitive 5":                   {"50 01 0004", ErrPrimitive},
		"reserved bit 1":                {"12 01 0004", ErrReserved},
		"reserved bit 0":                {"11 01 0004", ErrReserved},
		"no key":                        {"10 00 0004", ErrKeyLen},
		"key of 38 bytes":               {"10 26 0004", ErrKeyLen},
		"increment of 4 bytes":          {"30 01 0004", ErrDataLen},
		"append with a key length":      {"20 01 0004", ErrReserved},
		"append with redundancy":        {"20 40 0004", ErrReserved},
		"key-write longer than a frame": {"10 01 ffff", ErrShort},
	} {
		in := append(fromHex(tc.head), make([]byte, 100)...)
		got := Report{Key: []byte{1}}
		if n, err := got.Parse(in); n != 0 || err != tc.want || !equal(got, Report{}) {
			t.Errorf("%s: Parse(%x) = %+v, %d, %v; want {}, 0, %v", name, in, got, n, err, tc.want)
		}
	}
}

func TestReportCheck(t *testing.T) {
	key := make([]byte, MaxKey+1)
	for name, tc := range map[string]struct {
		r    Report
		want error
	}{
		"longest key":      {Report{Primitive: KeyWrite, Redundancy: 4, Key: key[:MaxKey]}, nil},
		"longest data":     {Report{Primitive: Append, Data: make([]byte, MaxData)}, nil},
		"unused fields":    {Report{Primitive: Append, Redundancy: 9, Key: key}, nil},
		"unused data":      {Report{Primitive: KeyIncrement, Redundancy: 1, Key: key[:1], Data: make([]byte, MaxData+1)}, nil},
		"zero":             {Report{}, ErrPrimitive},
		"primitive 5":      {Report{Primitive: 5, Redundancy: 1, Key: key[:1]}, ErrPrimitive},
		"no key":           {Report{Primitive: KeyIncrement, Redundancy: 1}, ErrKeyLen},
		"key too long":     {Report{Primitive: Postcarding, Redundancy: 1, Key: key}, ErrKeyLen},
		"no redundancy":    {Report{Primitive: KeyWrite, Key: key[:1]}, ErrRedundancy},
		"redundancy 5":     {Report{Primitive: KeyWrite, Redundancy: 5, Key: key[:1]}, ErrRedundancy},
		"append too long":  {Report{Primitive: Append, Data: make([]byte, MaxData+1)}, ErrDataLen},
		"write too long":   {Report{Primitive: KeyWrite, Redundancy: 1, Key: key[:1], Data: make([]byte, MaxData+1)}, ErrDataLen},
		"path is not read": {Report{Primitive: Postcarding, Redundancy: 1, Hop: 7, Path: 5, Key: key[:1]}, nil},
	} {
		if got := tc.r.Check(); got != tc.want {
			t.Errorf("%s: Check() = %v; want %v", name, got, tc.want)
		}
		if got := panics(func() { tc.r.AppendTo(nil) }); got != (tc.want != nil) {
			t.Errorf("%s: AppendTo panics: %v; want %v", name, got, tc.want != nil)
		}
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return
}

func TestReportKeyAndDataDoNotRunOn(t *testing.T) {
	want := append(bytes.Clone(reports["postcard"].wire), 0xee)
	in := bytes.Clone(want)
	var r Report
	r.Parse(in)
	_ = append(r.Key, 0xff)
	_ = append(r.Data, 0xff)
	if !bytes.Equal(in, want) {
		t.Errorf("appending to Key and Data made the input %x; want %x", in, want)
	}
}

func FuzzReport(f *testing.F) {
	for _, tc := range reports {
		f.Add(tc.wire)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var r Report
		n, err := r.Parse(in)
		if err != nil {
			return
		}
		if out := r.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %+v -> %x", in[:n], r, out)
		}
		if size := r.Size(); size != n {
			t.Fatalf("Size() of %x = %d; want %d", in[:n], size, n)
		}
	})
}

func TestReportAllocs(t *testing.T) {
	var r Report
	buf := make([]byte, 0, 128)
	for name, tc := range reports {
		if n := testing.AllocsPerRun(100, func() {
			r.Parse(tc.wire)
			buf = r.AppendTo(buf[:0])
		}); n != 0 {
			t.Errorf("%s: Parse and AppendTo allocate %v times; want 0", name, n)
		}
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		KeyWrite.String():      "key-write",
		Append.String():        "append",
		KeyIncrement.String():  "key-increment",
		Postcarding.String():   "postcarding",
		Primitive(9).String():  "primitive 9",
		Stored.String():        "stored",
		Gap.String():           "gap",
		RateLimited.String():   "rate-limited",
		Malformed.String():     "malformed",
		Unserved.String():      "unserved",
		Verdict(0xff).String(): "verdict 255",
	} {
		if got != want {
			t.Errorf("String() = %q; want %q", got, want)
		}
	}
}

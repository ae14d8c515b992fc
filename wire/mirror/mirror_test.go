package mirror

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

const (
	head   = "574d 01 05 0000000c 0003 0201 0000000000bc614e"
	sample = head + "05dc 0004 deadbeef"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParse(t *testing.T) {
	full := Mirror{Reasons: Flag | Debug, Switch: 12, In: 3, Out: 513, Time: 12345678, Length: 1500, Frame: []byte{0xde, 0xad, 0xbe, 0xef}}
	bare := full
	bare.Length, bare.Frame = 0, []byte{}
	for name, tc := range map[string]struct {
		in   string
		want Mirror
		n    int
		err  error
	}{
		"whole":                    {in: sample, want: full, n: 28},
		"an entry filled up":       {in: sample + "00000000", want: full, n: 28},
		"no frame":                 {in: head + "0000 0000", want: bare, n: 24},
		"empty":                    {err: ErrShort},
		"head cut":                 {in: head + "05dc 00", err: ErrShort},
		"frame cut":                {in: sample[:len(sample)-2], err: ErrShort},
		"another magic":            {in: strings.Replace(sample, "574d", "5746", 1), err: ErrMagic},
		"version 2":                {in: strings.Replace(sample, "01 05", "02 05", 1), err: ErrVersion},
		"a reason of the future":   {in: strings.Replace(sample, "01 05", "01 25", 1), err: ErrReason},
		"more than the frame had":  {in: head + "0003 0004 deadbeef", err: ErrLength},
		"both lengths are too big": {in: head + "ffff ffff dead", err: ErrShort},
	} {
		t.Run(name, func(t *testing.T) {
			got := Mirror{Reasons: Rule, In: 9, Frame: []byte{1}} // must be overwritten
			n, err := got.Parse(unhex(t, tc.in))
			if err != tc.err || n != tc.n || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("Parse(%s) = %d, %+v, %v; want %d, %+v, %v", tc.in, n, got, err, tc.n, tc.want, tc.err)
			}
		})
	}
}

func TestEveryValueSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Mirror{
			Reasons: Reasons(rapid.Uint8().Draw(t, "why")),
			Switch:  model.NodeID(rapid.Uint32().Draw(t, "switch")),
			In:      model.PortID(rapid.Uint16().Draw(t, "in")),
			Out:     model.PortID(rapid.Uint16().Draw(t, "out")),
			Time:    model.Time(rapid.Int64().Draw(t, "time")),
			Length:  rapid.Uint16().Draw(t, "length"),
			Frame:   rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "frame"),
		}
		wire := want.AppendTo([]byte{7})
		var got Mirror
		n, err := got.Parse(wire[1:])
		want.Reasons &= allReasons
		want.Frame = want.Frame[:min(len(want.Frame), int(want.Length))]
		if err != nil || n != len(wire)-1 || wire[0] != 7 || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v came back as %+v, %d of %d bytes, %v", want, got, n, len(wire)-1, err)
		}
	})
}

func TestWhyString(t *testing.T) {
	for w, want := range map[Reasons]string{0: "none", Flag | Protocol: "flag+protocol", allReasons: "flag+sample+debug+protocol+rule"} {
		if got := w.String(); got != want {
			t.Errorf("Why(%d) = %q; want %q", w, got, want)
		}
	}
}

func TestAllocatesNothing(t *testing.T) {
	m := Mirror{Length: 1500, Frame: make([]byte, 128)}
	buf := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() {
		buf = m.AppendTo(buf[:0])
		_, _ = m.Parse(buf)
	}); n != 0 {
		t.Errorf("%v allocations; want 0", n)
	}
}

// FuzzParse: what Parse accepts, AppendTo writes back to the byte.
func FuzzParse(f *testing.F) {
	f.Add(unhex(f, sample))
	f.Add(unhex(f, head+"0000 0000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Mirror
		n, err := m.Parse(b)
		if err != nil {
			if n != 0 || !reflect.DeepEqual(m, Mirror{}) {
				t.Errorf("Parse(%x) = %d, %+v, %v; want nothing beside the error", b, n, m, err)
			}
			return
		}
		if got := m.AppendTo(nil); !bytes.Equal(got, b[:n]) {
			t.Errorf("%x was written back as %x", b[:n], got)
		}
	})
}

package poll

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

func TestRequestParse(t *testing.T) {
	p := Poll{Layout: Weft, Flag: Victim, Event: Event{3, 4}, Origin: 5, Flow: key(t, roce4)}
	packet := p.AppendTo(nil)
	whole := Request{Poll: p, Measured: 76 * time.Microsecond, InFlight: true, HostPaused: true}
	changed := func(i int, v byte) []byte {
		b := whole.AppendTo(nil)
		b[len(packet)+i] = v
		return b
	}
	for name, tc := range map[string]struct {
		in   []byte
		want Request
		err  error
	}{
		"with a measurement":    {whole.AppendTo(nil), whole, nil},
		"the packet alone":      {packet, Request{Poll: p}, nil},
		"part of a measurement": {whole.AppendTo(nil)[:len(packet)+5], Request{Poll: p}, ErrMeasurement},
		"an unknown flag":       {changed(0, 8), Request{Poll: p}, ErrMeasurement},
		"a reserved byte":       {changed(2, 1), Request{Poll: p}, ErrMeasurement},
		"a negative time":       {changed(4, 0x80), Request{Poll: p}, ErrMeasurement},
		"more behind it":        {append(whole.AppendTo(nil), 0), Request{Poll: p}, ErrMeasurement},
		"too short":             {packet[:7], Request{}, ErrShort},
	} {
		t.Run(name, func(t *testing.T) {
			var got Request
			if _, err := got.Parse(tc.in); !errors.Is(err, tc.err) || got != tc.want {
				t.Errorf("Parse(%x) = %+v, %v; want %+v, %v", tc.in, got, err, tc.want, tc.err)
			}
		})
	}
}

func FuzzRequestParse(f *testing.F) {
	p := Poll{Layout: Weft, Flag: Victim, Flow: key(f, roce6)}
	f.Add(p.AppendTo(nil))
	f.Add(Request{Poll: p, Measured: time.Second, OfFlow: true}.AppendTo(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		var r Request
		n, err := r.Parse(in)
		if err != nil {
			return
		}
		out := r.AppendTo(nil)
		if alone := r.Poll.AppendTo(nil); len(alone) == n {
			out = alone // without a measurement
		}
		if !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %x", in[:n], out)
		}
	})
}

func TestRequestAllocs(t *testing.T) {
	r := Request{Poll: Poll{Layout: Weft, Flow: key(t, roce6)}, Measured: 1, HostPaused: true}
	buf := r.AppendTo(nil)
	if n := testing.AllocsPerRun(100, func() { r.Parse(buf) }); n != 0 {
		t.Errorf("Parse allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { buf = r.AppendTo(buf[:0]) }); n != 0 {
		t.Errorf("AppendTo allocates %v times", n)
	}
}

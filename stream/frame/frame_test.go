package frame

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weft-telemetry/weft/stream"
)

func TestParse(t *testing.T) {
	whole := AppendTo(nil, &stream.Message{At: -5, ID: 1 << 63, Kind: 7, Data: []byte("data")})
	for name, tc := range map[string]struct {
		in  []byte
		err error
	}{
		"one":       {whole, nil},
		"followed":  {append(bytes.Clone(whole), 1, 2, 3), nil},
		"no header": {whole[:HeaderSize-1], ErrShort},
		"cut data":  {whole[:len(whole)-1], ErrShort},
		"empty":     {nil, ErrShort},
	} {
		t.Run(name, func(t *testing.T) {
			var m stream.Message
			n, err := Parse(&m, tc.in)
			if !errors.Is(err, tc.err) || err == nil && (n != len(whole) || m.At != -5 || m.ID != 1<<63 || m.Kind != 7 || string(m.Data) != "data") {
				t.Errorf("Parse(%x) = %d, %+v, %v", tc.in, n, m, err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(AppendTo(nil, &stream.Message{At: 1, ID: 2, Kind: 3, Data: []byte("x")}))
	f.Add(bytes.Repeat([]byte{0xff}, HeaderSize))
	f.Fuzz(func(t *testing.T, in []byte) {
		var m stream.Message
		n, err := Parse(&m, in)
		if err != nil {
			return
		}
		if out := AppendTo(nil, &m); !bytes.Equal(out, in[:n]) || Size(&m) != n {
			t.Fatalf("round trip %x -> %x", in[:n], out)
		}
	})
}

package pfc

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

var src = model.MAC{0x02, 0x00, 0x00, 0x00, 0x00, 0x07}

// unhex joins lines of hexadecimal and pads with zeros to a frame.
func unhex(t *testing.T, lines ...string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(strings.Join(lines, ""), " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return append(b, make([]byte, max(0, Size-len(b)))...)
}

const (
	toGroup = "0180c2000001 020000000007 8808"
	pfc3    = toGroup + "0101 0008 0000 0000 0000 ffff 0000 0000 0000 0000"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		in   []byte
		want Frame
		err  error
	}{
		"pause priority 3": {
			in:   unhex(t, pfc3),
			want: Frame{Src: src, Enable: 0x08, Times: [8]Quanta{3: 0xffff}},
		},
		"resume 0, pause 7, a time not enabled is kept": {
			in:   unhex(t, toGroup, "0101 0081 0000 0102 0000 0000 0000 0000 0000 0304"),
			want: Frame{Src: src, Enable: 0x81, Times: [8]Quanta{1: 0x0102, 7: 0x0304}},
		},
		"plain pause": {
			in: unhex(t, toGroup, "0001 1234"),
			want: Frame{
				Src: src, Global: true, Enable: 0xff,
				Times: [8]Quanta{0x1234, 0x1234, 0x1234, 0x1234, 0x1234, 0x1234, 0x1234, 0x1234},
			},
		},
		"empty":              {in: nil, err: ErrShort},
		"padding cut":        {in: unhex(t, pfc3)[:Size-1], err: ErrShort},
		"to a host":          {in: unhex(t, "020000000001 020000000007 8808 0101"), err: ErrType},
		"another EtherType":  {in: unhex(t, "0180c2000001 020000000007 8809 0101"), err: ErrType},
		"another opcode":     {in: unhex(t, toGroup, "0102 0008"), err: ErrOpcode},
		"upper vector bit":   {in: unhex(t, toGroup, "0101 0108"), err: ErrReserved},
		"padding after PFC":  {in: unhex(t, pfc3, "01"), err: ErrReserved},
		"padding after last": {in: append(unhex(t, toGroup, "0001 1234")[:Size-1], 1), err: ErrReserved},
	} {
		t.Run(name, func(t *testing.T) {
			got := Frame{Src: model.MAC{9}, Global: true, Enable: 9, Times: [8]Quanta{9}} // must be overwritten
			n, err := got.Parse(tc.in)
			if err != tc.err || got != tc.want {
				t.Errorf("Parse(%x) = %+v, %v; want %+v, %v", tc.in, got, err, tc.want, tc.err)
			}
			if err == nil && n != Size {
				t.Errorf("Parse(%x) used %d bytes; want %d", tc.in, n, Size)
			}
		})
	}
}

func TestParseLeavesWhatFollows(t *testing.T) {
	var f Frame
	if n, err := f.Parse(append(unhex(t, pfc3), 0xde, 0xad, 0xbe, 0xef)); n != Size || err != nil {
		t.Errorf("Parse(frame and FCS) = %d, %v; want %d, nil", n, err, Size)
	}
}

func TestConstructors(t *testing.T) {
	for name, tc := range map[string]struct {
		frame Frame
		want  []byte
	}{
		"pause":      {Pause(src, 3, MaxQuanta), unhex(t, pfc3)},
		"resume":     {Resume(src, 5), unhex(t, toGroup, "0101 0020")},
		"pause link": {PauseLink(src, 0x1234), unhex(t, toGroup, "0001 1234")},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.frame.AppendTo(nil); !bytes.Equal(got, tc.want) {
				t.Errorf("AppendTo = %x; want %x", got, tc.want)
			}
		})
	}
}

func TestAsks(t *testing.T) {
	pause, resume, link := Pause(src, 3, 9), Resume(src, 3), PauseLink(src, 7)
	for name, tc := range map[string]struct {
		frame Frame
		p     model.Priority
		want  Quanta
		ok    bool
	}{
		"paused":          {pause, 3, 9, true},
		"another class":   {pause, 4, 0, false},
		"resumed":         {resume, 3, 0, true},
		"link, any class": {link, 6, 7, true},
	} {
		t.Run(name, func(t *testing.T) {
			if q, ok := tc.frame.PauseOf(tc.p); q != tc.want || ok != tc.ok {
				t.Errorf("Asks(%d) = %d, %v; want %d, %v", tc.p, q, ok, tc.want, tc.ok)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Pause(src, 3, MaxQuanta).AppendTo(nil))
	f.Add(Resume(src, 0).AppendTo(nil))
	f.Add(PauseLink(src, 1).AppendTo(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		var fr Frame
		n, err := fr.Parse(in)
		if err != nil {
			return
		}
		if out := fr.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %x", in[:n], out)
		}
	})
}

func TestAllocs(t *testing.T) {
	f := Pause(src, 3, MaxQuanta)
	buf := f.AppendTo(nil)
	if n := testing.AllocsPerRun(100, func() { f.Parse(buf) }); n != 0 {
		t.Errorf("Parse allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { buf = f.AppendTo(buf[:0]) }); n != 0 {
		t.Errorf("AppendTo allocates %v times", n)
	}
}

func BenchmarkParse(b *testing.B) {
	in := Pause(src, 3, MaxQuanta).AppendTo(nil)
	var f Frame
	for b.Loop() {
		f.Parse(in)
	}
}

func BenchmarkAppendTo(b *testing.B) {
	f := Pause(src, 3, MaxQuanta)
	buf := make([]byte, 0, Size)
	for b.Loop() {
		buf = f.AppendTo(buf[:0])
	}
}

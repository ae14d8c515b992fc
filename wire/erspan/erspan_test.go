package erspan

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/wire/gre"
)

// frame is the mirrored frame; no header of this package parses it.
var frame = []byte{0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x88, 0xb5, 0xaa}

// join makes one input of parts written by hand.
func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

var (
	inI  = join([]byte{0, 0, 0x88, 0xbe}, frame)
	inII = join([]byte{
		0x10, 0, 0x88, 0xbe, 0, 0, 0, 7, // sequence number 7
		0x10, 0x64, 0xb4, 0x05, // version 1, VLAN 100, class 5, 802.1Q, truncated, session 5
		0xab, 0xc0, 0x00, 0x03, // reserved bits, index 3
	}, frame)
	inIII = join([]byte{
		0x10, 0, 0x22, 0xeb, 0, 0, 0, 9,
		0x20, 0x0a, 0x03, 0xff, // version 2, VLAN 10, session 1023
		0, 0, 0x30, 0x39, // 12345 ticks
		0x12, 0x34, // security group
		0x80, 0x5a, // Ethernet PDU, hardware 5, egress, 100 ns
	}, frame)
	inPlatform = join([]byte{
		0x00, 0, 0x22, 0xeb,
		0x20, 0x00, 0x18, 0x01, // damaged, session 1
		0, 0, 0, 1, 0, 0,
		0x08, 0x05, // IP, 2 = 1588, platform sub-header
		0x14, 0x2a, 0x00, 0x11, 0x65, 0x00, 0x00, 0x00, // platform 5, switch 42, port 17, seconds
	}, frame)
	pad22      = bytes.Repeat([]byte{0x5a}, 22)
	inMellanox = join([]byte{0, 0, 0x89, 0x49}, pad22, frame)
	inOptions  = join([]byte{
		0xb8, 0x50, 0x88, 0xbe, // checksum, key, sequence and flags of no meaning
		0x12, 0x34, 0x00, 0x01, 0, 0, 0, 2, 0, 0, 0, 3,
		0x10, 0, 0, 0, 0, 0, 0, 0,
	}, frame)
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		in   []byte
		want Mirror
		err  error
	}{
		"type I":            {in: inI, want: Mirror{Kind: TypeI, GRE: gre.Header{Protocol: ProtoII}, Frame: frame}},
		"type I with a key": {in: join([]byte{0x20, 0, 0x88, 0xbe, 0, 0, 0, 5}, frame), want: Mirror{Kind: TypeI, GRE: gre.Header{Protocol: ProtoII, HasKey: true, Key: 5}, Frame: frame}},
		"type I, no frame":  {in: inI[:4], want: Mirror{Kind: TypeI, GRE: gre.Header{Protocol: ProtoII}, Frame: []byte{}}},
		"type II": {in: inII, want: Mirror{
			Kind: TypeII, GRE: gre.Header{Protocol: ProtoII, HasSeq: true, Seq: 7},
			VLAN: 100, COS: 5, Encap: 2, Truncated: true, Session: 5, Reserved: 0xabc, Index: 3, Frame: frame,
		}},
		"type II with every GRE field": {in: inOptions, want: Mirror{
			Kind: TypeII, GRE: gre.Header{
				Protocol: ProtoII, HasChecksum: true, HasKey: true, HasSeq: true, Flags: 0x0850,
				Checksum: 0x1234, Reserved1: 1, Key: 2, Seq: 3,
			}, Frame: frame,
		}},
		"type III": {in: inIII, want: Mirror{
			Kind: TypeIII, GRE: gre.Header{Protocol: ProtoIII, HasSeq: true, Seq: 9}, VLAN: 10, Session: 1023,
			Timestamp: 12345, SGT: 0x1234, PDU: true, Hardware: 5, Egress: true, Granularity: Per100ns, Frame: frame,
		}},
		"type III with platform": {in: inPlatform, want: Mirror{
			Kind: TypeIII, GRE: gre.Header{Protocol: ProtoIII}, Encap: 3, Session: 1, Timestamp: 1, FrameType: FrameIP,
			Granularity: PerIEEE1588, HasPlatform: true, Platform: 0x142a001165000000, Frame: frame,
		}},
		"Mellanox": {in: inMellanox, want: Mirror{Kind: Mellanox, GRE: gre.Header{Protocol: ProtoMellanox}, Pad: pad22, Frame: frame}},

		"nothing":               {err: ErrShort},
		"half a GRE header":     {in: inI[:3], err: ErrShort},
		"GRE field cut":         {in: inOptions[:15], err: ErrShort},
		"type II cut":           {in: inII[:15], err: ErrShort},
		"type III cut":          {in: inIII[:19], err: ErrShort},
		"platform cut":          {in: inPlatform[:23], err: ErrShort},
		"Mellanox cut":          {in: inMellanox[:25], err: ErrShort},
		"GRE with routing":      {in: join([]byte{0x40, 0, 0x88, 0xbe}, frame), err: ErrGRE},
		"PPTP":                  {in: join([]byte{0x00, 1, 0x88, 0xbe}, frame), err: ErrGRE},
		"IP in GRE":             {in: join([]byte{0x00, 0, 0x08, 0x00}, frame), err: ErrProtocol},
		"type II says it's III": {in: join(inII[:8], []byte{0x20}, inII[9:]), err: ErrVersion},
		"type III says it's II": {in: join(inIII[:8], []byte{0x10}, inIII[9:]), err: ErrVersion},
	} {
		t.Run(name, func(t *testing.T) {
			got := Mirror{Session: 99}
			n, err := got.Parse(tc.in)
			if err != tc.err || (err == nil && n != len(tc.in)) {
				t.Errorf("Parse(%x) = %d, %v; want %d, %v", tc.in, n, err, len(tc.in), tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Parse(%x) reads another mirror (-want +got):\n%s", tc.in, diff)
			}
			if out := tc.want.AppendTo(nil); tc.err == nil && !bytes.Equal(out, tc.in) {
				t.Errorf("AppendTo of %+v = %x; want %x", tc.want, out, tc.in)
			}
		})
	}
}

// TestParsePadded: what is configured for a switch wins over what it says.
func TestParsePadded(t *testing.T) {
	for name, tc := range map[string]struct {
		in   []byte
		pad  int
		want Mirror
		err  error
	}{
		"no sequence, but a header": {
			in: join(inI[:4], inII[4:]), pad: 12,
			want: Mirror{GRE: gre.Header{Protocol: ProtoII}, Pad: inII[4:16], Frame: frame},
		},
		"a sequence flag, but nothing": {
			in: join(inII[:4], frame), pad: 0,
			want: Mirror{GRE: gre.Header{Protocol: ProtoII, HasSeq: true}, Pad: []byte{}, Frame: frame},
		},
		"any protocol, any flag": {
			in: join([]byte{0xff, 0xff, 0x65, 0x58}, frame), pad: 0,
			want: Mirror{
				GRE: gre.Header{Protocol: 0x6558, HasChecksum: true, HasKey: true, HasSeq: true, Flags: 0x4fff},
				Pad: []byte{}, Frame: frame,
			},
		},
		"cut":               {in: inI, pad: len(frame) + 1, err: ErrShort},
		"half a GRE header": {in: inI[:3], err: ErrShort},
		"negative":          {in: inI, pad: -1, err: ErrShort},
	} {
		t.Run(name, func(t *testing.T) {
			got := Mirror{Session: 99}
			n, err := got.ParsePadded(tc.in, tc.pad)
			if err != tc.err || (err == nil && n != len(tc.in)) {
				t.Errorf("ParsePadded(%x, %d) = %d, %v; want %d, %v", tc.in, tc.pad, n, err, len(tc.in), tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ParsePadded(%x, %d) reads another mirror (-want +got):\n%s", tc.in, tc.pad, diff)
			}
			if out := tc.want.AppendTo(nil); tc.err == nil && !bytes.Equal(out, tc.in) {
				t.Errorf("AppendTo of %+v = %x; want %x", tc.want, out, tc.in)
			}
		})
	}
}

// TestAppendMends: the encoder mends what would be read as another kind, and
// no field runs into its neighbour.
func TestAppendMends(t *testing.T) {
	wild := gre.Header{Protocol: 0x0800, HasSeq: true, Flags: 0xffff}
	kept := uint16(0x0ff8)
	for _, tc := range []struct{ in, want Mirror }{
		{Mirror{Kind: TypeI, GRE: wild}, Mirror{Kind: TypeI, GRE: gre.Header{Protocol: ProtoII, Flags: kept}}},
		{
			Mirror{Kind: TypeII, VLAN: 0xffff, Encap: 0xff, Index: 0xffffffff},
			Mirror{Kind: TypeII, GRE: gre.Header{Protocol: ProtoII, HasSeq: true}, VLAN: 0xfff, Encap: 3, Index: 0xfffff},
		},
		{
			Mirror{Kind: TypeII, COS: 0xff, Session: 0xffff, Reserved: 0xffff},
			Mirror{Kind: TypeII, GRE: gre.Header{Protocol: ProtoII, HasSeq: true}, COS: 7, Session: 0x3ff, Reserved: 0xfff},
		},
		{
			Mirror{Kind: TypeIII, GRE: wild, FrameType: 0xff, Granularity: 0xff},
			Mirror{Kind: TypeIII, GRE: gre.Header{Protocol: ProtoIII, HasSeq: true, Flags: kept}, FrameType: 31, Granularity: 3},
		},
		{
			Mirror{Kind: TypeIII, Hardware: 0xff, Platform: 1},
			Mirror{Kind: TypeIII, GRE: gre.Header{Protocol: ProtoIII}, Hardware: 63},
		},
		{
			Mirror{Kind: Mellanox, GRE: gre.Header{Protocol: 1}, Pad: []byte{1}},
			Mirror{Kind: Mellanox, GRE: gre.Header{Protocol: ProtoMellanox}, Pad: append([]byte{1}, make([]byte, 21)...)},
		},
		{
			Mirror{Kind: Mellanox, Pad: make([]byte, 23)},
			Mirror{Kind: Mellanox, GRE: gre.Header{Protocol: ProtoMellanox}, Pad: make([]byte, 22)},
		},
	} {
		tc.in.Frame, tc.want.Frame = frame, frame
		var got Mirror
		_, err := got.Parse(tc.in.AppendTo(nil))
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%+v is read back with %v (-want +got):\n%s", tc.in, err, diff)
		}
	}
}

func TestPort(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Mirror
		want uint32
		ok   bool
	}{
		"type I":      {Mirror{Kind: TypeI, Index: 3}, 0, false},
		"type II":     {Mirror{Kind: TypeII, Index: 3}, 3, true},
		"no platform": {Mirror{Kind: TypeIII, Platform: 1<<58 | 3}, 0, false},
		"platform 0":  {Mirror{Kind: TypeIII, HasPlatform: true, Platform: 0<<58 | 0xabcde<<32}, 0xabcde, true},
		"platform 1":  {Mirror{Kind: TypeIII, HasPlatform: true, Platform: 1<<58 | 7<<32 | 3}, 3, true},
		"platform 3":  {Mirror{Kind: TypeIII, HasPlatform: true, Platform: 3<<58 | 0xffff<<32 | 9}, 0x3fff, true},
		"platform 4":  {Mirror{Kind: TypeIII, HasPlatform: true, Platform: 4<<58 | 1<<32 | 9}, 0, false},
		"platform 5":  {Mirror{Kind: TypeIII, HasPlatform: true, Platform: 5<<58 | 0x3ff<<48 | 17<<32 | 9}, 17, true},
		"platform 6":  {Mirror{Kind: TypeIII, HasPlatform: true, Platform: 6<<58 | 0xffff<<32 | 9}, 0xffff, true},
		"platform 7":  {Mirror{Kind: TypeIII, HasPlatform: true, Platform: 7<<58 | 0xfffff<<32 | 9}, 0xfffff, true},
		"platform 8":  {Mirror{Kind: TypeIII, HasPlatform: true, Platform: 8 << 58, Index: 3}, 0, false},
	} {
		if got, ok := tc.in.Port(); got != tc.want || ok != tc.ok {
			t.Errorf("%s: Port = %d, %v; want %d, %v", name, got, ok, tc.want, tc.ok)
		}
	}
}

func TestGranularityUnit(t *testing.T) {
	for g, want := range map[Granularity]time.Duration{
		Per100us: 100 * time.Microsecond, Per100ns: 100, PerIEEE1588: 1, PerDevice: 0,
	} {
		if got := g.Unit(); got != want {
			t.Errorf("granularity %d has unit %v; want %v", g, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, in := range [][]byte{inI, inII, inIII, inPlatform, inMellanox, inOptions} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var m Mirror
		if _, err := m.Parse(in); err != nil {
			return
		}
		if out := m.AppendTo(nil); !bytes.Equal(out, in) {
			t.Fatalf("round trip %x -> %+v -> %x", in, m, out)
		}
	})
}

func FuzzParsePadded(f *testing.F) {
	f.Add(inI, 0)
	f.Add(inII, 12)
	f.Fuzz(func(t *testing.T, in []byte, pad int) {
		var m Mirror
		if _, err := m.ParsePadded(in, pad); err != nil {
			return
		}
		if out := m.AppendTo(nil); !bytes.Equal(out, in) || len(m.Pad) != pad {
			t.Fatalf("round trip with pad %d %x -> %+v -> %x", pad, in, m, out)
		}
	})
}

func TestAllocs(t *testing.T) {
	buf := make([]byte, 0, 100)
	var m Mirror
	for _, in := range [][]byte{inI, inII, inPlatform, inMellanox, inOptions} {
		if n := testing.AllocsPerRun(100, func() {
			_, _ = m.ParsePadded(in, 4)
			buf = m.AppendTo(buf[:0])
			_, _ = m.Parse(in)
			buf = m.AppendTo(buf[:0])
		}); n != 0 {
			t.Errorf("Parse(%x) and AppendTo allocate %v times; want 0", in, n)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for name, in := range map[string][]byte{"type=I": inI, "type=II": inII, "type=III": inPlatform} {
		b.Run(name, func(b *testing.B) {
			var m Mirror
			for b.Loop() {
				_, _ = m.Parse(in)
			}
		})
	}
}

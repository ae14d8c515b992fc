package intreport

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestGroupParse(t *testing.T) {
	for name, tc := range map[string]struct {
		in   []byte
		want Group
		err  error
	}{
		"plain":         {in: []byte{0x20, 0, 0, 7, 0, 0, 0, 3}, want: Group{0, 7, 3}},
		"all ones":      {in: []byte{0x2f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 9}, want: Group{0x3f, SeqModulus - 1, 0xffffffff}},
		"hardware only": {in: []byte{0x20, 0x40, 0, 0, 0, 0, 0, 0}, want: Group{Hardware: 1}},
		"truncated":     {in: []byte{0x20, 0, 0, 7, 0, 0, 0}, err: ErrShort},
		"version 1":     {in: []byte{0x10, 0, 0, 7, 0, 0, 0, 3}, err: ErrVersion},
	} {
		t.Run(name, func(t *testing.T) {
			got := Group{Node: 99}
			if n, err := got.Parse(tc.in); err != tc.err || got != tc.want || (err == nil) != (n == GroupSize) {
				t.Errorf("Parse(%x) = %+v, %d, %v; want %+v, %v", tc.in, got, n, err, tc.want, tc.err)
			}
		})
	}
	if got, want := (Group{0xff, 0xffffffff, 1}).AppendTo(nil), []byte{0x2f, 0xff, 0xff, 0xff, 0, 0, 0, 1}; !bytes.Equal(got, want) {
		t.Errorf("AppendTo of fields too wide = %x; want %x", got, want)
	}
}

// datagram is written by hand: a group of three reports, the middle one with a
// bitmap that its metadata is too short for.
var datagram = []byte{
	0x20, 0x40, 0x00, 0x05, 0x00, 0x00, 0x00, 0x0b, // hardware 1, datagram 5, node 11

	0x14, 0x09, 0x02, 0x20, // INT, IPv4 inside, 9 words, 2 of metadata, tracked
	0x50, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // ports and queue
	0x00, 0x03, 0x00, 0x04, // in at 3, out at 4
	0x02, 0x00, 0x03, 0xe8, // queue 2 holds 1000
	0x45, 0x00, 0x00, 0x54, 0x00, 0x00, 0x40, 0x00, 0x40, 0x01, 0x26, 0xa5,
	0x0a, 0x00, 0x00, 0x01, 0x0a, 0x00, 0x00, 0x02,

	0x10, 0x03, 0x01, 0x00, // INT, nothing inside, 1 word of metadata
	0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // but a time takes 2
	0x00, 0x00, 0x00, 0x01,

	0x10, 0xff, 0x02, 0x90, // INT to the end, dropped, intermediate
	0x00, 0x01, 0x00, 0x07, 0x80, 0x00, 0x00, 0x09, // drop reason; domain 7, its first bit, status 9
	0x05, 0x1a, 0x00, 0x00, // from queue 5 for reason 26
	0xca, 0xfe, 0xba, 0xbe, // the domain's own
	0x01, 0x02, 0x03, // not a whole word
}

func TestReader(t *testing.T) {
	var (
		r   Reader
		rep Report
	)
	if err := r.Reset(datagram); err != nil || r.Group != (Group{1, 5, 11}) {
		t.Fatalf("Reset = %+v, %v; want hardware 1, datagram 5, node 11", r.Group, err)
	}
	for i, want := range []struct {
		report Report
		ok     bool
		err    error
	}{
		{ok: true, report: Report{
			Type: INT, Inner: InnerIPv4, Flags: Tracked, MDLen: 2,
			Metadata: Metadata{Bits: BitPorts | BitQueue, Ingress: 3, Egress: 4, Queue: 2, QueueDepth: 1000},
			DS:       []byte{}, Contents: datagram[28:48],
		}},
		{err: ErrMetadata},
		{ok: true, report: Report{
			Type: INT, Flags: Dropped | Intermediate, ToEnd: true, MDLen: 2, Domain: 7, DSBits: 0x8000, DSStatus: 9,
			Metadata: Metadata{Bits: BitLast, Last: 0x051a0000},
			DS:       []byte{0xca, 0xfe, 0xba, 0xbe}, Contents: []byte{1, 2, 3},
		}},
		{},
		{},
	} {
		ok, err := r.Next(&rep)
		if ok != want.ok || err != want.err {
			t.Fatalf("Next %d = %v, %v; want %v, %v", i, ok, err, want.ok, want.err)
		}
		if diff := cmp.Diff(want.report, rep); diff != "" {
			t.Errorf("Next %d reads another report (-want +got):\n%s", i, diff)
		}
		if q, reason := rep.Drop(); i == 2 && (q != 5 || reason != 26) {
			t.Errorf("Drop = %d, %d; want queue 5, reason 26", q, reason)
		}
	}
}

func TestReaderStopsAtNonsense(t *testing.T) {
	for name, in := range map[string][]byte{
		"half a report header":     append(append([]byte{}, datagram[:8]...), 0x14, 0x09, 0x02),
		"report beyond the packet": append(append([]byte{}, datagram[:8]...), 0x00, 0x02, 0, 0, 1, 2, 3, 4),
	} {
		var (
			r   Reader
			rep Report
		)
		if err := r.Reset(in); err != nil {
			t.Fatal(err)
		}
		if ok, err := r.Next(&rep); ok || err != ErrShort {
			t.Errorf("%s: Next = %v, %v; want false, ErrShort", name, ok, err)
		}
		if ok, err := r.Next(&rep); ok || err != nil {
			t.Errorf("%s: second Next = %v, %v; want false, nil", name, ok, err)
		}
	}
	r := Reader{rest: []byte{1}}
	if err := r.Reset(datagram[:5]); err != ErrShort || r.rest != nil {
		t.Errorf("Reset of 5 bytes = %v with %x left; want ErrShort with nothing", err, r.rest)
	}
}

// reports draws reports as an encoder would make them.
func reports() *rapid.Generator[Report] {
	words := func(t *rapid.T, most int, name string) []byte {
		n := rapid.IntRange(0, most).Draw(t, name+" words")
		return rapid.SliceOfN(rapid.Byte(), 4*n, 4*n).Draw(t, name)
	}
	return rapid.Custom(func(t *rapid.T) Report {
		r := Report{
			Type:     rapid.SampledFrom([]Type{InnerOnly, INT, INT, INT, IOAM, 9}).Draw(t, "type"),
			Inner:    Inner(rapid.ByteRange(0, 15).Draw(t, "inner")),
			Flags:    Flags(rapid.Byte().Draw(t, "flags")),
			Contents: words(t, 40, "contents"),
		}
		if r.Type != INT {
			r.MDLen = rapid.Byte().Draw(t, "MD length")
			return r
		}
		bits := Bits(rapid.Uint16().Draw(t, "bits"))
		_, _ = r.Metadata.Parse(bits, rapid.SliceOfN(rapid.Byte(), bits.Size(), bits.Size()).Draw(t, "metadata"))
		r.DS = words(t, 10, "DS")
		r.MDLen = uint8((bits.Size() + len(r.DS)) / 4)
		r.Domain, r.DSBits = rapid.Uint16().Draw(t, "domain"), rapid.Uint16().Draw(t, "DS bits")
		return r
	})
}

// TestGroupRoundTrip: what is written into a datagram is what is read from it.
func TestGroupRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := Group{1, rapid.Uint32Range(0, SeqModulus-1).Draw(t, "seq"), rapid.Uint32().Draw(t, "node")}
		want := rapid.SliceOfN(reports(), 0, 4).Draw(t, "reports")
		b := g.AppendTo(nil)
		for _, rep := range want {
			b = rep.AppendTo(b)
		}
		var (
			r   Reader
			got Report
		)
		if err := r.Reset(b); err != nil || r.Group != g {
			t.Fatalf("Reset(%x) = %+v, %v; want %+v", b, r.Group, err, g)
		}
		for i := range want {
			ok, err := r.Next(&got)
			if diff := cmp.Diff(want[i], got, cmp.Comparer(bytes.Equal)); !ok || err != nil || diff != "" {
				t.Fatalf("report %d of %x: %v, %v (-want +got):\n%s", i, b, ok, err, diff)
			}
		}
		if ok, err := r.Next(&got); ok || err != nil {
			t.Fatalf("after the last report of %x: %v, %v; want false, nil", b, ok, err)
		}
	})
}

func FuzzGroup(f *testing.F) {
	f.Add(datagram[:8])
	f.Fuzz(func(t *testing.T, in []byte) {
		var g Group
		if n, err := g.Parse(in); err == nil && !bytes.Equal(g.AppendTo(nil), in[:n]) {
			t.Fatalf("round trip %x -> %+v -> %x", in[:n], g, g.AppendTo(nil))
		}
	})
}

func FuzzReader(f *testing.F) {
	f.Add(datagram)
	f.Add(datagram[:48])
	f.Fuzz(func(t *testing.T, in []byte) {
		var (
			r   Reader
			rep Report
		)
		if r.Reset(in) != nil {
			return
		}
		out, clean := r.Group.AppendTo(nil), true
		for range len(in) + 1 {
			ok, err := r.Next(&rep)
			if err != nil {
				clean = false
			} else if !ok {
				if clean && !bytes.Equal(out, in) {
					t.Fatalf("round trip %x -> %x", in, out)
				}
				return
			} else {
				out = rep.AppendTo(out)
			}
		}
		t.Fatalf("Next never ends on %x", in)
	})
}

func TestAllocs(t *testing.T) {
	buf := make([]byte, 0, 200)
	var (
		r   Reader
		rep Report
		st  Stack
		hop Hop
	)
	if n := testing.AllocsPerRun(100, func() {
		buf = buf[:0]
		_ = r.Reset(datagram)
		buf = r.Group.AppendTo(buf)
		for {
			ok, err := r.Next(&rep)
			if !ok && err == nil {
				break
			}
			buf = rep.AppendTo(buf)
		}
	}); n != 0 {
		t.Errorf("reading and writing a group allocates %v times; want 0", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		_, _ = st.Parse(stack)
		for i := range st.Len() {
			hop = st.Hop(i)
			buf = hop.AppendTo(buf[:0])
		}
		buf = st.AppendTo(buf[:0])
	}); n != 0 {
		t.Errorf("reading and writing INT-MD allocates %v times; want 0", n)
	}
}

func BenchmarkReader(b *testing.B) {
	var (
		r   Reader
		rep Report
		n   int
	)
	in := (&Group{Node: 1}).AppendTo(nil)
	for range 10 {
		in = append(in, datagram[8:48]...)
	}
	for b.Loop() {
		_ = r.Reset(in)
		for {
			if ok, _ := r.Next(&rep); !ok {
				break
			}
			n++
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mreport/s")
}

package dta

import (
	"bytes"
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

func TestHeader(t *testing.T) {
	wire := fromHex("d1 00 0102 03040506 0708090a")
	want := Header{Count: 0x102, Reporter: 0x3040506, Seq: 0x708090a}
	var got Header
	if n, err := got.Parse(append(bytes.Clone(wire), 0xee)); got != want || n != HeaderSize || err != nil {
		t.Errorf("Parse(%xee) = %+v, %d, %v; want %+v, %d, nil", wire, got, n, err, want, HeaderSize)
	}
	if out := want.AppendTo([]byte{0xaa}); !bytes.Equal(out[1:], wire) || out[0] != 0xaa {
		t.Errorf("%+v.AppendTo(aa) = %x; want aa%x", want, out, wire)
	}
	for in, wantErr := range map[string]error{
		"":                              ErrShort,
		"d1 00 0102 03040506 070809":    ErrShort,
		"d3 00 0102 03040506 0708090a":  ErrVersion,
		"d2 00 0102 03040506 0708090a":  ErrShort,
		"c1 00 0102 03040506 0708090a":  ErrVersion,
		"01 00 02 00000001 00000002 ee": ErrVersion, // a Key-Write of the prototype
		"d1 01 0102 03040506 0708090a":  ErrReserved,
		"d1 80 0102 03040506 0708090a":  ErrReserved,
	} {
		got = want
		if n, err := got.Parse(fromHex(in)); got != (Header{}) || n != 0 || err != wantErr {
			t.Errorf("Parse(%s) = %+v, %d, %v; want {}, 0, %v", in, got, n, err, wantErr)
		}
	}
	if n := testing.AllocsPerRun(100, func() { got.Parse(wire); wire = got.AppendTo(wire[:0]) }); n != 0 {
		t.Errorf("Parse and AppendTo allocate %v times; want 0", n)
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(Header{Count: 1, Reporter: 2, Seq: 3}.AppendTo(nil))
	f.Add(Header{Count: 1, Reporter: 2, Seq: 3, Signed: true, KeyID: 4, Start: 5, Sent: 6}.AppendTo(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		var h Header
		n, err := h.Parse(in)
		if err != nil {
			return
		}
		if out := h.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %+v -> %x", in[:n], h, out)
		}
	})
}

// Two reports from node 9, the first numbered 0xffffffff.
var twoReports = fromHex("d1 00 0002 00000009 ffffffff" +
	"20 00 0001 00000005 aa" +
	"10 01 0002 07 bbcc")

func TestReader(t *testing.T) {
	var r Reader
	if err := r.Reset(twoReports); err != nil {
		t.Fatalf("Reset(%x) = %v; want nil", twoReports, err)
	}
	if got, want := r.Header(), (Header{Count: 2, Reporter: 9, Seq: 0xffffffff}); got != want {
		t.Errorf("Header() = %+v; want %+v", got, want)
	}
	for i, want := range []Report{
		{Primitive: Append, List: 5, Data: []byte{0xaa}},
		{Primitive: KeyWrite, Redundancy: 1, Key: []byte{7}, Data: []byte{0xbb, 0xcc}},
	} {
		if got, wantSeq := r.Seq(), Seq(i)-1; got != wantSeq {
			t.Errorf("Seq() before report %d = %d; want %d", i, got, wantSeq)
		}
		var got Report
		if ok := r.Next(&got); !ok || !equal(got, want) {
			t.Errorf("Next() of report %d = %+v, %v; want %+v, true", i, got, ok, want)
		}
	}
	var none Report
	if more := r.Next(&none); more || r.Err() != nil || r.Seq() != 1 {
		t.Errorf("at the end Next is true or Err() = %v, Seq() = %d; want nil, 1", r.Err(), r.Seq())
	}
}

func TestReaderErrors(t *testing.T) {
	with := func(at int, v byte) []byte {
		b := bytes.Clone(twoReports)
		b[at] = v
		return b
	}
	for name, tc := range map[string]struct {
		in   []byte
		read int
		want error
	}{
		"empty":              {nil, 0, ErrShort},
		"header cut":         {twoReports[:11], 0, ErrShort},
		"first report cut":   {twoReports[:20], 0, ErrShort},
		"second report gone": {twoReports[:21], 1, ErrShort},
		"second report cut":  {twoReports[:27], 1, ErrShort},
		"byte too many":      {append(bytes.Clone(twoReports), 0), 2, ErrTrailing},
		"count too small":    {with(3, 1), 1, ErrTrailing},
		"count too large":    {with(3, 3), 2, ErrShort},
		"count of zero":      {with(3, 0), 0, ErrTrailing},
		"other version":      {with(0, 0xd3), 0, ErrVersion},
		"flags":              {with(1, 1), 0, ErrReserved},
		"bad second report":  {with(21, 0x90), 1, ErrPrimitive},
	} {
		var r Reader
		var rep Report
		read := 0
		for r.Reset(tc.in); r.Next(&rep); {
			read++
		}
		if read != tc.read || r.Err() != tc.want || r.Next(&rep) {
			t.Errorf("%s: reading %x gives %d reports, %v; want %d, %v", name, tc.in, read, r.Err(), tc.read, tc.want)
		}
		// The Reader is whole again after a bad datagram.
		read = 0
		for r.Reset(twoReports); r.Next(&rep); {
			read++
		}
		if read != 2 || r.Err() != nil {
			t.Errorf("%s: the next datagram gives %d reports, %v; want 2, nil", name, read, r.Err())
		}
	}
}

func TestWriter(t *testing.T) {
	first := Report{Primitive: Append, List: 5, Data: []byte{0xaa}}
	second := Report{Primitive: KeyWrite, Redundancy: 1, Key: []byte{7}, Data: []byte{0xbb, 0xcc}}
	w := NewWriter(9, 0xffffffff)
	add := func(r *Report, want error) {
		t.Helper()
		if err := w.AddReport(r); err != want {
			t.Errorf("Add(%+v) = %v; want %v", *r, err, want)
		}
	}
	add(&first, ErrFull) // no buffer yet

	w.Begin(make([]byte, len(twoReports)))
	add(&first, nil)
	add(&Report{Primitive: KeyWrite, Key: []byte{7}}, ErrRedundancy)
	add(&second, nil)
	add(&second, ErrFull)
	if w.Count() != 2 || w.Seq() != 1 {
		t.Errorf("Count() = %d, Seq() = %d; want 2, 1", w.Count(), w.Seq())
	}
	if got := w.Finish(); !bytes.Equal(got, twoReports) {
		t.Errorf("Finish() = %x; want %x", got, twoReports)
	}
	add(&first, ErrFull) // no buffer again

	buf := make([]byte, 40)
	w.Begin(buf[:HeaderSize+8]) // the first report is 9 bytes
	add(&first, ErrTooLarge)
	add(&second, nil)
	add(&first, ErrFull)
	if got, want := w.Finish(), fromHex("d1 00 0001 00000009 00000001"+"10 01 0002 07 bbcc"); !bytes.Equal(got, want) {
		t.Errorf("Finish() = %x; want %x", got, want)
	}
	if tail := buf[HeaderSize+8:]; !bytes.Equal(tail, make([]byte, len(tail))) {
		t.Errorf("the Writer wrote past its buffer: %x", tail)
	}

	w.Begin(buf[:HeaderSize])
	if got, want := w.Finish(), fromHex("d1 00 0000 00000009 00000002"); !bytes.Equal(got, want) {
		t.Errorf("Finish() without reports = %x; want %x", got, want)
	}
	if !panics(func() { w.Finish() }) {
		t.Error("Finish without Begin does not panic")
	}
	if !panics(func() { w.Begin(buf[: HeaderSize-1 : HeaderSize-1]) }) {
		t.Error("Begin without space for a header does not panic")
	}
}

func TestWriterStopsAtTheLargestCount(t *testing.T) {
	w, r := NewWriter(1, 0), Report{Primitive: KeyWrite, Redundancy: 1, Key: []byte{1}}
	datagram := pack(&w, &r, make([]byte, HeaderSize+(1<<16)*(headSize+1)))
	var in Reader
	n := 0
	for in.Reset(datagram); in.Next(&r); {
		n++
	}
	if n != 1<<16-1 || in.Err() != nil || w.Seq() != 1<<16-1 {
		t.Errorf("read %d reports, %v, next number %d; want %d, nil, %[4]d", n, in.Err(), w.Seq(), 1<<16-1)
	}
}

// drawReport makes a report that passes Check and has no field that its
// primitive does not carry.
func drawReport(t *rapid.T) Report {
	r := Report{
		Primitive:  rapid.SampledFrom([]Primitive{KeyWrite, Append, KeyIncrement, Postcarding}).Draw(t, "primitive"),
		Immediate:  rapid.Bool().Draw(t, "immediate"),
		Retransmit: rapid.Bool().Draw(t, "retransmit"),
	}
	if r.Primitive == Append {
		r.List = ListID(rapid.Uint32().Draw(t, "list"))
	} else {
		r.Redundancy = rapid.Uint8Range(1, MaxRedundancy).Draw(t, "redundancy")
		r.Key = rapid.SliceOfN(rapid.Byte(), 1, MaxKey).Draw(t, "key")
	}
	if r.Primitive == Postcarding {
		r.Hop, r.Path = rapid.Byte().Draw(t, "hop"), rapid.Byte().Draw(t, "path")
	}
	if r.Primitive == KeyIncrement {
		r.Delta = rapid.Uint64().Draw(t, "delta")
	} else {
		r.Data = rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "data")
	}
	return r
}

func TestWriterToReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reporter := model.NodeID(rapid.Uint32().Draw(t, "reporter"))
		first := Seq(rapid.Uint32().Draw(t, "first"))
		size := rapid.IntRange(HeaderSize+headSize+hopSize+MaxKey+60, 1500).Draw(t, "size")
		want := rapid.SliceOfN(rapid.Custom(drawReport), 0, 40).Draw(t, "reports")

		var datagrams [][]byte
		w := NewWriter(reporter, first)
		w.Begin(make([]byte, size))
		for i := range want {
			err := w.AddReport(&want[i])
			if err == ErrFull {
				datagrams = append(datagrams, w.Finish())
				w.Begin(make([]byte, size))
				err = w.AddReport(&want[i])
			}
			if err != nil {
				t.Fatalf("Add(%+v) = %v; want nil", want[i], err)
			}
		}
		datagrams = append(datagrams, w.Finish())

		var got []Report
		var in Reader
		var r Report
		for i, d := range datagrams {
			in.Reset(d)
			if seq := first + Seq(len(got)); in.Seq() != seq || in.Header().Reporter != reporter || len(d) > size {
				t.Fatalf("datagram %d of %d bytes starts at %d from %d; want at most %d bytes, %d, %d",
					i, len(d), in.Seq(), in.Header().Reporter, size, seq, reporter)
			}
			for in.Next(&r) {
				got = append(got, r)
			}
			if in.Err() != nil {
				t.Fatalf("reading %x: %v", d, in.Err())
			}
		}
		if !slices.EqualFunc(got, want, equal) {
			t.Fatalf("read %+v; want %+v", got, want)
		}
	})
}

// TestRunsAreTheReports: whatever a datagram holds, runs and single reports
// read the same and end in the same error.
func TestRunsAreTheReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := NewWriter(7, 9)
		w.Begin(make([]byte, 1500))
		for range rapid.IntRange(0, 8).Draw(t, "shapes") {
			r := drawReport(t)
			for range rapid.IntRange(1, 4).Draw(t, "times") {
				if w.AddReport(&r) != nil {
					break
				}
			}
		}
		datagram := w.Finish()
		datagram = datagram[:rapid.IntRange(HeaderSize, len(datagram)).Draw(t, "cut")]
		var one, many Reader
		one.Reset(datagram)
		many.Reset(datagram)
		var a, b, first Report
		for {
			if one.Seq() != many.Seq() {
				t.Fatalf("after a run at %d; want %d", many.Seq(), one.Seq())
			}
			run, n := many.NextRun(&first)
			for i := range n {
				size, err := b.Parse(run)
				if !one.Next(&a) || err != nil || !equal(a, b) || a.head() != first.head() || a.List != first.List || i == 0 && !equal(a, first) {
					t.Fatalf("report %d of a run of %+v is %+v, %v; want %+v", i, first, b, err, a)
				}
				run = run[size:]
			}
			if n == 0 {
				break
			}
		}
		if one.Next(&a) || one.Err() != many.Err() {
			t.Fatalf("runs end with %v; want %v", many.Err(), one.Err())
		}
	})
}

func FuzzReader(f *testing.F) {
	f.Add(twoReports)
	f.Add(fromHex("d1 00 0000 00000009 00000001"))
	all := Header{Count: uint16(len(reports)), Seq: 1}.AppendTo(nil)
	for _, tc := range reports {
		all = append(all, tc.wire...)
	}
	f.Add(all)
	mac := NewMAC(3, []byte("secret"))
	signed, _ := mac.AppendSigned(nil, all, 1, 2)
	f.Add(signed)
	f.Fuzz(func(t *testing.T, in []byte) {
		var r Reader
		var rep Report
		if r.Reset(in) != nil {
			if r.Next(&rep) || r.Err() == nil {
				t.Fatalf("Reset(%x) fails, yet Next reads or Err is nil", in)
			}
			return
		}
		h := r.Header()
		w := NewWriter(h.Reporter, h.Seq)
		if h.Signed {
			// The MAC is not read: any other is as good here.
			w = NewSignedWriter(h.Reporter, h.Seq, NewMAC(h.KeyID, nil), h.Start)
		}
		w.Begin(make([]byte, len(in)))
		for r.Next(&rep) {
			if err := w.AddReport(&rep); err != nil {
				t.Fatalf("Add(%+v) = %v; want nil, since it was read from %x", rep, err, in)
			}
		}
		count, seq := w.Count(), w.Seq()
		out := w.FinishAt(h.Sent)
		if h.Signed {
			in, out = in[:len(in)-MACSize], out[:len(out)-MACSize]
		}
		if size := h.Size(); !bytes.Equal(out[size:], in[size:len(out)]) {
			t.Fatalf("round trip %x -> %x", in, out)
		}
		switch err := r.Err(); {
		case r.Seq() != seq:
			t.Fatalf("Seq() after %d reports of %x = %d; want %d", count, in, r.Seq(), seq)
		case err == nil && !bytes.Equal(out, in):
			t.Fatalf("%x reads without an error, but is written as %x", in, out)
		case err == ErrTrailing && (count != int(r.Header().Count) || len(out) >= len(in)):
			t.Fatalf("%x: %v after %d of %d reports", in, err, count, r.Header().Count)
		case err != nil && err != ErrTrailing && count >= int(r.Header().Count):
			t.Fatalf("%x: %v after all %d reports", in, err, count)
		}
	})
}

func TestDatagramAllocs(t *testing.T) {
	buf := make([]byte, maxPayload)
	sum := 0
	// The Writer and the Reader are made inside: they must not escape either.
	if n := testing.AllocsPerRun(100, func() {
		var rep Report
		w, r := NewWriter(7, 0), reports["key-write of a flow"].want
		var in Reader
		for in.Reset(pack(&w, &r, buf)); in.Next(&rep); {
			sum += len(rep.Key)
		}
	}); n != 0 || sum == 0 {
		t.Errorf("packing and reading a datagram allocates %v times, %d bytes of keys; want 0, some", n, sum)
	}
}

func TestSeqSub(t *testing.T) {
	for _, tc := range []struct {
		s, t Seq
		want int
	}{
		{5, 3, 2},
		{3, 5, -2},
		{0, 0xffffffff, 1},
		{0xffffffff, 0, -1},
		{0x80000000, 0, -1 << 31},
	} {
		if got := tc.s.Sub(tc.t); got != tc.want {
			t.Errorf("Seq(%#x).Sub(%#x) = %d; want %d", tc.s, tc.t, got, tc.want)
		}
	}
}

package dta

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

var testSecret = []byte("0123456789abcdef0123456789abcdef")

// signedReports are twoReports in version 2. Its MAC is that of another
// implementation, Python's cryptography.
var signedReports = fromHex("d2 05 0002 00000009 ffffffff 18a1b2c3d4e5f607 18a1b2c3d4e5f6ff" +
	"20 00 0001 00000005 aa" +
	"10 01 0002 07 bbcc" +
	"4128c71000e609d2b294843b3b6f9587")

func TestSignedHeader(t *testing.T) {
	wire := fromHex("d2 05 0102 03040506 0708090a 18a1b2c3d4e5f607 98a1b2c3d4e5f6ff")
	want := Header{
		Count: 0x102, Reporter: 0x3040506, Seq: 0x708090a,
		Signed: true, KeyID: 5, Start: 0x18a1b2c3d4e5f607, Sent: -0x675e4d3c2b1a0901,
	}
	var got Header
	if n, err := got.Parse(append(bytes.Clone(wire), 0xee)); got != want || n != SignedHeaderSize || err != nil {
		t.Errorf("Parse(%xee) = %+v, %d, %v; want %+v, %d, nil", wire, got, n, err, want, SignedHeaderSize)
	}
	if out := want.AppendTo([]byte{0xaa}); !bytes.Equal(out[1:], wire) || out[0] != 0xaa {
		t.Errorf("%+v.AppendTo(aa) = %x; want aa%x", want, out, wire)
	}
	for cut := range wire {
		if n, err := got.Parse(wire[:cut]); got != (Header{}) || n != 0 || err != ErrShort {
			t.Errorf("Parse(%x) = %+v, %d, %v; want {}, 0, %v", wire[:cut], got, n, err, ErrShort)
		}
	}
}

func TestSignedWriterToReader(t *testing.T) {
	mac := NewMAC(5, testSecret)
	w := NewSignedWriter(9, 0xffffffff, mac, 0x18a1b2c3d4e5f607)
	w.Begin(make([]byte, len(signedReports)))
	for _, r := range []Report{
		{Primitive: Append, List: 5, Data: []byte{0xaa}},
		{Primitive: KeyWrite, Redundancy: 1, Key: []byte{7}, Data: []byte{0xbb, 0xcc}},
	} {
		if err := w.AddReport(&r); err != nil {
			t.Fatalf("AddReport(%+v) = %v; want nil", r, err)
		}
	}
	if err := w.AddReport(&Report{Primitive: Append}); err != ErrFull {
		t.Errorf("AddReport into the space of the MAC = %v; want %v", err, ErrFull)
	}
	got := w.FinishAt(0x18a1b2c3d4e5f6ff)
	if !bytes.Equal(got, signedReports) {
		t.Errorf("FinishAt() = %x; want %x", got, signedReports)
	}
	if again, err := mac.AppendSigned([]byte{0xaa}, twoReports, 0x18a1b2c3d4e5f607, 0x18a1b2c3d4e5f6ff); err != nil || !bytes.Equal(again[1:], signedReports) {
		t.Errorf("AppendSigned(%x) = %x, %v; want aa%x", twoReports, again, err, signedReports)
	}
	other, err := NewMAC(6, nil).AppendSigned(nil, twoReports, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := mac.AppendSigned(nil, other, 0x18a1b2c3d4e5f607, 0x18a1b2c3d4e5f6ff); err != nil || !bytes.Equal(again, signedReports) {
		t.Errorf("AppendSigned(%x) = %x, %v; want %x", other, again, err, signedReports)
	}
	if b, err := mac.AppendSigned([]byte{0xaa}, other[:20], 1, 2); err != ErrShort || len(b) != 1 {
		t.Errorf("AppendSigned(%x) = %x, %v; want aa, %v", other[:20], b, err, ErrShort)
	}
	var r Reader
	var rep Report
	read := 0
	for r.Reset(got); r.Next(&rep); {
		read++
	}
	if read != 2 || r.Err() != nil {
		t.Errorf("reading %x gives %d reports, %v; want 2, nil", got, read, r.Err())
	}
	for cut := HeaderSize; cut < SignedHeaderSize+MACSize; cut++ {
		if err := r.Reset(got[:cut]); err != ErrShort || r.Next(&rep) {
			t.Errorf("Reset(%x) = %v; want %v", got[:cut], err, ErrShort)
		}
	}
	if !panics(func() { w.Begin(make([]byte, SignedHeaderSize+MACSize-1)) }) {
		t.Error("Begin without space for a header and a MAC does not panic")
	}
}

// TestAlteredBytesDoNotVerify: whatever is changed, cut or appended, and under
// every other key, the MAC is wrong.
func TestAlteredBytesDoNotVerify(t *testing.T) {
	mac, other := NewMAC(5, testSecret), NewMAC(5, append(bytes.Clone(testSecret[:31]), 'x'))
	rapid.Check(t, func(t *rapid.T) {
		r := drawReport(t)
		w := NewSignedWriter(9, 1, mac, 2)
		w.Begin(make([]byte, 1500))
		if err := w.AddReport(&r); err != nil {
			t.Fatal(err)
		}
		d := w.FinishAt(3)
		if !mac.Verify(d) || other.Verify(d) {
			t.Fatalf("Verify(%x) = %v, with another key %v; want true, false", d, mac.Verify(d), other.Verify(d))
		}
		altered := bytes.Clone(d)
		altered[rapid.IntRange(0, len(d)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if mac.Verify(altered) {
			t.Fatalf("%x verifies, altered from %x", altered, d)
		}
		if cut := d[:rapid.IntRange(0, len(d)-1).Draw(t, "cut")]; mac.Verify(cut) {
			t.Fatalf("%x verifies, cut from %x", cut, d)
		}
		if mac.Verify(append(d, 0)) {
			t.Fatalf("%x verifies with a byte appended", d)
		}
	})
}

func TestAnswer(t *testing.T) {
	wire := fromHex("a2 05 0000 00000009 0000000000000102 0000000000000304")
	want := Answer{KeyID: 5, Reporter: 9, Start: 0x102, Sent: 0x304}
	var got Answer
	if n, err := got.Parse(append(bytes.Clone(wire), 0xee)); got != want || n != AnswerSize || err != nil {
		t.Errorf("Parse(%xee) = %+v, %d, %v; want %+v, %d, nil", wire, got, n, err, want, AnswerSize)
	}
	if out := want.AppendTo([]byte{0xaa}); !bytes.Equal(out[1:], wire) || out[0] != 0xaa {
		t.Errorf("%+v.AppendTo(aa) = %x; want aa%x", want, out, wire)
	}
	for in, wantErr := range map[string]error{
		"": ErrShort,
		"a2 05 0000 00000009 0000000000000102 00000000000003":   ErrShort,
		"d2 05 0000 00000009 0000000000000102 0000000000000304": ErrVersion, // reports
		"a2 05 0001 00000009 0000000000000102 0000000000000304": ErrReserved,
	} {
		got = want
		if n, err := got.Parse(fromHex(in)); got != (Answer{}) || n != 0 || err != wantErr {
			t.Errorf("Parse(%s) = %+v, %d, %v; want {}, 0, %v", in, got, n, err, wantErr)
		}
	}
	var h Header
	if _, err := h.Parse(wire); err != ErrVersion {
		t.Errorf("an answer parsed as reports = %v; want %v", err, ErrVersion)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(Answer{KeyID: 1, Reporter: 7, Start: 9, Sent: 2}.AppendTo(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		var a Answer
		n, err := a.Parse(in)
		if err != nil {
			return
		}
		if out := a.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %+v -> %x", in[:n], a, out)
		}
	})
}

func FuzzVerify(f *testing.F) {
	f.Add(signedReports)
	f.Add([]byte{})
	mac := NewMAC(5, testSecret)
	f.Fuzz(func(t *testing.T, in []byte) {
		if mac.Verify(in) && !bytes.Equal(mac.AppendMAC(nil, in[:len(in)-MACSize]), in[len(in)-MACSize:]) {
			t.Fatalf("%x verifies without its MAC", in)
		}
	})
}

func TestSignedAllocs(t *testing.T) {
	mac, buf := NewMAC(5, testSecret), make([]byte, maxPayload)
	w, r := NewSignedWriter(7, 0, mac, 1), reports["key-write of a flow"].want
	answer := make([]byte, 0, 64)
	verified := true
	if n := testing.AllocsPerRun(100, func() {
		d := pack(&w, &r, buf)
		verified = verified && mac.Verify(d)
		answer = Answer{}.AppendTo(answer[:0])
		answer = mac.AppendMAC(answer, answer)
	}); n != 0 || !verified {
		t.Errorf("signing and verifying allocates %v times, verified %v; want 0, true", n, verified)
	}
}

func BenchmarkVerify(b *testing.B) {
	mac := NewMAC(5, testSecret)
	w, r := NewSignedWriter(7, 0, mac, 1), flowReport()
	d := pack(&w, &r, make([]byte, maxPayload))
	for b.Loop() {
		mac.Verify(d)
	}
	b.SetBytes(int64(len(d)))
}

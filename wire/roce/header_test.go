package roce

import (
	"bytes"
	"testing"
	"time"
)

// header is what every header of this package can do.
type header[T any] interface {
	*T
	Parse(b []byte) (int, error)
}

// appender is the other half, on the value.
type appender interface{ AppendTo(b []byte) []byte }

// testHeader checks one header against bytes written by hand: in both directions, with
// bytes after it, truncated at every length, and without allocation.
func testHeader[T interface {
	comparable
	appender
}, P header[T]](t *testing.T, want T, wire []byte) {
	t.Helper()
	var got T
	in := append(bytes.Clone(wire), 0xee)
	if n, err := P(&got).Parse(in); got != want || n != len(wire) || err != nil {
		t.Errorf("Parse(%x) = %+v, %d, %v; want %+v, %d, nil", in, got, n, err, want, len(wire))
	}
	if out := want.AppendTo([]byte{0xaa}); !bytes.Equal(out[1:], wire) || out[0] != 0xaa {
		t.Errorf("%+v.AppendTo(aa) = %x; want aa%x", want, out, wire)
	}
	for cut := range wire {
		var zero T
		got = want
		if n, err := P(&got).Parse(wire[:cut]); got != zero || n != 0 || err != ErrShort {
			t.Errorf("Parse(%x) = %+v, %d, %v; want %+v, 0, %v", wire[:cut], got, n, err, zero, ErrShort)
		}
	}
	buf := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		P(&got).Parse(wire)
		buf = want.AppendTo(buf[:0])
	}); n != 0 {
		t.Errorf("Parse and AppendTo of %T allocate %v times; want 0", want, n)
	}
}

func TestBTH(t *testing.T) {
	testHeader(t, BTH{
		Opcode: FetchAdd, MigReq: true, PadCount: 2, Version: 5, PKey: 0xffff,
		BECN: true, Resv6: 0x21, DestQP: 0x010203, AckReq: true, Resv7: 0x55, PSN: 0xfffefd,
	}, fromHex("14 65 ffff 61 010203 d5 fffefd"))
	testHeader(t, BTH{Opcode: CNP, Solicited: true, PKey: 0x8001, FECN: true, DestQP: 0xffffff},
		fromHex("81 80 8001 80 ffffff 00 000000"))
}

func TestBTHCutsWideValues(t *testing.T) {
	wide := BTH{PadCount: 0xff, Version: 0xff, Resv6: 0xff, DestQP: 0xffffffff, Resv7: 0xff, PSN: 0xffffffff}
	want := fromHex("00 3f 0000 3f ffffff 7f ffffff")
	if got := wide.AppendTo(nil); !bytes.Equal(got, want) {
		t.Errorf("%+v.AppendTo(nil) = %x; want %x", wide, got, want)
	}
	aeth, want := AETH{MSN: 0xffffffff}, fromHex("00 ffffff")
	if got := aeth.AppendTo(nil); !bytes.Equal(got, want) {
		t.Errorf("%+v.AppendTo(nil) = %x; want %x", aeth, got, want)
	}
}

func TestExtensionHeaders(t *testing.T) {
	testHeader(t, RETH{VA: 0x0102030405060708, RKey: 0x090a0b0c, Length: 0x0d0e0f10},
		fromHex("0102030405060708 090a0b0c 0d0e0f10"))
	testHeader(t, AtomicETH{VA: 0x0102030405060708, RKey: 0x090a0b0c, SwapAdd: 0x1112131415161718, Compare: 0x2122232425262728},
		fromHex("0102030405060708 090a0b0c 1112131415161718 2122232425262728"))
	testHeader(t, AETH{Syndrome: NakSequence, MSN: 0x010203}, fromHex("60 010203"))
	testHeader(t, AtomicAckETH(0x0102030405060708), fromHex("0102030405060708"))
	testHeader(t, ImmDt(0x01020304), fromHex("01020304"))
}

func TestSyndrome(t *testing.T) {
	for _, tc := range []struct {
		s             Syndrome
		ack, rnr, nak bool
		value         uint8
		delay         time.Duration
	}{
		{Ack(5), true, false, false, 5, 0},
		{AckNoCredit, true, false, false, 31, 0},
		{RNR(0), false, true, false, 0, 655360 * time.Microsecond},
		{RNR(1), false, true, false, 1, 10 * time.Microsecond},
		{RNR(3), false, true, false, 3, 30 * time.Microsecond},
		{RNR(4), false, true, false, 4, 40 * time.Microsecond},
		{RNR(14), false, true, false, 14, 1280 * time.Microsecond},
		{RNR(31), false, true, false, 31, 491520 * time.Microsecond},
		{NakSequence, false, false, true, 0, 0},
		{NakRemote, false, false, true, 3, 0},
		{0x40, false, false, false, 0, 0}, // reserved kind
		{0x80, false, false, false, 0, 0}, // reserved bit
	} {
		s := tc.s
		if s.IsAck() != tc.ack || s.IsRNR() != tc.rnr || s.IsNak() != tc.nak || s.Value() != tc.value || s.Delay() != tc.delay {
			t.Errorf("syndrome %#02x: ack %v, rnr %v, nak %v, value %d, delay %v; want %v, %v, %v, %d, %v",
				uint8(s), s.IsAck(), s.IsRNR(), s.IsNak(), s.Value(), s.Delay(), tc.ack, tc.rnr, tc.nak, tc.value, tc.delay)
		}
	}
}

// The standard's table doubles every second step, and wraps at the end.
func TestSyndromeDelayDoubles(t *testing.T) {
	for timer := uint8(5); timer <= 32; timer++ {
		if got, want := RNR(timer).Delay(), 2*RNR(timer-2).Delay(); got != want {
			t.Errorf("RNR(%d).Delay() = %v; want %v", timer, got, want)
		}
	}
}

func TestOpcodeString(t *testing.T) {
	for o, want := range map[Opcode]string{WriteOnlyImm: "write-only-imm", CNP: "cnp", 0x2a: "0x2a"} {
		if got := o.String(); got != want {
			t.Errorf("Opcode(%#02x).String() = %q; want %q", uint8(o), got, want)
		}
	}
}

// fuzzHeader checks that AppendTo gives back every byte that Parse took.
func fuzzHeader[T appender, P header[T]](f *testing.F) {
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Add([]byte{0x0a, 0x40, 0xff, 0xff, 0, 0, 0, 2, 0x80, 0, 0, 1})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, in []byte) {
		var h T
		n, err := P(&h).Parse(in)
		if err != nil {
			return
		}
		if out := h.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %+v -> %x", in[:n], h, out)
		}
	})
}

func FuzzBTH(f *testing.F)          { fuzzHeader[BTH](f) }
func FuzzRETH(f *testing.F)         { fuzzHeader[RETH](f) }
func FuzzAtomicETH(f *testing.F)    { fuzzHeader[AtomicETH](f) }
func FuzzAETH(f *testing.F)         { fuzzHeader[AETH](f) }
func FuzzAtomicAckETH(f *testing.F) { fuzzHeader[AtomicAckETH](f) }
func FuzzImmDt(f *testing.F)        { fuzzHeader[ImmDt](f) }

func BenchmarkBTH(b *testing.B) {
	h := BTH{Opcode: WriteOnly, MigReq: true, PKey: DefaultPKey, DestQP: 7, PSN: 9}
	wire := h.AppendTo(nil)
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			h.Parse(wire)
		}
	})
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			wire = h.AppendTo(wire[:0])
		}
	})
}

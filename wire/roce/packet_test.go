package roce

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The packets that carry reports into a collector's memory, and what answers
// them, written by hand.
var packets = map[string]struct {
	wire []byte
	want Packet
}{
	"write": {
		fromHex("0a 40 ffff 00 000011 00 000007" + "00007f0000001000 00000abc 00000008" + "0102030405060708"),
		Packet{
			BTH:     BTH{Opcode: WriteOnly, MigReq: true, PKey: DefaultPKey, DestQP: 0x11, PSN: 7},
			RETH:    RETH{VA: 0x7f0000001000, RKey: 0xabc, Length: 8},
			Payload: []byte{1, 2, 3, 4, 5, 6, 7, 8},
		},
	},
	"write with immediate and padding": {
		fromHex("0b 30 ffff 00 000011 80 000008" + "00007f0000001000 00000abc 00000005" + "cafe0001" + "0102030405 00ee00"),
		Packet{
			BTH:     BTH{Opcode: WriteOnlyImm, PadCount: 3, PKey: DefaultPKey, DestQP: 0x11, AckReq: true, PSN: 8},
			RETH:    RETH{VA: 0x7f0000001000, RKey: 0xabc, Length: 5},
			Imm:     0xcafe0001,
			Payload: []byte{1, 2, 3, 4, 5, 0, 0xee, 0},
		},
	},
	"fetch and add": {
		fromHex("14 40 ffff 00 000011 00 000009" + "00007f0000001008 00000abc 0000000000000005 0000000000000000"),
		Packet{
			BTH:    BTH{Opcode: FetchAdd, MigReq: true, PKey: DefaultPKey, DestQP: 0x11, PSN: 9},
			Atomic: AtomicETH{VA: 0x7f0000001008, RKey: 0xabc, SwapAdd: 5},
		},
	},
	"ack": {
		fromHex("11 40 ffff 00 000012 00 000009" + "1f 000003"),
		Packet{
			BTH:  BTH{Opcode: Acknowledge, MigReq: true, PKey: DefaultPKey, DestQP: 0x12, PSN: 9},
			AETH: AETH{Syndrome: AckNoCredit, MSN: 3},
		},
	},
	"atomic ack": {
		fromHex("12 40 ffff 00 000012 00 000009" + "1f 000003" + "00000000000000ff"),
		Packet{
			BTH:       BTH{Opcode: AtomicAcknowledge, MigReq: true, PKey: DefaultPKey, DestQP: 0x12, PSN: 9},
			AETH:      AETH{Syndrome: AckNoCredit, MSN: 3},
			AtomicAck: 0xff,
		},
	},
	"datagram": {
		fromHex("64 40 ffff 00 000001 00 000034" + "80010000 00 000001" + "01070203"),
		Packet{
			BTH:     BTH{Opcode: UDSendOnly, MigReq: true, PKey: DefaultPKey, DestQP: 1, PSN: 0x34},
			DETH:    DETH{QKey: 0x80010000, SrcQP: 1},
			Payload: []byte{1, 7, 2, 3},
		},
	},
	"unknown opcode": {
		fromHex("c0 00 ffff 00 000012 00 000009" + "0102"),
		Packet{
			BTH:     BTH{Opcode: 0xc0, PKey: DefaultPKey, DestQP: 0x12, PSN: 9},
			Payload: []byte{1, 2},
		},
	},
}

func TestPacket(t *testing.T) {
	for name, tc := range packets {
		t.Run(name, func(t *testing.T) {
			got := Packet{RETH: RETH{VA: 1}, Imm: 1, AtomicAck: 1} // must not survive
			if n, err := got.Parse(tc.wire); n != len(tc.wire) || err != nil {
				t.Fatalf("Parse(%x) = %d, %v; want %d, nil", tc.wire, n, err, len(tc.wire))
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Parse(%x) differs from what was meant (-want +got):\n%s", tc.wire, diff)
			}
			if out := tc.want.AppendTo(nil); !bytes.Equal(out, tc.wire) {
				t.Errorf("AppendTo = %x; want %x", out, tc.wire)
			}
		})
	}
}

func TestPacketExtensionSizes(t *testing.T) {
	for o, want := range map[Opcode]int{
		SendFirst: 0, SendMiddle: 0, SendLast: 0, SendLastImm: 4, SendOnly: 0, SendOnlyImm: 4,
		WriteFirst: 16, WriteMiddle: 0, WriteLast: 0, WriteLastImm: 4, WriteOnly: 16, WriteOnlyImm: 20,
		ReadRequest: 16, ReadResponseFirst: 4, ReadResponseMiddle: 0, ReadResponseLast: 4, ReadResponseOnly: 4,
		Acknowledge: 4, AtomicAcknowledge: 12, CmpSwap: 28, FetchAdd: 28, UDSendOnly: 8, CNP: 0, 0xff: 0,
	} {
		p := Packet{BTH: BTH{Opcode: o}}
		wire := p.AppendTo(nil)
		if got := len(wire) - BTHSize; got != want {
			t.Errorf("%v has %d bytes of extension headers; want %d", o, got, want)
		}
		for cut := range wire {
			if n, err := p.Parse(wire[:cut]); n != 0 || err != ErrShort {
				t.Errorf("Parse(%x), %v cut at %d = %d, %v; want 0, %v", wire[:cut], o, cut, n, err, ErrShort)
			}
		}
	}
}

func TestPacketData(t *testing.T) {
	tc := packets["write with immediate and padding"]
	if got, want := tc.want.Data(), []byte{1, 2, 3, 4, 5}; !bytes.Equal(got, want) {
		t.Errorf("Data() = %x; want %x", got, want)
	}
	p := Packet{BTH: BTH{PadCount: 3}, Payload: []byte{1}}
	if got := p.Data(); len(got) != 0 {
		t.Errorf("Data() of 1 byte with 3 of padding = %x; want none", got)
	}
	wire := p.AppendTo(nil)
	if n, err := p.Parse(wire); n != 0 || err != ErrPad {
		t.Errorf("Parse(%x) = %d, %v; want 0, %v", wire, n, err, ErrPad)
	}
}

func FuzzPacket(f *testing.F) {
	for _, tc := range packets {
		f.Add(tc.wire)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var p Packet
		n, err := p.Parse(in)
		if err != nil {
			return
		}
		if out := p.AppendTo(nil); !bytes.Equal(out, in[:n]) || n != len(in) {
			t.Fatalf("round trip %x -> %+v -> %x, %d bytes used", in, p, out, n)
		}
	})
}

func TestPacketAllocs(t *testing.T) {
	buf := make([]byte, 0, 128)
	var p Packet
	for name, tc := range packets {
		if n := testing.AllocsPerRun(100, func() {
			p.Parse(tc.wire)
			buf = p.AppendTo(buf[:0])
		}); n != 0 {
			t.Errorf("%s: Parse and AppendTo allocate %v times; want 0", name, n)
		}
	}
}

func BenchmarkPacket(b *testing.B) {
	tc := packets["write"]
	wire, p := bytes.Clone(tc.wire), tc.want
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			p.Parse(wire)
		}
	})
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			wire = tc.want.AppendTo(wire[:0])
		}
	})
}

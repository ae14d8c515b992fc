package intreport

import (
	"bytes"
	"testing"
)

// everything has a value for each bit of the bitmap, written by hand.
var everything = []byte{
	0, 0, 0, 1, // 0: node
	0, 2, 0, 3, // 1: ports
	0, 0, 0, 4, // 2: hop latency
	5, 0, 0, 6, // 3: queue
	0, 0, 0, 0, 0, 0, 0, 7, // 4: ingress time
	0, 0, 0, 0, 0, 0, 0, 8, // 5: egress time
	0, 0, 0, 9, 0, 0, 0, 10, // 6: logical ports
	0, 0, 0, 11, // 7: utilisation
	12, 0, 0, 13, // 8: buffer
	0, 0, 0, 20, 0, 0, 0, 21, 0, 0, 0, 22, 0, 0, 0, 23, 0, 0, 0, 24, 0, 0, 0, 25, // 9 to 14
	1, 2, 3, 4, // 15
}

func TestMetadataParse(t *testing.T) {
	for name, tc := range map[string]struct {
		bits Bits
		in   []byte
		want Metadata
		err  error
	}{
		"nothing": {in: []byte{1}},
		"everything": {bits: 0xffff, in: everything, want: Metadata{
			Bits: 0xffff, Node: 1, Ingress: 2, Egress: 3, HopLatency: 4, Queue: 5, QueueDepth: 6, IngressTime: 7, EgressTime: 8,
			LogicalIngress: 9, LogicalEgress: 10, Utilisation: 11, Buffer: 12, BufferDepth: 13,
			Reserved: [6]uint32{20, 21, 22, 23, 24, 25}, Last: 0x01020304,
		}},
		"unknown": {
			bits: BitHopLatency | BitEgressTime | BitBuffer,
			in:   bytes.Repeat([]byte{0xff}, 16),
			want: Metadata{Bits: BitHopLatency | BitEgressTime | BitBuffer, Missing: BitHopLatency | BitEgressTime | BitBuffer},
		},
		"half unknown is known": {
			bits: BitPorts | BitLogicalPorts,
			in:   []byte{0xff, 0xff, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1},
			want: Metadata{Bits: BitPorts | BitLogicalPorts, Ingress: 0xffff, Egress: 1, LogicalIngress: 0xffffffff, LogicalEgress: 1},
		},
		"cut": {bits: BitIngressTime, in: make([]byte, 7), err: ErrShort},
	} {
		t.Run(name, func(t *testing.T) {
			got := Metadata{Node: 99}
			n, err := got.Parse(tc.bits, tc.in)
			if err != tc.err || got != tc.want || (err == nil && n != tc.bits.Size()) {
				t.Errorf("Parse(%016b, %x) = %+v, %d, %v; want %+v, %v", tc.bits, tc.in, got, n, err, tc.want, tc.err)
			}
		})
	}
}

func TestBitsSize(t *testing.T) {
	for bit := range 16 {
		want := 4
		if bit == 4 || bit == 5 || bit == 6 {
			want = 8
		}
		if got := (Bits(0x8000) >> bit).Size(); got != want {
			t.Errorf("bit %d announces %d bytes; want %d", bit, got, want)
		}
	}
	if got := Bits(0xffff).Size(); got != len(everything) {
		t.Errorf("all bits announce %d bytes; want %d", got, len(everything))
	}
}

func TestMetadataHas(t *testing.T) {
	m := Metadata{Bits: BitQueue | BitPorts | BitBuffer, Missing: BitBuffer}
	for b, want := range map[Bits]bool{
		BitQueue: true, BitQueue | BitPorts: true, BitBuffer: false, BitQueue | BitBuffer: false, BitNode: false, 0: true,
	} {
		if got := m.Has(b); got != want {
			t.Errorf("%+v Has(%016b) = %v; want %v", m, b, got, want)
		}
	}
}

func TestMetadataAppend(t *testing.T) {
	m := Metadata{Bits: BitQueue | BitIngressTime | BitBuffer, Missing: BitIngressTime | BitNode, Queue: 1, QueueDepth: 1 << 24, Buffer: 2, BufferDepth: 1 << 30}
	m.SetDrop(3, 26)
	want := []byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0xff, 0xff, 0xff, 3, 26, 0, 0}
	if got := m.AppendTo(nil); !bytes.Equal(got, want) {
		t.Errorf("AppendTo of %+v = %x; want %x", m, got, want)
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add(uint16(0xffff), everything)
	f.Add(uint16(BitPorts|BitQueue), []byte{0, 3, 0, 4, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, announced uint16, in []byte) {
		var m Metadata
		n, err := m.Parse(Bits(announced), in)
		if err != nil {
			return
		}
		if out := m.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %016b %x -> %+v -> %x", announced, in[:n], m, out)
		}
	})
}

func BenchmarkMetadataParse(b *testing.B) {
	var m Metadata
	for b.Loop() {
		_, _ = m.Parse(BitPorts|BitHopLatency|BitQueue|BitIngressTime|BitEgressTime, everything)
	}
}

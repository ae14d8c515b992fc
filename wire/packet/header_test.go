package packet

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

// header is what every layer of this package offers; P is its pointer.
type header[H any] interface {
	*H
	Parse([]byte) (int, error)
}

type appender interface{ AppendTo([]byte) []byte }

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// testHeader checks one header against bytes written by hand, cut at every
// length, encoded again, and that none of it allocates.
func testHeader[H appender, P header[H]](t *testing.T, in string, want H) {
	t.Helper()
	raw := unhex(in)
	var got H
	n, err := P(&got).Parse(append(raw, 0xee))
	if err != nil || n != len(raw) || !reflect.DeepEqual(got, want) {
		t.Errorf("Parse(%s) = %+v, %d, %v; want %+v, %d", in, got, n, err, want, len(raw))
	}
	if out := want.AppendTo(nil); !bytes.Equal(out, raw) {
		t.Errorf("AppendTo(%+v) = %x; want %s", want, out, in)
	}
	for n := range raw {
		var zero H
		got = want
		if _, err := P(&got).Parse(raw[:n]); err != ErrShort || !reflect.DeepEqual(got, zero) {
			t.Errorf("Parse(%x) = %+v, %v; want the zero header, ErrShort", raw[:n], got, err)
		}
	}
	buf := make([]byte, 0, 100)
	if n := testing.AllocsPerRun(100, func() {
		P(&got).Parse(raw)
		buf = got.AppendTo(buf[:0])
	}); n != 0 {
		t.Errorf("Parse and AppendTo of %T allocate %v times; want 0", got, n)
	}
}

func TestHeaders(t *testing.T) {
	t.Run("Ethernet", func(t *testing.T) {
		testHeader(t, "020000000002 020000000001 0800",
			Ethernet{Dst: model.MAC{2, 0, 0, 0, 0, 2}, Src: model.MAC{2, 0, 0, 0, 0, 1}, Type: TypeIPv4})
	})
	t.Run("VLAN", func(t *testing.T) {
		testHeader(t, "7fff 86dd", VLAN{PCP: 3, DEI: true, ID: 0xfff, Type: TypeIPv6})
	})
	t.Run("IPv4", func(t *testing.T) {
		// The header of the checksum example that every textbook has.
		h := IPv4{Length: 0x73, Flags: DontFragment, TTL: 64, Proto: model.UDP, Checksum: 0xb861, Src: 0xc0a80001, Dst: 0xc0a800c7}
		testHeader(t, "45000073 00004000 4011b861 c0a80001 c0a800c7", h)
		if got := h.Sum(); got != 0xb861 {
			t.Errorf("Sum() = %#04x; want 0xb861", got)
		}
	})
	t.Run("IPv4 with options", func(t *testing.T) {
		testHeader(t, "4600001c 1234 2005 ff01 0000 0a000001 0a000002 94040000",
			IPv4{Length: 28, ID: 0x1234, Flags: MoreFragments, FragOff: 5, TTL: 255, Proto: model.ICMP, Src: 0x0a000001, Dst: 0x0a000002, Options: []byte{0x94, 4, 0, 0}})
	})
	t.Run("IPv6", func(t *testing.T) {
		testHeader(t, "62e12345 0008 1140 fd000000000000000000000000000001 fd000000000000000000000000000002",
			IPv6{TrafficClass: 0x2e, FlowLabel: 0x12345, Length: 8, NextHeader: model.UDP, HopLimit: 64, Src: model.Addr{Hi: 0xfd << 56, Lo: 1}, Dst: model.Addr{Hi: 0xfd << 56, Lo: 2}})
	})
	t.Run("TCP", func(t *testing.T) {
		testHeader(t, "9c40 0050 00000001 00000002 6112 ffff beef 0003 020405b4",
			TCP{SrcPort: 40000, DstPort: 80, Seq: 1, Ack: 2, Flags: 0x112, Window: 0xffff, Checksum: 0xbeef, Urgent: 3, Options: []byte{2, 4, 5, 0xb4}})
	})
	t.Run("UDP", func(t *testing.T) {
		testHeader(t, "c000 12b7 0010 abcd", UDP{SrcPort: 49152, DstPort: 4791, Length: 16, Checksum: 0xabcd})
	})
	t.Run("ICMP", func(t *testing.T) {
		testHeader(t, "0800 f7ff 00010002", ICMP{Type: 8, Checksum: 0xf7ff, Rest: 0x10002})
	})
	t.Run("VXLAN", func(t *testing.T) {
		testHeader(t, "08000001 00123402", VXLAN{Flags: 8, Reserved1: 1, VNI: 0x1234, Reserved2: 2})
	})
}

func TestHeadersRefuse(t *testing.T) {
	for name, tc := range map[string]struct {
		h  interface{ Parse([]byte) (int, error) }
		in string
	}{
		"IPv4 of version 6":  {&IPv4{}, "65000073 00004000 4011b861 c0a80001 c0a800c7"},
		"IPv4 of four words": {&IPv4{}, "44000073 00004000 4011b861 c0a80001 c0a800c7"},
		"IPv6 of version 4":  {&IPv6{}, "42e12345 0008 1140 fd000000000000000000000000000001 fd000000000000000000000000000002"},
		"TCP of four words":  {&TCP{}, "9c40 0050 00000001 00000002 4112 ffff beef 0003"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tc.h.Parse(unhex(tc.in)); err != ErrHeader {
				t.Errorf("Parse(%s) = %v; want ErrHeader", tc.in, err)
			}
		})
	}
}

func TestTransportChecksum(t *testing.T) {
	// A DNS query and its checksum, worked out by hand with the pseudo-header.
	seg := unhex("0400 0035 000c 0000 01020304")
	src, dst := model.Addr4(0x0a000001), model.Addr4(0x0a000002)
	got := TransportChecksum(src, dst, false, model.UDP, seg)
	// 0a00+0001+0a00+0002+0011+000c + 0400+0035+000c+0000+0102+0304 = 1c67
	if want := ^uint16(0x1c67); got != want {
		t.Errorf("TransportChecksum(%x) = %#04x; want %#04x", seg, got, want)
	}
	seg[6], seg[7] = byte(got>>8), byte(got)
	if got := TransportChecksum(src, dst, false, model.UDP, seg); got != 0 {
		t.Errorf("TransportChecksum of a correct segment = %#04x; want 0", got)
	}
}

// fuzzHeader holds for every header: what Parse accepts, AppendTo writes back
// to the byte.
func fuzzHeader[H appender, P header[H]](f *testing.F, seeds ...string) {
	for _, s := range seeds {
		f.Add(unhex(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var h H
		n, err := P(&h).Parse(in)
		if err != nil {
			return
		}
		if out := h.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip of %T: %x -> %x", h, in[:n], out)
		}
	})
}

func FuzzEthernet(f *testing.F) { fuzzHeader[Ethernet](f, "0200000000020200000000010800") }
func FuzzVLAN(f *testing.F)     { fuzzHeader[VLAN](f, "7fff86dd") }
func FuzzIPv4(f *testing.F) {
	fuzzHeader[IPv4](f, "450000730000400040 11b861c0a80001c0a800c7", "4600001c12342005ff0100000a0000010a00000294040000")
}

func FuzzIPv6(f *testing.F) {
	fuzzHeader[IPv6](f, "62e1234500081140fd000000000000000000000000000001fd000000000000000000000000000002")
}

func FuzzTCP(f *testing.F)   { fuzzHeader[TCP](f, "9c40005000000001000000026112ffffbeef0003020405b4") }
func FuzzUDP(f *testing.F)   { fuzzHeader[UDP](f, "c00012b70010abcd") }
func FuzzICMP(f *testing.F)  { fuzzHeader[ICMP](f, "0800f7ff00010002") }
func FuzzVXLAN(f *testing.F) { fuzzHeader[VXLAN](f, "0800000100123402") }

package roce

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// fromHex reads hex digits with any white space between them.
func fromHex(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

// Packets that other implementations publish with their tests, from the IP
// header to the invariant CRC. Those say that the first was captured from a
// ConnectX-4 Lx and the third by a driver; of the second they say nothing.
var captures = map[string][]byte{
	// A congestion notification.
	"cnp ipv4": fromHex(`
		45c2 003c 718c 4000 4011 9161 0a00 1101 0a00 1201
		0000 12b7 0028 0000
		8100 ffff 4000 0118 0000 0000
		0000 0000 0000 0000 0000 0000 0000 0000
		82fd 002a`),
	// An unreliable-connection send with 2 bytes of padding.
	"send ipv4": fromHex(`
		4501 0040 0478 4000 4011 b4d5 c0a8 0007 c0a8 0007
		c000 12b7 002c aca2
		2460 ffff 0000 00d3 00cf 1710
		4630 818b e289 35d9 0e9a 9550 5401 be88 5e50 0000
		78f3 53f3`),
	// A write-only request.
	"write ipv4": fromHex(`
		4500 004c 0001 0000 4011 f54c c0a8 0201 c0a8 0202
		01f4 12b7 0038 ffa6
		0a00 ffff 0000 0002 0000 0000
		0000 0000 0000 1230 0000 0000 0000 0010
		0001 0203 0405 0607 0809 0a0b 0c0d 0e0f
		ca47 470e`),
}

// Two published frames of RoCE version 1, from the global route header on. That
// header is an IPv6 header in all but name, so they vouch for the IPv6 mask of
// slowICRC, which in turn vouches for ICRC.
var captures1 = map[string][]byte{
	"write grh": fromHex(`
		6020 0000 0028 1b40
		0000 0000 0000 0000 0000 ffff 0f00 0002
		0000 0000 0000 0000 0000 ffff 0f00 0002
		0a70 ffff 0000 010a 80a7 88bc
		0000 55d4 c072 6000 0000 47b3 0000 0005
		0000 0000 0100 0000
		e3d8 56bb`),
	"ack grh": fromHex(`
		6020 0000 0014 1b40
		0000 0000 0000 0000 0000 ffff 0f00 0002
		0000 0000 0000 0000 0000 ffff 0f00 0002
		1140 ffff 0000 0109 00a7 88c0
		0000 0005
		25f0 c038`),
}

// slowICRC copies the packet, overwrites what may change, and puts the eight
// bytes of ones in front: the standard's words, step by step.
func slowICRC(ip []byte) uint32 {
	p := bytes.Clone(ip)
	bth := 0
	if p[0]>>4 == 4 {
		p[1], p[8], p[10], p[11] = 0xff, 0xff, 0xff, 0xff
		bth = 20
	} else {
		p[0], p[1], p[2], p[3], p[7] = 0x6f, 0xff, 0xff, 0xff, 0xff
		bth = 40
	}
	if p[0]>>4 == 4 || p[6] == protoUDP {
		p[bth+6], p[bth+7] = 0xff, 0xff
		bth += 8
	}
	p[bth+4] = 0xff
	return crc32.ChecksumIEEE(append(bytes.Repeat([]byte{0xff}, 8), p...))
}

func TestICRCOfCaptures(t *testing.T) {
	for name, p := range captures {
		end := len(p) - ICRCSize
		want := binary.LittleEndian.Uint32(p[end:])
		if got, err := ICRC(p[:end]); got != want || err != nil {
			t.Errorf("%s: ICRC(%x) = %#08x, %v; want %#08x, nil", name, p[:end], got, err, want)
		}
		if err := CheckICRC(p); err != nil {
			t.Errorf("%s: CheckICRC(%x) = %v; want nil", name, p, err)
		}
		got, err := AppendICRC(bytes.Clone(p[:end]), p[:end])
		if !bytes.Equal(got, p) || err != nil {
			t.Errorf("%s: AppendICRC(%x) = %x, %v; want %x, nil", name, p[:end], got, err, p)
		}
	}
	for name, p := range captures1 {
		end := len(p) - ICRCSize
		want := binary.LittleEndian.Uint32(p[end:])
		if got := slowICRC(p[:end]); got != want {
			t.Errorf("%s: slowICRC(%x) = %#08x; want %#08x", name, p[:end], got, want)
		}
	}
}

func TestICRCErrors(t *testing.T) {
	good := captures["cnp ipv4"]
	edit := func(at int, v byte) []byte {
		p := bytes.Clone(good)
		p[at] = v
		return p
	}
	v6 := append([]byte{0x60, 0, 0, 0, 0, 24, protoUDP}, make([]byte, 57)...)
	tcp6 := bytes.Clone(v6)
	tcp6[6] = 6
	for name, tc := range map[string]struct {
		in   []byte
		want error
	}{
		"empty":         {nil, ErrShort},
		"icrc cut":      {good[:3], ErrShort},
		"ipv4 cut":      {good[:minSize4+ICRCSize-1], ErrShort},
		"ipv6 cut":      {v6[:minSize6+ICRCSize-1], ErrShort},
		"options":       {edit(0, 0x46), ErrNotUDP},
		"version 5":     {edit(0, 0x55), ErrNotUDP},
		"tcp":           {edit(9, 6), ErrNotUDP},
		"tcp over ipv6": {tcp6, ErrNotUDP},
		"damaged":       {edit(50, 1), ErrICRC},
		"left zero":     {v6, ErrICRC},
	} {
		if got := CheckICRC(tc.in); got != tc.want {
			t.Errorf("%s: CheckICRC(%x) = %v; want %v", name, tc.in, got, tc.want)
		}
	}
	short := good[:10]
	if got, err := AppendICRC(good, short); err != ErrShort || !bytes.Equal(got, good) {
		t.Errorf("AppendICRC(%x, %x) = %x, %v; want the first argument, %v", good, short, got, err, ErrShort)
	}
}

// drawIP makes a random packet that ICRC accepts.
func drawIP(t *rapid.T) []byte {
	v6 := rapid.Bool().Draw(t, "ipv6")
	minSize := minSize4
	if v6 {
		minSize = minSize6
	}
	p := rapid.SliceOfN(rapid.Byte(), minSize, minSize+300).Draw(t, "packet")
	if v6 {
		p[0], p[6] = 0x60|p[0]&15, protoUDP
	} else {
		p[0], p[9] = 0x45, protoUDP
	}
	return p
}

func TestICRCEqualsSlowReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawIP(t)
		if got, err := ICRC(p); got != slowICRC(p) || err != nil {
			t.Fatalf("ICRC(%x) = %#08x, %v; want %#08x, nil", p, got, err, slowICRC(p))
		}
	})
}

// A router may change the fields of the mask and no others.
func TestICRCIsInvariant(t *testing.T) {
	for _, mask := range [][]byte{mask4[:], mask6[:]} {
		p := make([]byte, 80)
		p[0], p[9] = 0x45, protoUDP
		if len(mask) == len(mask6) {
			p[0], p[6] = 0x60, protoUDP
		}
		before, _ := ICRC(p)
		for at := 1; at < len(p); at++ {
			if at == 6 || at == 9 { // protocol: another value has no CRC
				continue
			}
			p[at] ^= 0xff
			after, err := ICRC(p)
			p[at] ^= 0xff
			free := at < len(mask) && mask[at] == 0xff
			if err != nil || (after == before) != free {
				t.Errorf("ICRC of a version %d packet with byte %d flipped = %#08x, %v; before %#08x; want equal: %v",
					p[0]>>4, at, after, err, before, free)
			}
		}
	}
}

func FuzzICRC(f *testing.F) {
	for _, p := range captures {
		f.Add(p)
	}
	f.Add([]byte{0x60, 0, 0, 0, 0, 0, protoUDP})
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, err := AppendICRC(bytes.Clone(in), in)
		if err != nil {
			if !bytes.Equal(whole, in) {
				t.Fatalf("AppendICRC(%x) = %x, %v; want the input back", in, whole, err)
			}
			return
		}
		if err := CheckICRC(whole); err != nil {
			t.Fatalf("CheckICRC(%x) = %v; want nil", whole, err)
		}
		whole[len(in)] ^= 1
		if err := CheckICRC(whole); err != ErrICRC {
			t.Fatalf("CheckICRC(%x) = %v; want %v", whole, err, ErrICRC)
		}
	})
}

func TestICRCAllocs(t *testing.T) {
	p := captures["write ipv4"]
	buf := make([]byte, 0, 128)
	if n := testing.AllocsPerRun(100, func() {
		buf, _ = AppendICRC(append(buf[:0], p...), p)
		if CheckICRC(p) != nil {
			t.Error("CheckICRC refuses the capture")
		}
	}); n != 0 {
		t.Errorf("AppendICRC and CheckICRC allocate %v times; want 0", n)
	}
}

func BenchmarkICRC(b *testing.B) {
	for _, version := range []int{4, 6} {
		for _, payload := range []int{24, 48, 1024, 4096} {
			p := make([]byte, minSize4+payload)
			p[0], p[9] = 0x45, protoUDP
			if version == 6 {
				p = make([]byte, minSize6+payload)
				p[0], p[6] = 0x60, protoUDP
			}
			b.Run("ipv"+strconv.Itoa(version)+"/payload="+strconv.Itoa(payload), func(b *testing.B) {
				b.SetBytes(int64(len(p)))
				for b.Loop() {
					ICRC(p)
				}
			})
		}
	}
}

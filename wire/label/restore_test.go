package label

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"
)

// packets draws IP packets of every kind that a fabric sees, some with link
// padding after them.
func packets() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		data := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "data")
		kind := rapid.SampledFrom([]struct {
			proto byte
			head  []byte
		}{
			{6, tcpBytes},
			{17, roceBytes},
			{17, []byte{0x80, 0, 0, 53, 0, 8, 0, 0}},
			{1, []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0}},
			{58, []byte{128, 0, 0, 0, 0, 1, 0, 1}},
			{47, nil},
			{rapid.Byte().Filter(func(p byte) bool { return p != 253 && p != 0 }).Draw(t, "proto"), nil},
		}).Draw(t, "kind")
		body := append(append([]byte{}, kind.head...), data...)
		var p []byte
		if rapid.Bool().Draw(t, "IPv6") {
			p = drawIP6(t, kind.proto, body)
		} else {
			options := bytes.Join(rapid.SliceOfN(rapid.SampledFrom([][]byte{
				{1, 1, 1, 1},    // no operation
				{148, 4, 0, 0},  // router alert
				{7, 3, 4, 1},    // record route, full
				{136, 4, 9, 87}, // stream id
			}), 0, 10).Draw(t, "options"), nil)
			fragment := rapid.SampledFrom([]uint16{0, 0x4000, 0x2000, 0x2010, 0x0010}).Draw(t, "fragment")
			p = ip4(kind.proto, fragment, options, body)
			binary.BigEndian.PutUint16(p[4:], rapid.Uint16().Draw(t, "id"))
			p[8] = rapid.ByteRange(40, 255).Draw(t, "TTL")
			seal4(p)
		}
		if rapid.Bool().Draw(t, "padded") {
			p = append(p, make([]byte, max(0, 46-len(p)))...)
			p = append(p, rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "trailer")...)
		}
		return p
	})
}

// drawIP6 puts a chain of extension headers before the body.
func drawIP6(t *rapid.T, proto byte, body []byte) []byte {
	next := proto
	if rapid.Bool().Draw(t, "fragment header") {
		body = append([]byte{next, 0, 0x01, 0x01, 0, 0, 0, 9}, body...)
		next = 44
	}
	if rapid.Bool().Draw(t, "destination options") {
		body = append([]byte{next, 0, 1, 4, 0, 0, 0, 0}, body...)
		next = 60
	}
	if rapid.Bool().Draw(t, "hop-by-hop options") {
		body = append([]byte{next, 0, 5, 2, 0, 0, 1, 0}, body...)
		next = 0
	}
	p := ip6(next, body)
	p[7] = rapid.ByteRange(40, 255).Draw(t, "hop limit")
	return p
}

func drawItem(t *rapid.T) (it Item) {
	_, _ = it.Parse(rapid.SliceOfN(rapid.Byte(), ItemSize, ItemSize).Draw(t, "item"))
	return it
}

// checkIP lets gopacket judge a labelled packet.
func checkIP(pkt []byte) error {
	if pkt[0]>>4 == 6 {
		var ip layers.IPv6
		if err := ip.DecodeFromBytes(pkt, gopacket.NilDecodeFeedback); err != nil {
			return err
		}
		if ip.NextHeader != 253 || int(ip.Length) != len(ip.Payload) {
			return fmt.Errorf("next header %v, length %d of %d bytes", ip.NextHeader, ip.Length, len(ip.Payload))
		}
		return nil
	}
	var ip layers.IPv4
	if err := ip.DecodeFromBytes(pkt, gopacket.NilDecodeFeedback); err != nil {
		return err
	}
	if ip.Protocol != 253 || int(ip.Length) != len(ip.Contents)+len(ip.Payload) {
		return fmt.Errorf("protocol %v, length %d of %d bytes", ip.Protocol, ip.Length, len(ip.Contents)+len(ip.Payload))
	}
	if err, sum := ip.VerifyChecksum(); err != nil || !sum.Valid {
		return fmt.Errorf("checksum %#04x, want %#04x: %v", sum.Actual, sum.Correct, err)
	}
	return nil
}

// TestStripRestores labels 10,000 packets on the path through 1 to MaxHop
// switches that each decrement the TTL. What comes out must be the packet that
// crossed as many switches without labels, and every packet on the path must be
// what the slow reference writes.
func TestStripRestores(t *testing.T) {
	rounds := 100 // of 100 packets each
	if testing.Short() {
		rounds = 5
	}
	for range rounds {
		rapid.Check(t, func(t *rapid.T) {
			plain := packets().Draw(t, "packet")
			how := Params{
				MaxHop:   rapid.ByteRange(1, MaxMaxHop).Draw(t, "MaxHop"),
				Specific: rapid.Bool().Draw(t, "specific"),
			}
			if rapid.IntRange(0, 3).Draw(t, "default") > 0 {
				how.MaxHop = 0
			}
			most := int(how.MaxHop)
			if most == 0 {
				most = DefaultMaxHop
			}
			hops := rapid.IntRange(1, most).Draw(t, "hops")
			pkt := spare(plain, FirstGrowth+(hops-1)*ItemSize)
			var items []Item
			for hop := range hops {
				it := drawItem(t)
				items = append(items, it)
				var err error
				if pkt, err = Push(pkt, &it, how); err != nil {
					t.Fatalf("Push %d of %d on %x: %v", hop+1, hops, plain, err)
				}
				if want := rebuilt(plain, items, byte(most), how.Specific); !bytes.Equal(pkt, want) {
					t.Fatalf("Push %d = %x; want %x", hop+1, pkt, want)
				}
				if err := checkIP(pkt); err != nil {
					t.Fatalf("gopacket rejects the labelled packet %x: %v", pkt, err)
				}
				pkt, plain = routed(pkt), routed(plain)
			}
			k, err := Inspect(pkt)
			if err != nil || k.Len() != hops || k.Specific() != how.Specific || int(k.MaxHop) != most {
				t.Fatalf("Inspect(%x) = %+v, %v; want %d labels of at most %d, specific %v", pkt, k.Option, err, hops, most, how.Specific)
			}
			for i, want := range items {
				if got := k.Item(hops - 1 - i); got != want {
					t.Fatalf("label of switch %d is %+v; want %+v", i, got, want)
				}
			}
			if got, err := Strip(pkt); err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("Strip = %x, %v; want %x", got, err, plain)
			}
		})
	}
}

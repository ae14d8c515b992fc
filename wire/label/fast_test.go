package label

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/checksum"
)

// TestFastPushEqualsPushAny: the fast path of plain packets makes the same of every packet as
// pushAny, and refuses the same.
func TestFastPushEqualsPushAny(t *testing.T) {
	taken := 0
	rapid.Check(t, func(rt *rapid.T) {
		var (
			b     []byte
			space int
			how   Params
		)
		// Half of the packets take the fast path by construction; of the others
		// chance leads only a few there.
		plain := rapid.Bool().Draw(rt, "plain")
		if plain {
			b, space, how = drawPlain(rt)
		} else {
			b, space, how = drawAny(rt)
		}
		item := Item{Switch: 7, Egress: model.PortID(rapid.Uint16().Draw(rt, "port")), Latency: -1, EnqueueDepth: 1 << 40, Time: 99}
		own := func() []byte { return append(make([]byte, 0, len(b)+space), b...) }
		got, bad := Push(own(), &item, how)
		want, err := pushAny(own(), &item, how)
		if bad != err || !bytes.Equal(got, want) {
			rt.Fatalf("Push of %x with %+v = %x, %v; want %x, %v", b, how, got, bad, want, err)
		}
		if plain {
			if err != nil {
				rt.Fatalf("a plain packet %x with %+v was refused: %v", b, how, err)
			}
			taken++
		}
	})
	if taken == 0 {
		t.Error("no packet was plain; the test tests nothing")
	}
}

// drawPlain draws a packet that takes its first label on the fast path: IPv4 without
// options, unlabelled, whole, with space for the label.
func drawPlain(rt *rapid.T) (b []byte, space int, how Params) {
	b = rapid.SliceOfN(rapid.Byte(), 20, 120).Draw(rt, "bytes")
	b[0] = 0x45
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	if b[9] == byte(Proto) {
		b[9]++
	}
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint16(b[10:], checksum.Of(b[:20]))
	return b, rapid.SampledFrom([]int{FirstGrowth, 64}).Draw(rt, "space"), Params{
		MaxHop:   rapid.SampledFrom([]uint8{5, 0, 1, 32}).Draw(rt, "hops"),
		MTU:      rapid.SampledFrom([]int{1500, 0, math.MaxInt}).Draw(rt, "mtu"),
		Specific: rapid.Bool().Draw(rt, "specific"),
	}
}

// drawAny draws bytes that look more or less like a packet.
func drawAny(rt *rapid.T) (b []byte, space int, how Params) {
	b = rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 20, 120), rapid.SliceOfN(rapid.Byte(), 40, 120), rapid.SliceOf(rapid.Byte())).Draw(rt, "bytes")
	if len(b) >= 20 && rapid.IntRange(0, 9).Draw(rt, "ip") < 9 {
		b[0] = rapid.SampledFrom([]byte{0x45, 0x45, 0x45, 0x46, 0x60, 0x44}).Draw(rt, "version")
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)+rapid.SampledFrom([]int{0, 0, 0, -3, 1}).Draw(rt, "length")))
		if rapid.IntRange(0, 9).Draw(rt, "labelled") == 9 {
			b[9] = byte(Proto)
		}
		if rapid.IntRange(0, 9).Draw(rt, "sum") < 9 {
			b[10], b[11] = 0, 0
			binary.BigEndian.PutUint16(b[10:], checksum.Of(b[:20]))
		}
		if rapid.IntRange(0, 30).Draw(rt, "odd sum") == 30 {
			b[10], b[11] = 0xff, 0xff
		}
	}
	return b, rapid.SampledFrom([]int{36, 64, 31, 0}).Draw(rt, "space"), Params{
		MaxHop:   rapid.SampledFrom([]uint8{5, 0, 1, 32, 33, 255}).Draw(rt, "hops"),
		MTU:      rapid.SampledFrom([]int{1500, 0, 100, 56, math.MaxInt}).Draw(rt, "mtu"),
		Specific: rapid.Bool().Draw(rt, "specific"),
	}
}

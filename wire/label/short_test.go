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

// TestShortPushIsPush: the short way of plain packets makes of every packet what
// the long way makes of it, and refuses what it refuses.
func TestShortPushIsPush(t *testing.T) {
	taken := 0
	rapid.Check(t, func(rt *rapid.T) {
		b := rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 20, 120), rapid.SliceOfN(rapid.Byte(), 40, 120), rapid.SliceOf(rapid.Byte())).Draw(rt, "bytes")
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
		room := rapid.SampledFrom([]int{36, 64, 31, 0}).Draw(rt, "room")
		how := Params{
			MaxHop:   rapid.SampledFrom([]uint8{5, 0, 1, 32, 33, 255}).Draw(rt, "hops"),
			MTU:      rapid.SampledFrom([]int{1500, 0, 100, 56, math.MaxInt}).Draw(rt, "mtu"),
			Specific: rapid.Bool().Draw(rt, "specific"),
		}
		item := Item{Switch: 7, Egress: model.PortID(rapid.Uint16().Draw(rt, "port")), Latency: -1, EnqueueDepth: 1 << 40, Time: 99}
		own := func() []byte { return append(make([]byte, 0, len(b)+room), b...) }
		got, bad := Push(own(), &item, how)
		want, err := pushAny(own(), &item, how)
		if bad != err || !bytes.Equal(got, want) {
			rt.Fatalf("Push of %x with %+v = %x, %v; want %x, %v", b, how, got, bad, want, err)
		}
		if err == nil && b[0] == 0x45 && b[9] != byte(Proto) {
			taken++
		}
	})
	if taken < 5 {
		t.Errorf("%d packets were plain; the test tests nothing", taken)
	}
}

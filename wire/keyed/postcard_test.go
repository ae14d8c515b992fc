package keyed

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

// TestPostcardsAreReadBack: a postcard is read back within the precision of its
// numbers, by a reader whose clock is weeks later.
func TestPostcardsAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Postcard{
			Switch:  model.NodeID(rapid.Uint32Range(0, MaxPostcardSwitch).Draw(t, "switch")),
			Latency: time.Duration(rapid.Int64Range(0, 200e9).Draw(t, "latency")), Queue: model.Bytes(rapid.Int64Range(0, 200e9).Draw(t, "queue")),
			Time: model.Time(rapid.Int64Range(1<<40, 1<<62).Draw(t, "time")), Packet: uint8(rapid.IntRange(0, 15).Draw(t, "packet")),
		}
		words := want.Words()
		for i, w := range words {
			if w == math.MaxUint32 || PostcardSwitch(w) != want.Switch {
				t.Fatalf("part %d of %+v is %#x; want its switch, and no blank", i, want, w)
			}
		}
		now := want.Time.Add(time.Duration(rapid.Int64Range(int64(-time.Hour), int64(30*24*time.Hour)).Draw(t, "age")))
		got, ok := ParsePostcard(words, now)
		near := func(a, b int64) bool { return math.Abs(float64(a-b)) <= float64(b)/255 }
		if !ok || got.Switch != want.Switch || got.Packet != want.Packet || !near(int64(got.Latency), int64(want.Latency)) ||
			!near(int64(got.Queue), int64(want.Queue)) || want.Time.Sub(got.Time) < 0 || want.Time.Sub(got.Time) >= TimeUnit {
			t.Fatalf("ParsePostcard(%x) = %+v, %v; want %+v", words, got, ok, want)
		}
	})
}

// TestFloatsAreMonotonic compares every code with the next, and rounds to it.
func TestFloatsAreMonotonic(t *testing.T) {
	for c := range uint32(maxFloat) {
		a, b := decodeFloat(c), decodeFloat(c+1)
		if a >= b || encodeFloat(a) != c {
			t.Fatalf("code %d is %d, and %d is %d; encoded %d", c, a, c+1, b, encodeFloat(a))
		}
		if half := a + (b-a)/2; b-a > 1 && (encodeFloat(half-1) != c || encodeFloat(half+1) != c+1) {
			t.Fatalf("numbers around %d, halfway between codes %d and %d, are not rounded to the nearest", half, c, c+1)
		}
	}
	if got := decodeFloat(encodeFloat(math.MaxUint64)); got != decodeFloat(maxFloat) {
		t.Errorf("the largest number is read as %d; want the cap", got)
	}
}

func TestPostcardsOfTwoSwitchesOrPackets(t *testing.T) {
	one, other, packet := Postcard{Switch: 7, Packet: 3}, Postcard{Switch: 8, Packet: 3}, Postcard{Switch: 7, Packet: 4}
	for name, second := range map[string]Postcard{"switches": other, "packets": packet} {
		for part := range Parts {
			w := one.Words()
			w[part] = second.Words()[part]
			if _, ok := ParsePostcard(w, 0); ok && (name == "switches" || Part(part) <= QueuePart) {
				t.Errorf("part %d of two %s is taken for one postcard", part, name)
			}
		}
	}
}

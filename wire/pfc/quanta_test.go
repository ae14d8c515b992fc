package pfc

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

func TestDuration(t *testing.T) {
	for name, tc := range map[string]struct {
		q    Quanta
		r    model.Rate
		want time.Duration
	}{
		"resume":           {0, 100 * model.Gbps, 0},
		"one at 100G":      {1, 100 * model.Gbps, 5},           // 5.12 ns
		"longest at 100G":  {0xffff, 100 * model.Gbps, 335539}, // 335,539.2 ns
		"longest at 40G":   {0xffff, 40 * model.Gbps, 838848},
		"longest at 10M":   {0xffff, 10 * model.Mbps, 3355392 * time.Microsecond},
		"one at 800G":      {1, 800 * model.Gbps, 0}, // 0.64 ns
		"hundred at 800 G": {100, 800 * model.Gbps, 64},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.q.Duration(tc.r); got != tc.want {
				t.Errorf("Quanta(%d).Duration(%v) = %v; want %v", tc.q, tc.r, got, tc.want)
			}
		})
	}
}

func TestQuantaOf(t *testing.T) {
	for name, tc := range map[string]struct {
		d    time.Duration
		r    model.Rate
		want Quanta
	}{
		"nothing":          {0, 100 * model.Gbps, 0},
		"negative":         {-1, 100 * model.Gbps, 0},
		"a part rounds up": {1, 100 * model.Gbps, 1},
		"a bit rounds up":  {1, 1, 1},
		"exact":            {64, 800 * model.Gbps, 100},
		"just above":       {65, 800 * model.Gbps, 102},
		"too long":         {time.Second, 100 * model.Gbps, MaxQuanta},
		"past 128 bits":    {1<<63 - 1, 1<<63 - 1, MaxQuanta},
	} {
		t.Run(name, func(t *testing.T) {
			if got := QuantaOf(tc.d, tc.r); got != tc.want {
				t.Errorf("QuantaOf(%v, %v) = %d; want %d", tc.d, tc.r, got, tc.want)
			}
		})
	}
}

// slowQuanta is the definition in numbers of any size.
func slowQuanta(d time.Duration, r model.Rate) Quanta {
	bits := new(big.Int).Mul(big.NewInt(int64(d)), big.NewInt(int64(r)))
	unit := big.NewInt(512 * 1e9)
	q, rest := new(big.Int).QuoRem(bits, unit, new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if q.Cmp(big.NewInt(0xffff)) > 0 {
		return 0xffff
	}
	return Quanta(q.Int64())
}

func TestQuantaEqualsSlowReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Min(0).Draw(t, "duration"))
		r := model.Rate(rapid.Int64Range(1, int64(2*model.Tbps)).Draw(t, "rate"))
		if got, want := QuantaOf(d, r), slowQuanta(d, r); got != want {
			t.Fatalf("QuantaOf(%d ns, %d b/s) = %d; want %d", d, r, got, want)
		}
	})
}

func TestDurationAndQuantaOfAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := Quanta(rapid.Uint16().Draw(t, "quanta"))
		r := model.Rate(rapid.Int64Range(1, int64(512*model.Gbps)).Draw(t, "rate"))
		if got := QuantaOf(q.Duration(r), r); got != q {
			t.Fatalf("QuantaOf(Quanta(%d).Duration(%d b/s)) = %d; want %d", q, r, got, q)
		}
	})
}

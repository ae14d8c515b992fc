package roce

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPSN(t *testing.T) {
	for _, tc := range []struct {
		p      PSN
		n      int
		sum    PSN
		q      PSN
		sub    int
		before bool
	}{
		{p: 5, n: 1, sum: 6, q: 4, sub: 1},
		{p: 0xffffff, n: 1, sum: 0, q: 0, sub: -1, before: true},
		{p: 0, n: -1, sum: 0xffffff, q: 0xffffff, sub: 1},
		{p: 7, n: 1 << 24, sum: 7, q: 7, sub: 0},
		{p: 0x800000, n: -0x800000, sum: 0, q: 0, sub: -1 << 23, before: true},
		{p: 0x7fffff, n: 1, sum: 0x800000, q: 0, sub: 1<<23 - 1},
	} {
		if got := tc.p.Add(tc.n); got != tc.sum {
			t.Errorf("PSN(%#x).Add(%d) = %#x; want %#x", tc.p, tc.n, got, tc.sum)
		}
		if got := tc.p.Sub(tc.q); got != tc.sub {
			t.Errorf("PSN(%#x).Sub(%#x) = %d; want %d", tc.p, tc.q, got, tc.sub)
		}
		if got := tc.p.Before(tc.q); got != tc.before {
			t.Errorf("PSN(%#x).Before(%#x) = %v; want %v", tc.p, tc.q, got, tc.before)
		}
	}
}

func TestPSNSubUndoesAdd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := PSN(rapid.Uint32().Draw(t, "psn")) // bits above 24 must not matter
		n := rapid.IntRange(-1<<23, 1<<23-1).Draw(t, "n")
		q := p.Add(n)
		if got := q.Sub(p); got != n || q>>24 != 0 || q.Before(p) != (n < 0) {
			t.Fatalf("PSN(%#x).Add(%d) = %#x, whose Sub is %d, Before %v; want %d, %v", p, n, q, got, q.Before(p), n, n < 0)
		}
	})
}

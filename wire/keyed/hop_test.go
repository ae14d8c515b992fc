package keyed

import "testing"

func TestHopIndex(t *testing.T) {
	for _, tc := range []struct {
		ttl, hop uint8
		ok       bool
	}{
		{63, 0, true},
		{59, 4, true},
		{49, 14, true},
		{48, 15, false},
		{0, 63, false},
		{127, 0, true},
		{120, 7, true},
		{64, 63, false},
		{254, 0, true},
		{250, 4, true},
		{255, 0, false},
	} {
		if hop, ok := HopIndex(tc.ttl); ok != tc.ok || hop != tc.hop {
			t.Errorf("HopIndex(%d) = %d, %v; want %d, %v", tc.ttl, hop, ok, tc.hop, tc.ok)
		}
	}
}

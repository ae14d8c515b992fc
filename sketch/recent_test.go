package sketch

import (
	"math/rand/v2"
	"testing"
)

// TestBypassOfRecentKeepsCounts counts packets of flows in random order, for which the
// recent flows are bypassed, and then of a few flows, for which they are not, and
// compares every cell with a plain sum.
func TestBypassOfRecentKeepsCounts(t *testing.T) {
	const flows = 20_000
	g := Geometry{FilterHashes: 16, FilterBits: flows * 64, Tables: 3, TableCells: flows / 2}
	s, err := NewSet[Key4](g, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]wide, g.Cells())
	r := rand.New(rand.NewPCG(1, 2))
	bypassed, recent := 0, 0
	for i := range 400_000 {
		n := r.Uint64N(flows)
		if i > 200_000 {
			n %= 100
		}
		k, size := Key4{n, 6 << 24}, 64+r.Uint32N(1400)
		before := s.hits
		h, isNew := s.AddPacket(&k, size)
		if isNew {
			s.InsertFlow(&k, h, 1, 2)
		}
		if s.bypass > 0 {
			bypassed++
		}
		if s.hits > before {
			recent++
		}
		h = HashOf(s.Family(), &k)
		for t := range int(g.Tables) {
			c := &want[s.Family().Cell(h, t)]
			c.packets++
			c.bytes += uint64(size)
		}
	}
	if bypassed < 100_000 || recent < 50_000 {
		t.Errorf("%d packets bypassed, %d of recent flows; want 100,000 and 50,000 or more", bypassed, recent)
	}
	for i := range want {
		if c := s.Cell(uint32(i)); c.Packets != want[i].packets || c.Bytes != want[i].bytes {
			t.Fatalf("cell %d: %d packets, %d bytes; want %d, %d", i, c.Packets, c.Bytes, want[i].packets, want[i].bytes)
		}
	}
}

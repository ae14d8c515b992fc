package sketch

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

var small = Geometry{FilterHashes: 20, FilterBits: 1 << 14, Tables: 3, TableCells: 150}

// reference is the obvious implementation of a set: which flows were inserted, and what
// each of them counted.
type reference struct {
	flows map[Key4]Cell[Key4]
}

// TestSetEqualsReference feeds packets to a set and to a reference, and sums up the
// reference's flows cell by cell: hashes say where, everything else is checked.
func TestSetEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := small
		g.Tables = uint8(rapid.IntRange(1, MaxTables).Draw(t, "tables"))
		g.FilterHashes = uint8(GroupBits * rapid.IntRange(1, 8).Draw(t, "hashes"))
		if rapid.Bool().Draw(t, "tight") {
			g.FilterBits = 128 // forces false positives
		}
		s, err := NewSet[Key4](g, rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "packets"), 0))
		tw := reference{map[Key4]Cell[Key4]{}}
		want := make([]Cell[Key4], g.Cells())
		var packets, bytes uint64
		for range rapid.IntRange(0, 300).Draw(t, "count") {
			k := Key4{r.Uint64N(40), 6 << 24}
			in, out, size := model.PortID(r.Uint64N(8)), model.PortID(r.Uint64N(8)), uint32(r.Uint64N(9000))
			if r.Uint64N(10) == 0 {
				size += maxHotSize
			}
			// Half of the packets have a number, of which some share a slot.
			id := uint32(k[0]%8+(k[0]+1)*recentSlots) * uint32(r.Uint64N(2))
			isNew := false
			if !s.AddRecent(id, size) {
				var h Hash
				if h, isNew = s.AddPacket(&k, size); isNew {
					s.InsertFlow(&k, h, in, out)
				} else if id != 0 {
					s.RememberID(id, &k)
				}
			}
			if _, known := tw.flows[k]; known && isNew {
				t.Fatalf("flow %x is new again", k)
			}
			if isNew {
				tw.flows[k] = Cell[Key4]{Key: k, In: in, Out: out, Flows: 1}
			}
			packets++
			bytes += uint64(size)
			for table := range int(g.Tables) {
				c := &want[s.Family().Cell(HashOf(s.Family(), &k), table)]
				c.Packets++
				c.Bytes += uint64(size)
				if isNew {
					c.Flows++
					c.In ^= in
					c.Out ^= out
					c.Key[0] ^= k[0]
					c.Key[1] ^= k[1]
				}
			}
		}
		if got := s.AppendCells(nil); !slices.Equal(got, want) {
			t.Fatalf("cells differ from the reference's: %v; want %v", got, want)
		}
		if p, b := s.Totals(); p != packets || b != bytes {
			t.Fatalf("Added() = %d, %d; want %d, %d", p, b, packets, bytes)
		}
		if int(s.Inserted()) != len(tw.flows) {
			t.Fatalf("Inserted() = %d; want %d", s.Inserted(), len(tw.flows))
		}
		s.ClearFilter()
		s.ClearCells(0, uint32(g.Cells()))
		if got := s.AppendCells(nil); slices.ContainsFunc(got, func(c Cell[Key4]) bool { return !c.Empty() }) || s.Inserted() != 0 {
			t.Fatalf("cells after clearing: %v; want empty ones", got)
		}
		if p, b := s.Totals(); p != 0 || b != 0 {
			t.Fatalf("Added() after clearing = %d, %d; want 0, 0", p, b)
		}
	})
}

// TestClearedSetKnowsNothing fills a set twice: flows of the first time are new
// the second time, and nothing of their counts is left.
func TestClearedSetKnowsNothing(t *testing.T) {
	s, err := NewSet[Key4](small, 1)
	if err != nil {
		t.Fatal(err)
	}
	k := Key4{1, 2}
	for round := range 2 {
		for packet := range 5 {
			h, isNew := s.AddPacket(&k, 100)
			if isNew != (packet == 0) {
				t.Fatalf("round %d, packet %d: new %v; want %v", round, packet, isNew, packet == 0)
			}
			if isNew {
				s.InsertFlow(&k, h, 1, 2)
			}
		}
		at := s.Family().Cell(HashOf(s.Family(), &k), 0)
		if c := s.Cell(at); c.Packets != 5 || c.Bytes != 500 || c.Flows != 1 {
			t.Errorf("round %d: cell %+v; want 5 packets, 500 bytes, 1 flow", round, c)
		}
		s.AddPacket(&k, 100) // not yet in the cells
		s.ClearCells(0, uint32(small.Cells()))
		s.ClearFilter()
		if c := s.Cell(at); !c.Empty() || c.Packets != 0 {
			t.Errorf("round %d: cell %+v after clearing; want an empty one", round, c)
		}
	}
}

// TestHotWordsSpill counts more in one cell than a hot word holds.
func TestHotWordsSpill(t *testing.T) {
	s, err := NewSet[Key4](Geometry{4, 64, 1, 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	k := Key4{1, 2}
	const packets = 5000
	for range packets {
		s.AddPacket(&k, maxHotSize)
	}
	if c := s.Cell(0); c.Packets != packets || c.Bytes != packets*maxHotSize {
		t.Errorf("cell after %d packets of %d bytes: %d packets, %d bytes", packets, maxHotSize, c.Packets, c.Bytes)
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	s4, _ := NewSet[Key4](small, 1)
	s6, _ := NewSet[Key6](small, 1)
	i := uint64(0)
	if n := testing.AllocsPerRun(1000, func() {
		i++
		k4, k6 := Key4{i}, Key6{i}
		if h, isNew := s4.AddPacket(&k4, 100); isNew {
			s4.InsertFlow(&k4, h, 1, 2)
		}
		if h, isNew := s6.AddPacket(&k6, 100); isNew {
			s6.InsertFlow(&k6, h, 1, 2)
		}
	}); n != 0 {
		t.Errorf("adding a packet of a new flow allocates %v times", n)
	}
}

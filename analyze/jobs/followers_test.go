package jobs

import (
	"slices"
	"testing"
)

// TestFollowers: a ring is whole though one of its flows is counted with packets that are
// sent again, other ones in every step; what else its hosts send is not of it.
func TestFollowers(t *testing.T) {
	var r recording
	resent := []uint64{3, 8, 4, 9, 2, 7, 3, 9, 5, 8, 2, 6}
	for i, n := range resent {
		at := 20 * i
		r.send(0, 1, 7, at, 6, 3_000_000)
		r.send(1, 2, 7, at, 6, 3_000_000)
		r.send(2, 3, 7, at, 6, 3_000_000)
		r.send(3, 4, 7, at, 6, 3_000_000)
		r.send(4, 5, 7, at, 6, 3_000_000)
		r.send(5, 0, 7, at, 6, n*1_000_000)
	}
	r.send(1, 7, 8, 0, 20*len(resent), 60_000_000) // storage: it is never silent
	r.send(7, 1, 8, 0, 20*len(resent), 60_000_000)
	r.send(2, 6, 9, 43, 4, 30_000_000) // once, in both directions
	r.send(6, 2, 9, 43, 4, 30_000_000)
	list := NewActivity(r.list).Infer()
	if len(list) != 1 || !slices.Equal(list[0].Hosts, []string{"h0", "h1", "h2", "h3", "h4", "h5"}) || list[0].Pattern != Ring {
		t.Fatalf("%d jobs: %+v; want the ring of h0 to h5 alone", len(list), list)
	}
	if n := len(list[0].Steps); n != len(resent)-2 {
		t.Errorf("%d steps; want %d: all but the first and the last", n, len(resent)-2)
	}
}

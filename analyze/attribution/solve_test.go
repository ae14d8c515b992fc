package attribution

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestSolveIsTheRecursion: what a slice is due to is what plain recursion over
// its edges finds, where no path returns to a pause; and all shares sum to 1.
func TestSolveIsTheRecursion(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		ev, v := anyWorld(t)
		e := solved(ev, v)
		for i := range e.states {
			sum := 0.0
			for _, r := range e.states[i].shares {
				sum += r.share
				if r.sure > r.share+1e-9 || r.sure < 0 {
					t.Fatalf("certain %v of a share of %v", r.sure, r.share)
				}
			}
			if math.Abs(sum-1) > 1e-6 {
				t.Fatalf("shares of %+v sum to %v", e.states[i].stateKey, sum)
			}
			want := map[int32]float64{}
			if e.components[e.states[i].order].shortened || !e.recurse(int32(i), 1, map[[2]int32]bool{}, want) {
				continue
			}
			compared++
			for _, r := range e.states[i].shares {
				if math.Abs(want[r.root]-r.share) > 1e-6 {
					t.Fatalf("%+v is due to %+v by %v, want %v", e.states[i].stateKey, e.roots[r.root], r.share, want[r.root])
				}
			}
		}
	})
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// solved returns an engine after its recursion.
func solved(ev *Evidence, v *Victim) *engine {
	e := newEngine(ev, v)
	visits, late := e.residence()
	e.starts(visits)
	e.follow(late)
	e.solve()
	return e
}

// recurse adds the roots of a slice; false if a path returns, or there are too
// many of them.
func (e *engine) recurse(s int32, share float64, on map[[2]int32]bool, roots map[int32]float64) bool {
	pause := [2]int32{e.states[s].queue, e.states[s].pause}
	if on[pause] || len(on) > 12 {
		return false
	}
	on[pause] = true
	defer delete(on, pause)
	for _, n := range e.states[s].edges {
		if n.root >= 0 {
			roots[n.root] += share * n.share
		} else if !e.recurse(n.state, share*n.share, on, roots) {
			return false
		}
	}
	return true
}

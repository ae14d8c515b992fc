package collectives

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/wire/nccl"
)

const ms = time.Millisecond

// run is a job that is recorded: ranks compute, then enter the collectives of a step.
type run struct {
	ranks  int
	bytes  []uint64              // of the collectives of a step
	extra  map[int]time.Duration // that a rank computes for longer
	clock  map[int]time.Duration // by which a rank's clock is ahead
	steps  int
	took   time.Duration // transfer of a collective
	lasts  time.Duration // computation before each step
	absent int           // rank that does not enter the last step; -1: none
}

// records plays the run: a collective ends for all ranks when the last one has entered it
// and its data have passed.
func (r *run) records() (list []nccl.Record) {
	now := time.Unix(1000, 0)
	seq := uint64(100)
	for step := range r.steps {
		ready := map[int]time.Time{}
		for rank := range r.ranks {
			ready[rank] = now.Add(r.lasts + r.extra[rank])
		}
		for _, bytes := range r.bytes {
			seq++
			last := now
			missing := step == r.steps-1 && r.absent >= 0
			for rank := range r.ranks {
				if ready[rank].After(last) {
					last = ready[rank]
				}
			}
			end := last.Add(r.took)
			for rank := range r.ranks {
				if missing && rank == r.absent {
					continue
				}
				c := nccl.Record{
					Group: nccl.Group{ID: "0", Title: "default_pg", Size: r.ranks}, Rank: rank, Host: fmt.Sprint("h", rank),
					Op: "all_reduce", Seq: seq, Bytes: bytes, Time: ready[rank].Add(r.clock[rank]), Duration: end.Sub(ready[rank]),
				}
				if missing {
					c.Duration, c.Waiting = 0, true
				}
				list = append(list, c)
			}
			if missing {
				return list
			}
			for rank := range r.ranks {
				ready[rank] = end
			}
			now = end
		}
	}
	return list
}

// TestLateRank draws jobs whose clocks differ by far more than anything is late: the late
// rank is found, with its cost, and a step in parts; without one, none is.
func TestLateRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := run{
			ranks: rapid.IntRange(2, 12).Draw(t, "ranks"), steps: rapid.IntRange(6, 20).Draw(t, "steps"), absent: -1,
			took: time.Duration(rapid.IntRange(1, 20).Draw(t, "took")) * ms, lasts: time.Duration(rapid.IntRange(5, 100).Draw(t, "computes")) * ms,
			extra: map[int]time.Duration{}, clock: map[int]time.Duration{},
		}
		for i := range rapid.IntRange(1, 4).Draw(t, "collectives") {
			r.bytes = append(r.bytes, uint64(1000*(i+1)))
		}
		for rank := range r.ranks {
			r.clock[rank] = time.Duration(rapid.IntRange(-5000, 5000).Draw(t, "clock")) * ms
		}
		late := -1
		var by time.Duration
		if rapid.Bool().Draw(t, "one is late") {
			late = rapid.IntRange(0, r.ranks-1).Draw(t, "late")
			by = (r.lasts + r.took*time.Duration(len(r.bytes))) / 2
			r.extra[late] = by
		}
		groups := Analyze(r.records())
		if len(groups) != 1 {
			t.Fatalf("%d groups", len(groups))
		}
		g := groups[0]
		period := r.lasts + by + r.took*time.Duration(len(r.bytes))
		if g.Steps != r.steps || g.InStep != len(r.bytes) || g.Period != period || g.Transfer != r.took*time.Duration(len(r.bytes)) || g.Waiting != by {
			t.Fatalf("%+v; want %d steps of %v, transfer of %d times %v, waiting %v", g, r.steps, period, len(r.bytes), r.took, by)
		}
		if len(g.Kinds) != len(r.bytes) || g.Name != "default_pg (0)" || len(g.AbsentRanks()) != 0 {
			t.Fatalf("%+v", g)
		}
		found := g.LateRanks()
		switch {
		case late < 0 && len(found) > 0:
			t.Fatalf("late ranks %+v of a job without one", found)
		case late >= 0 && (len(found) != 1 || found[0].Rank != late || found[0].Late != by):
			t.Fatalf("late ranks %+v; want %d by %v", found, late, by)
		}
	})
}

// TestAbsentRank: a rank that does not enter a collective in which the others wait is named,
// though nothing of it is timed.
func TestAbsentRank(t *testing.T) {
	r := run{ranks: 4, steps: 7, bytes: []uint64{8}, took: ms, lasts: 10 * ms, absent: 2}
	g := Analyze(r.records())[0]
	if list := g.AbsentRanks(); len(list) != 1 || list[0].Rank != 2 || list[0].Newest.Seq != 106 {
		t.Errorf("absent %+v; want rank 2 after 106", list)
	}
	if g.Steps != 6 || len(g.LateRanks()) != 0 {
		t.Errorf("%+v; want the 6 whole steps and no late rank", g)
	}
}

// TestWhatSaysNothing: a rank alone, collectives that are not timed, and those that a rank may
// leave early have no times; sequences that do not repeat are no steps.
func TestWhatSaysNothing(t *testing.T) {
	r := run{ranks: 3, steps: 8, bytes: []uint64{8}, took: ms, lasts: 10 * ms, absent: -1, extra: map[int]time.Duration{1: 20 * ms}}
	whole := r.records()
	for what, change := range map[string]func(*nccl.Record) bool{
		"one rank":   func(c *nccl.Record) bool { return c.Rank == 0 },
		"not timed":  func(c *nccl.Record) bool { c.Duration = 0; return true },
		"broadcasts": func(c *nccl.Record) bool { c.Op = "broadcast"; return true },
	} {
		var list []nccl.Record
		for _, c := range whole {
			if change(&c) {
				list = append(list, c)
			}
		}
		if g := Analyze(list)[0]; g.Matched != 0 || g.Steps != 0 || len(g.LateRanks()) != 0 {
			t.Errorf("%s: %+v", what, g)
		}
	}
	for i := range whole {
		whole[i].Bytes = whole[i].Seq
	}
	if g := Analyze(whole)[0]; g.Matched != 8 || g.Steps != 0 {
		t.Errorf("sizes that never repeat: %+v", g)
	}
}

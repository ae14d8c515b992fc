package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// computeNet returns a network of two hosts and one switch.
func computeNet(t interface{ Fatal(args ...any) }) *Network {
	f, err := topo.LeafSpine(1, 1, 2, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	n, err := New(routes, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestComputationsMatchTheReference: a graph of computations of one host runs
// as a list schedule does: whenever a core is free, it takes the one that became
// ready first.
func TestComputationsMatchTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 20).Draw(t, "count")
		list := make([]traffic.Flow, count)
		for i := range list {
			list[i].Compute = time.Duration(rapid.IntRange(0, 50).Draw(t, "work"))
			list[i].Core = uint8(rapid.IntRange(0, 1).Draw(t, "core"))
			list[i].Start = model.Time(rapid.IntRange(0, 100).Draw(t, "start"))
			list[i].Delay = time.Duration(rapid.IntRange(0, 10).Draw(t, "delay"))
			for a := range i {
				if rapid.IntRange(0, 3).Draw(t, "after") == 0 {
					list[i].After = append(list[i].After, a)
				}
			}
		}
		n := computeNet(t)
		if err := n.AddFlows(list); err != nil {
			t.Fatal(err)
		}
		n.Run(engine.Millisecond)
		want := listSchedule(list)
		if got := n.Computations(); len(got) != count || n.Finished != count || len(n.Records()) != 0 {
			t.Fatalf("%d of %d computations, %d finished, %d flows; want all and no flow", len(got), count, n.Finished, len(n.Records()))
		}
		for _, r := range n.Computations() {
			if got := [2]model.Time{r.Start.Model(), r.Finish.Model()}; got != want[r.ID] {
				t.Fatalf("computation %d runs from and to %v; want %v in %+v", r.ID, got, want[r.ID], list)
			}
		}
	})
}

// listSchedule returns start and finish of each computation, nanosecond by
// nanosecond. In one of them, what is ready joins its core's queue first, by
// index; then ends what started first.
func listSchedule(list []traffic.Flow) [][2]model.Time {
	out := make([][2]model.Time, len(list))
	readyAt := make([]model.Time, len(list)) // -1: not yet, -2: queued
	done := make([]bool, len(list))
	waiting := map[uint8][]int{}
	var running []int // in the order they started
	dispatch := func(core uint8, now model.Time) {
		busy := slices.ContainsFunc(running, func(i int) bool { return list[i].Core == core })
		if q := waiting[core]; !busy && len(q) > 0 {
			running, waiting[core] = append(running, q[0]), q[1:]
			out[q[0]] = [2]model.Time{now, now.Add(list[q[0]].Compute)}
		}
	}
	for i := range list {
		readyAt[i] = -1
		if len(list[i].After) == 0 {
			readyAt[i] = list[i].Start
		}
	}
	for now, left := model.Time(0), len(list); left > 0; {
		if i := slices.Index(readyAt, now); i >= 0 {
			readyAt[i] = -2
			waiting[list[i].Core] = append(waiting[list[i].Core], i)
			dispatch(list[i].Core, now)
			continue
		}
		k := slices.IndexFunc(running, func(i int) bool { return out[i][1] == now })
		if k < 0 {
			now++
			continue
		}
		ended := running[k]
		running, done[ended] = slices.Delete(running, k, k+1), true
		left--
		for j := range list {
			if readyAt[j] == -1 && !slices.ContainsFunc(list[j].After, func(a int) bool { return !done[a] }) {
				readyAt[j] = max(list[j].Start, now.Add(list[j].Delay))
			}
		}
		dispatch(list[ended].Core, now)
	}
	return out
}

// TestStraggler: computations and delays that start during the fault take
// longer, others do not.
func TestStraggler(t *testing.T) {
	n := computeNet(t)
	if err := n.Inject(Injection{At: 50, For: 100, Fault: Straggler{Host: 0, Factor: 2, Delay: 5}}); err != nil {
		t.Fatal(err)
	}
	if err := n.AddFlows([]traffic.Flow{
		{Compute: 100},                                          // starts before
		{Compute: 10, Core: 1, Start: 60},                       // during
		{Compute: 10, Core: 2, Start: 200},                      // after
		{Src: 1, Dst: 1, Compute: 10, Start: 60},                // another host
		{Compute: 1, Core: 3, Start: 60},                        // ends at 67
		{Dst: 1, Bytes: 1, After: []int{4}, Delay: 10},          // starts at 67+25
		{Compute: 0, Core: 4, Start: 70},                        // nothing to do
		{Src: 1, Dst: 1, Compute: 7, After: []int{5}, Start: 1}, // when the message has arrived
	}); err != nil {
		t.Fatal(err)
	}
	n.Run(engine.Millisecond)
	got := map[int]string{}
	for _, r := range n.Computations() {
		got[r.ID] = fmt.Sprint((r.Finish - r.Start).Duration())
	}
	for id, want := range map[int]string{0: "100ns", 1: "25ns", 2: "10ns", 3: "10ns", 4: "7ns", 6: "0s", 7: "7ns"} {
		if got[id] != want {
			t.Errorf("computation %d takes %s; want %s", id, got[id], want)
		}
	}
	r := n.Records()
	if len(r) != 1 || r[0].Start != 92*engine.Nanosecond || n.Finished != 8 {
		t.Fatalf("flows %+v, %d finished; want one from 92ns, 8 finished", r, n.Finished)
	}
	for _, c := range n.Computations() {
		if c.ID == 7 && c.Start != r[0].Arrived {
			t.Errorf("computation 7 starts at %v; want %v, when the message arrived", c.Start, r[0].Arrived)
		}
	}
}

func TestComputationErrors(t *testing.T) {
	n := computeNet(t)
	for want, f := range map[string]traffic.Flow{
		"sim: flow 0: node 2 is not a host": {Src: 2, Dst: 2},
	} {
		if err := n.AddFlows([]traffic.Flow{f}); err == nil || err.Error() != want {
			t.Errorf("AddFlows(%+v) = %v; want %s", f, err, want)
		}
	}
	for _, f := range []Straggler{{Host: 0, Factor: 0.5}, {Host: 0, Factor: 1}, {Host: 9, Factor: 2}, {Host: 0, Factor: 2, Delay: -1}} {
		if n.Inject(Injection{Fault: f}) == nil {
			t.Errorf("Inject(%+v) = nil; want an error", f)
		}
	}
}

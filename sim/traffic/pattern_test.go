package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

func TestPermutationIsADerangement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "hosts")
		flows, err := Generate(rapid.Uint64().Draw(t, "seed"), hostsOf(n), DefaultPermutation())
		if err != nil || len(flows) != n {
			t.Fatalf("Generate = %d flows, %v; want %d", len(flows), err, n)
		}
		sends, receives := make([]int, n), make([]int, n)
		for _, f := range flows {
			sends[f.Src]++
			receives[f.Dst]++
			if f.Src == f.Dst || f.Bytes != 10*model.MB {
				t.Fatalf("flow %+v; want 10 MB to another host", f)
			}
		}
		for i := range n {
			if sends[i] != 1 || receives[i] != 1 {
				t.Fatalf("host %d sends %d flows and receives %d; want one each", i, sends[i], receives[i])
			}
		}
	})
}

// TestPermutationsAreEquallyLikely counts the nine derangements of four.
func TestPermutationsAreEquallyLikely(t *testing.T) {
	const n = 9000
	count := map[string]int{}
	for seed := range uint64(n) {
		flows, err := Generate(seed, hostsOf(4), DefaultPermutation())
		if err != nil {
			t.Fatal(err)
		}
		key := ""
		for _, f := range flows {
			key += fmt.Sprint(f.Dst)
		}
		count[key]++
	}
	for key, got := range count {
		if math.Abs(float64(got)-n/9) > 5*math.Sqrt(n/9) {
			t.Errorf("derangement %s was drawn %d times; want %d ± %.0f", key, got, n/9, 5*math.Sqrt(n/9))
		}
	}
	if len(count) != 9 {
		t.Errorf("%d derangements were drawn: %v; want 9", len(count), count)
	}
}

func TestPermutationUntilStop(t *testing.T) {
	g := Permutation{Class: DefaultClass(), Hosts: []model.NodeID{1, 0}, Start: 5, Stop: 9}
	want := []Flow{
		{Src: 1, Dst: 0, Start: 5, Stop: 9, Priority: 3},
		{Src: 0, Dst: 1, Start: 5, Stop: 9, Priority: 3},
	}
	if d := cmp.Diff(want, generate(t, 1, g)); d != "" {
		t.Errorf("flows differ (-want +got):\n%s", d)
	}
}

func TestIncast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "hosts")
		g := DefaultIncast()
		g.Fanin = rapid.IntRange(0, n-1).Draw(t, "fan-in")
		g.Rounds = rapid.IntRange(1, 5).Draw(t, "rounds")
		g.Jitter = time.Duration(rapid.IntRange(0, 1000).Draw(t, "jitter"))
		if rapid.Bool().Draw(t, "one receiver") {
			g.Receivers = []model.NodeID{1}
		}
		flows, err := Generate(rapid.Uint64().Draw(t, "seed"), hostsOf(n), g)
		if err != nil {
			t.Fatal(err)
		}
		fanin := g.Fanin
		if fanin == 0 {
			fanin = n - 1
		}
		receiver := map[int]model.NodeID{}
		senders := map[int]map[model.NodeID]bool{}
		for _, f := range flows {
			if senders[f.Group] == nil {
				senders[f.Group], receiver[f.Group] = map[model.NodeID]bool{}, f.Dst
			}
			senders[f.Group][f.Src] = true
			round := model.Time(f.Group-1) * model.Time(g.Period)
			if f.Dst != receiver[f.Group] || len(g.Receivers) == 1 && f.Dst != 1 {
				t.Fatalf("round %d goes to %d and %d; want one receiver of %v", f.Group, f.Dst, receiver[f.Group], g.Receivers)
			}
			if f.Start < round || f.Start > round.Add(max(0, g.Jitter-1)) {
				t.Fatalf("flow of round %d starts at %v; want at most %v after %v", f.Group, f.Start, g.Jitter, round)
			}
		}
		for group := 1; group <= g.Rounds; group++ {
			if len(senders[group]) != fanin {
				t.Fatalf("round %d has senders %v; want %d different ones", group, senders[group], fanin)
			}
		}
		if len(flows) != g.Rounds*fanin {
			t.Fatalf("%d flows; want %d rounds of %d", len(flows), g.Rounds, fanin)
		}
	})
}

func TestIncastOfEverySenderGiven(t *testing.T) {
	g := DefaultIncast()
	g.Senders, g.Receivers, g.Fanin = []model.NodeID{3, 4, 5}, []model.NodeID{9}, 0
	flows := generate(t, 1, g)
	var from []model.NodeID
	for _, f := range flows {
		from = append(from, f.Src)
	}
	slices.Sort(from)
	if !slices.Equal(from, g.Senders) {
		t.Errorf("senders are %v; want %v", from, g.Senders)
	}
}

// TestDrawIsFair counts the twelve draws of two of four, a fifth barred.
func TestDrawIsFair(t *testing.T) {
	const n = 12_000
	e := &env{rng: rand.New(rand.NewPCG(1, 2))}
	count := map[[2]model.NodeID]int{}
	for range n {
		got := draw(e, hostsOf(5), 2, 3)
		count[[2]model.NodeID{got[0].ID, got[1].ID}]++
	}
	for two, got := range count {
		if two[0] == 3 || two[1] == 3 || two[0] == two[1] || math.Abs(float64(got)-n/12) > 5*math.Sqrt(n/12) {
			t.Errorf("%v was drawn %d times; want %d ± %.0f, and never 3", two, got, n/12, 5*math.Sqrt(n/12))
		}
	}
	if len(count) != 12 {
		t.Errorf("%d pairs were drawn: %v; want 12", len(count), count)
	}
}

func TestQuery(t *testing.T) {
	g := DefaultQuery()
	g.Think, g.Fanout, g.Start, g.Duration = 7, 3, 1000, 100*time.Millisecond
	flows := generate(t, 1, g)
	asker, workers := map[int]model.NodeID{}, map[int]map[model.NodeID]int{}
	for i, f := range flows {
		if len(f.After) == 0 {
			if workers[f.Group] == nil {
				asker[f.Group], workers[f.Group] = f.Src, map[model.NodeID]int{}
			}
			if f.Src != asker[f.Group] || f.Bytes != g.Request {
				t.Fatalf("request %+v; want %d bytes from %d", f, g.Request, asker[f.Group])
			}
			workers[f.Group][f.Dst]++
			continue
		}
		r := flows[f.After[0]]
		if len(f.After) != 1 || r.Src != f.Dst || r.Dst != f.Src || r.Group != f.Group || len(r.After) != 0 || f.Delay != 7 || f.Bytes != g.Response || f.Start != r.Start {
			t.Fatalf("flow %d answers %+v with %+v; want the reverse direction, %v later", i, r, f, g.Think)
		}
		workers[f.Group][f.Src] += 10
	}
	for group, w := range workers {
		for id, n := range w {
			if n != 11 {
				t.Errorf("query %d requests from worker %d and receives %d; want once each", group, id, n)
			}
		}
		if len(w) != g.Fanout {
			t.Errorf("query %d has workers %v; want %d", group, w, g.Fanout)
		}
	}
	if got, want := float64(len(workers)), 1000.0; math.Abs(got-want) > 5*math.Sqrt(want) {
		t.Errorf("%v queries in %v; want %v ± %.0f", got, g.Duration, want, 5*math.Sqrt(want))
	}
}

func TestPersistent(t *testing.T) {
	g := DefaultPersistent()
	g.Pairs = []Pair{{3, 4}, {4, 3}}
	want := []Flow{
		{Src: 3, Dst: 4, Stop: 1e7, Rate: model.Gbps, Priority: 3},
		{Src: 4, Dst: 3, Stop: 1e7, Rate: model.Gbps, Priority: 3},
	}
	if d := cmp.Diff(want, generate(t, 1, g)); d != "" {
		t.Errorf("flows differ (-want +got):\n%s", d)
	}
}

func TestShrew(t *testing.T) {
	g := DefaultShrew()
	g.Senders, g.Receiver, g.Rounds, g.Start = []model.NodeID{4, 2}, 7, 2, 100
	hosts := hostsOf(8)
	hosts[2].Rate = 400 * model.Gbps
	burst := func(src model.NodeID, start model.Time, size model.Bytes, group int, after ...int) Flow {
		return Flow{
			Src: src, Dst: 7, Start: start, Bytes: size, SrcPort: 49153, Priority: 3,
			NoCC: true, Group: group, After: after,
		}
	}
	want := []Flow{
		burst(4, 100, 625_000, 1),
		burst(2, 100, 2_500_000, 1),
		burst(4, 1_000_100, 625_000, 2, 0),
		burst(2, 1_000_100, 2_500_000, 2, 1),
	}
	got, err := Generate(1, hosts, List{}, g) // at position two: the second port
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("Generate = %v; want no error; and the flows differ (-want +got):\n%s", err, d)
	}
	g.Rate = 8 * model.Gbps
	if got := generate(t, 1, g)[0].Bytes; got != 50_000 {
		t.Errorf("a burst of 50 µs at 8 Gb/s has %d bytes; want 50000", got)
	}
}

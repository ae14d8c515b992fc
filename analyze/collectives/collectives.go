// Package collectives says what records of NCCL's collectives show of a job: its groups of
// ranks and their hosts, the steps, how much of a step is transfer and how much is waiting,
// and which rank enters late or not at all.
//
// Clocks of hosts are not compared. Ranks of a collective leave it together, so the rank that
// enters last is in it for the shortest time: that time is the transfer, and what the others
// are in it for longer, they wait. Manual: docs/jobs.md.
package collectives

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/wire/nccl"
)

// Group is the ranks of a communicator or process group.
type Group struct {
	Name  string
	Size  int    // number of its ranks; 0: unknown
	Ranks []Rank // that have records, in order
	Kinds []Kind // that take longest first
	// Steps is how often the sequence of collectives repeats; 0: it does not.
	Steps    int
	InStep   int           // collectives of a step
	Period   time.Duration // from step to step, the median
	Transfer time.Duration // of a step, while all ranks are in a collective
	Waiting  time.Duration // of a step, of the rank in the middle
	Matched  int           // collectives that several ranks have timed
	Records  int
}

// Rank is one rank of a group.
type Rank struct {
	Rank int
	Host string // empty: unknown
	// Late is how much later than the rank in the middle it enters the collectives of a
	// step, the median over the steps.
	Late    time.Duration
	Newest  Position // the collective that it entered last
	Waiting bool     // in it when the record was written
	Absent  bool     // others wait for it in a collective that it has not entered
}

// Position is a collective of a group.
type Position struct {
	Op  string
	Seq uint64
}

// Kind is the collectives of one operation and size.
type Kind struct {
	Op       string
	Bytes    uint64 // 0: unknown
	Count    int
	Transfer time.Duration // of one, the median
	Waiting  time.Duration
}

const (
	minRepeats = 3   // of a sequence, to be steps
	alike      = 0.9 // share of the collectives that are as in the step before
	// lateShare is how late a rank must be, as a share of the step, to be named; as
	// analyze/jobs says it of flows.
	lateShare = 0.1
)

// collective is one collective of a group on the ranks that timed it.
type collective struct {
	Position
	bytes     uint64
	at        time.Time // on the rank with most records
	durations map[int]time.Duration
}

// Analyze returns the groups of records, those with most ranks first.
func Analyze(records []nccl.Record) (groups []Group) {
	type id struct{ id, ranks string }
	of := map[id][]*nccl.Record{}
	for i := range records {
		r := &records[i]
		k := id{r.Group.ID, r.Group.Ranks}
		of[k] = append(of[k], r)
	}
	for _, list := range of {
		groups = append(groups, analyze(list))
	}
	slices.SortFunc(groups, func(x, y Group) int {
		return cmp.Or(cmp.Compare(len(y.Ranks), len(x.Ranks)), cmp.Compare(y.Records, x.Records), cmp.Compare(x.Name, y.Name))
	})
	return groups
}

func analyze(list []*nccl.Record) Group {
	of := list[0].Group
	g := Group{Name: of.ID, Size: of.Size, Records: len(list)}
	if of.Title != "" && of.Title != "undefined" {
		g.Name = of.Title + " (" + of.ID + ")"
	}
	byRank := map[int][]*nccl.Record{}
	for _, r := range list {
		byRank[r.Rank] = append(byRank[r.Rank], r)
	}
	reference := -1
	for n, own := range byRank {
		if reference < 0 || len(own) > len(byRank[reference]) || len(own) == len(byRank[reference]) && n < reference {
			reference = n
		}
		rank := Rank{Rank: n}
		newest := own[0]
		for _, r := range own {
			rank.Host = cmp.Or(rank.Host, r.Host)
			if cmp.Or(r.Time.Compare(newest.Time), cmp.Compare(r.Seq, newest.Seq)) >= 0 { // on its own clock
				newest = r
			}
		}
		rank.Newest, rank.Waiting = Position{newest.Op, newest.Seq}, newest.Waiting
		g.Ranks = append(g.Ranks, rank)
	}
	slices.SortFunc(g.Ranks, func(x, y Rank) int { return cmp.Compare(x.Rank, y.Rank) })
	g.findAbsent()
	all := match(byRank, reference)
	g.Matched = len(all)
	g.findSteps(all)
	g.addKinds(all)
	return g
}

// match returns the collectives that at least two ranks have timed, in the order of the
// reference.
func match(byRank map[int][]*nccl.Record, reference int) (all []*collective) {
	index := map[Position]*collective{}
	for _, r := range byRank[reference] {
		if r.Duration > 0 && synchronizes(r.Op) {
			c := &collective{Position{r.Op, r.Seq}, r.Bytes, r.Time, map[int]time.Duration{}}
			index[c.Position] = c
		}
	}
	for rank, own := range byRank {
		for _, r := range own {
			if c := index[Position{r.Op, r.Seq}]; c != nil && r.Duration > 0 {
				c.durations[rank] = r.Duration
			}
		}
	}
	for _, c := range index {
		if len(c.durations) > 1 {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(x, y *collective) int {
		return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.Seq, y.Seq), cmp.Compare(x.Op, y.Op))
	})
	return all
}

// synchronizes reports whether no rank can leave a collective before all have entered it: a
// root of a broadcast leaves earlier.
func synchronizes(op string) bool {
	switch op {
	case "AllReduce", "AllGather", "ReduceScatter",
		"all_reduce", "all_reduce_barrier", "all_gather", "_all_gather_base", "all_gather_into_tensor_coalesced",
		"reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor_coalesced", "all_to_all":
		return true
	}
	return false
}

// times are the transfer of a collective and what each rank but the last waits.
func (c *collective) times() (transfer, waiting time.Duration) {
	var list []time.Duration
	for _, d := range c.durations {
		list = append(list, d)
	}
	slices.Sort(list)
	return list[0], list[len(list)/2] - list[0]
}

// findSteps finds how often the sequence of collectives repeats, and measures its steps.
func (g *Group) findSteps(all []*collective) {
	g.InStep = repeats(all)
	if g.InStep == 0 {
		return
	}
	var periods, transfers, waits []time.Duration
	late := map[int][]time.Duration{}
	var began time.Time
	for at := 0; at+g.InStep <= len(all); at += g.InStep {
		step := all[at : at+g.InStep]
		if at > 0 {
			periods = append(periods, step[0].at.Sub(began))
		}
		began = step[0].at
		var transfer, waiting time.Duration
		sums := map[int]time.Duration{}
		for _, c := range step {
			t, w := c.times()
			transfer, waiting = transfer+t, waiting+w
			for rank, d := range c.durations {
				sums[rank] += max(t+w-d, 0)
			}
		}
		transfers, waits = append(transfers, transfer), append(waits, waiting)
		for rank, sum := range sums {
			late[rank] = append(late[rank], sum)
		}
		g.Steps++
	}
	g.Period, g.Transfer, g.Waiting = median(periods), median(transfers), median(waits)
	for i := range g.Ranks {
		g.Ranks[i].Late = median(late[g.Ranks[i].Rank])
	}
}

// repeats returns the shortest sequence of operations and sizes that comes again and again;
// 0: none does.
func repeats(all []*collective) int {
	const longest = 4096
	for n := 1; n <= min(len(all)/minRepeats, longest); n++ {
		same, differ := 0, int(float64(len(all)-n)*(1-alike))
		for i := n; i < len(all) && i-n-same <= differ; i++ {
			if x, y := all[i-n], all[i]; x.Op == y.Op && x.bytes == y.bytes {
				same++
			}
		}
		if float64(same) >= alike*float64(len(all)-n) {
			return n
		}
	}
	return 0
}

// findAbsent marks the ranks that others wait for in a collective.
func (g *Group) findAbsent() {
	if len(g.Ranks) == 0 {
		return
	}
	first := g.Ranks[0].Newest.Seq
	for i := range g.Ranks {
		first = min(first, g.Ranks[i].Newest.Seq)
	}
	for i := range g.Ranks {
		r := &g.Ranks[i]
		r.Absent = r.Newest.Seq == first && slices.ContainsFunc(g.Ranks, func(o Rank) bool { return o.Waiting && o.Newest.Seq > first })
	}
}

func (g *Group) addKinds(all []*collective) {
	type key struct {
		op    string
		bytes uint64
	}
	times := map[key][2][]time.Duration{}
	for _, c := range all {
		t, w := c.times()
		k := key{c.Op, c.bytes}
		times[k] = [2][]time.Duration{append(times[k][0], t), append(times[k][1], w)}
	}
	for k, v := range times {
		g.Kinds = append(g.Kinds, Kind{Op: k.op, Bytes: k.bytes, Count: len(v[0]), Transfer: median(v[0]), Waiting: median(v[1])})
	}
	slices.SortFunc(g.Kinds, func(x, y Kind) int {
		total := func(k Kind) time.Duration { return time.Duration(k.Count) * (k.Transfer + k.Waiting) }
		return cmp.Or(cmp.Compare(total(y), total(x)), cmp.Compare(x.Op, y.Op), cmp.Compare(x.Bytes, y.Bytes))
	})
}

// LateRanks returns the ranks that enter the collectives of a step later than the others by
// a part of the step that matters, the latest first.
func (g *Group) LateRanks() (list []Rank) {
	for _, r := range g.Ranks {
		if r.Late > 0 && float64(r.Late) >= lateShare*float64(g.Period) {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(x, y Rank) int { return cmp.Compare(y.Late, x.Late) })
	return list
}

// AbsentRanks returns the ranks that others wait for.
func (g *Group) AbsentRanks() (list []Rank) {
	for _, r := range g.Ranks {
		if r.Absent {
			list = append(list, r)
		}
	}
	return list
}

// median is the middle of a list, the later one of two; 0 of an empty one.
func median(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}

package collectives

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/wire/nccl"
)

// State is what reports of NCCL's RAS service say of a communicator.
type State struct {
	Name    string
	Size    int
	Reports int
	Ranks   []RankState // of the newest report, in order
}

// RankState is one rank of a communicator.
type RankState struct {
	Rank     int
	Host     string
	Launched uint64 // collectives of all operations
	Missing  bool
	Dead     bool
	Error    string
	// Behind is how many collectives of an operation others have launched that the rank has
	// not, if it launched none from the first report to the last.
	Behind Lag
}

// Verdict is the rank's state in a word, and what is wrong with it, after its name; empty:
// nothing.
func (r *RankState) Verdict() (state, text string) {
	switch {
	case r.Dead:
		return "dead", "is dead to RAS: it did not answer for a minute"
	case r.Missing:
		return "missing", "does not answer RAS"
	case r.Error != "":
		return r.Error, "has " + r.Error + " in its communicator"
	case r.Behind.Count > 0:
		return "behind", fmt.Sprintf("has launched %d %s less than others, and no collective from the first report to the last", r.Behind.Count, r.Behind.Op)
	}
	return "ok", ""
}

// Lag is a number of collectives that a rank has not launched; zero: none.
type Lag struct {
	Op    string
	Count uint64
}

// States returns the communicators of reports, the largest first.
func States(members []nccl.Member) (list []State) {
	of := map[nccl.Group]map[time.Time][]*nccl.Member{}
	for i := range members {
		m := &members[i]
		if of[m.Group] == nil {
			of[m.Group] = map[time.Time][]*nccl.Member{}
		}
		of[m.Group][m.Time] = append(of[m.Group][m.Time], m)
	}
	for g, reports := range of {
		var times []time.Time
		for at := range reports {
			times = append(times, at)
		}
		slices.SortFunc(times, time.Time.Compare)
		s := State{Name: g.ID, Size: g.Size, Reports: len(times)}
		newest := reports[times[len(times)-1]]
		for _, m := range newest {
			s.Ranks = append(s.Ranks, newRankState(m))
		}
		if len(times) > 1 {
			addLags(s.Ranks, reports[times[0]], newest)
		}
		slices.SortFunc(s.Ranks, func(x, y RankState) int { return cmp.Compare(x.Rank, y.Rank) })
		list = append(list, s)
	}
	slices.SortFunc(list, func(x, y State) int {
		return cmp.Or(cmp.Compare(len(y.Ranks), len(x.Ranks)), cmp.Compare(x.Name, y.Name))
	})
	return list
}

func newRankState(m *nccl.Member) RankState {
	return RankState{Rank: m.Rank, Host: m.Host, Launched: launched(m), Missing: m.Missing, Dead: m.Dead, Error: m.Error}
}

// addLags finds the ranks, in the order of the newest report, that have not gone on since the
// oldest while others are ahead of them.
func addLags(ranks []RankState, oldest, newest []*nccl.Member) {
	most := map[string]uint64{}
	for _, m := range newest {
		for op, n := range m.Launched {
			most[op] = max(most[op], n)
		}
	}
	for i, m := range newest {
		at := slices.IndexFunc(oldest, func(o *nccl.Member) bool { return o.Rank == m.Rank })
		if at < 0 || m.Missing || oldest[at].Missing || launched(oldest[at]) != launched(m) {
			continue
		}
		for op, n := range most {
			if lag := n - m.Launched[op]; lag > ranks[i].Behind.Count || lag == ranks[i].Behind.Count && lag > 0 && op < ranks[i].Behind.Op {
				ranks[i].Behind = Lag{op, lag}
			}
		}
	}
}

func launched(m *nccl.Member) (sum uint64) {
	for _, n := range m.Launched {
		sum += n
	}
	return sum
}

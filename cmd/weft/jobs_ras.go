package main

import (
	"fmt"
	"io"

	"github.com/weft-telemetry/weft/analyze/collectives"
	"github.com/weft-telemetry/weft/internal/plural"
)

// ncclState is what RAS says of a communicator.
type ncclState struct {
	Name     string          `json:"name"`
	Size     int             `json:"size"`
	Reports  int             `json:"reports"`
	Ranks    []ncclRankState `json:"ranks"`
	Findings []string        `json:"findings"`
}

type ncclRankState struct {
	Rank     int    `json:"rank"`
	Host     string `json:"host"`
	Launched uint64 `json:"launched"`
	State    string `json:"state"`
}

func newNCCLState(s *collectives.State) ncclState {
	out := ncclState{Name: s.Name, Size: max(s.Size, len(s.Ranks)), Reports: s.Reports, Ranks: []ncclRankState{}, Findings: []string{}}
	for _, r := range s.Ranks {
		state, text := r.Verdict()
		out.Ranks = append(out.Ranks, ncclRankState{r.Rank, r.Host, r.Launched, state})
		if text != "" {
			kind := "absent"
			if state == r.Error {
				kind = "error"
			}
			out.Findings = append(out.Findings, fmt.Sprintf("%s: %s %s", kind, rankName(collectives.Rank{Rank: r.Rank, Host: r.Host}), text))
		}
	}
	return out
}

func (s *ncclState) print(w io.Writer) error {
	fmt.Fprintf(w, "\n%s: %d of %s, %s of RAS\n", s.Name, len(s.Ranks), plural.Count(s.Size, "rank"), plural.Count(s.Reports, "report"))
	for _, text := range s.Findings {
		fmt.Fprintf(w, "  %s\n", text)
	}
	var ranks table
	ranks.row("RANK", "HOST", "LAUNCHED", "STATE")
	for _, r := range s.Ranks {
		ranks.row(r.Rank, r.Host, r.Launched, r.State)
	}
	return ranks.print(w)
}

package collectives

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/wire/nccl"
)

// TestStates: ranks that do not answer or have an error are named by one report; one that is
// behind only by two, between which it has not gone on, for collectives outpace a report.
func TestStates(t *testing.T) {
	g := nccl.Group{ID: "0xae", Size: 4}
	report := func(minute int, counts ...uint64) (list []nccl.Member) {
		for rank, n := range counts {
			list = append(list, nccl.Member{
				Group: g, Rank: rank, Host: fmt.Sprint("h", rank), Time: time.Unix(int64(60*minute), 0),
				Launched: map[string]uint64{"AllReduce": n, "Broadcast": 1},
			})
		}
		return list
	}
	text := func(members []nccl.Member) (found string) {
		list := States(members)
		if len(list) != 1 || len(list[0].Ranks) != 4 {
			t.Fatalf("%+v; want one communicator of 4 ranks", list)
		}
		for _, r := range list[0].Ranks {
			if r.Missing || r.Dead || r.Error != "" || r.Behind.Count > 0 {
				found += fmt.Sprintf("%d %v %v %q %v;", r.Rank, r.Missing, r.Dead, r.Error, r.Behind)
			}
		}
		return found
	}
	lost := report(0, 7, 7, 7, 7)
	lost[1].Missing, lost[1].Launched = true, nil
	lost[2].Missing, lost[2].Dead = true, true
	lost[3].Error = "async_error 2"
	for what, one := range map[string]struct {
		members []nccl.Member
		want    string
	}{
		"lost ranks":            {lost, `1 true false "" { 0};2 true true "" { 0};3 false false "async_error 2" { 0};`},
		"one report":            {report(0, 7, 7, 5, 7), ""},
		"went on":               {append(report(0, 7, 7, 5, 7), report(1, 9, 9, 8, 9)...), ""},
		"went on, newest first": {append(report(1, 9, 9, 8, 9), report(0, 7, 7, 5, 7)...), ""},
		"did not go on":         {append(report(0, 7, 7, 5, 7), report(1, 7, 7, 5, 7)...), `2 false false "" {AllReduce 2};`},
		"all wait alike":        {append(report(0, 7, 7, 7, 7), report(1, 7, 7, 7, 7)...), ""},
	} {
		if got := text(one.members); got != one.want {
			t.Errorf("%s: found %s; want %s", what, got, one.want)
		}
	}
}

package collectives

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/wire/nccl"
)

// TestRecent: what is read again counts once, its bounds hold, and what is old is forgotten.
func TestRecent(t *testing.T) {
	r := NewRecent(RecentConfig{Records: 4, Members: 2*maxReports + 4, Groups: 2, Keep: time.Minute})
	now := time.Unix(1000, 0)
	dump := func(from, to int) *nccl.Dump {
		d := &nccl.Dump{}
		for seq := from; seq < to; seq++ {
			d.Records = append(d.Records, nccl.Record{Group: nccl.Group{ID: "g"}, Host: "h", Op: "AllReduce", Seq: uint64(seq), Waiting: seq == to-1})
		}
		return d
	}
	count := func() (records, reports int) {
		groups, states := r.Report()
		for _, g := range groups {
			records += g.Records
		}
		for _, s := range states {
			reports += s.Reports
		}
		return records, reports
	}
	r.Add(now, dump(1, 3))
	r.Add(now, dump(1, 4)) // the dump again, with one more
	if n, _ := count(); n != 3 {
		t.Errorf("%d collectives; want 3", n)
	}
	if groups, _ := r.Report(); groups[0].Ranks[0].Newest.Seq != 3 || !groups[0].Ranks[0].Waiting {
		t.Errorf("%+v; want the newest state", groups[0])
	}
	r.Add(now, dump(4, 9))
	if n, _ := count(); n != 4 || len(r.records) != 4 {
		t.Errorf("%d collectives, %d kept; want the newest 4", n, len(r.records))
	}
	report := func(group string, second, ranks int) *nccl.Dump {
		d := &nccl.Dump{}
		for i := range ranks {
			d.Members = append(d.Members, nccl.Member{Group: nccl.Group{ID: group}, Rank: i, Time: time.Unix(int64(second), 0)})
		}
		return d
	}
	r.Add(now, report("a", 1, 2))
	r.Add(now, report("a", 1, 2)) // of another process of the job
	if _, n := count(); n != 1 {
		t.Errorf("%d reports; want 1", n)
	}
	for i := range 2 * maxReports {
		r.Add(now, report("a", i, 2))
	}
	if _, n := count(); n != maxReports {
		t.Errorf("%d reports; want %d", n, maxReports)
	}
	r.Add(now, report("b", 1, 5)) // one rank more than there is room for
	r.Add(now, report("b", 1, 3))
	r.Add(now, report("b", 2, 3)) // in place of the report before
	if _, states := r.Report(); len(states) != 2 || states[0].Reports != 1 {
		t.Errorf("%+v; want the newest report of b", states)
	}
	r.Add(now, report("c", 1, 1)) // one more communicator
	if r.Refused() != 6 {
		t.Errorf("%d refused; want 6", r.Refused())
	}
	if r.Forget(now.Add(time.Minute)) {
		t.Error("forgot something after a minute; want all kept")
	}
	if !r.Forget(now.Add(time.Minute + 1)) {
		t.Error("forgot nothing")
	}
	if n, reports := count(); n+reports+len(r.records)+len(r.order)+len(r.reports) != 0 {
		t.Errorf("%d collectives and %d reports are left", n, reports)
	}
}

// TestHostSets: communicators within another are of its job.
func TestHostSets(t *testing.T) {
	group := func(name string, hosts ...string) (g Group) {
		g.Name = name
		for i, h := range hosts {
			g.Ranks = append(g.Ranks, Rank{Rank: i, Host: h})
		}
		return g
	}
	groups := []Group{group("tp0", "h0", "h0"), group("dp", "h0", "h2"), group("other", "h7", "h8", ""), group("tp1", "h1", "h1")}
	states := []State{{Name: "0xae/0xb7", Ranks: []RankState{{Host: "h2"}, {Host: "h1"}, {Host: "h0"}, {Host: "h2"}}}}
	var got []string
	for _, s := range HostSets(groups, states) {
		got = append(got, fmt.Sprint(s.Name, s.Hosts))
	}
	if want := []string{"0xae[h0 h1 h2]", "other[h7 h8]"}; !slices.Equal(got, want) {
		t.Errorf("found %q; want %q", got, want)
	}
}

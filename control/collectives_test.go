package control

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/collectives"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/nccl"
)

// TestJobsAreLearned: communicators of NCCL are jobs, unless one of the configuration has their
// hosts, and as long as records of them arrive.
func TestJobsAreLearned(t *testing.T) {
	c := jobsBed(t)
	c.collectives.recent = collectives.NewRecent(collectives.DefaultRecentConfig())
	if err := c.SetJobs([]Job{{Name: "a", Hosts: []string{"h0", "h1"}}}); err != nil {
		t.Fatal(err)
	}
	addr := func(host string) string {
		id, _ := c.fabric.ByName(host)
		return c.fabric.Node(id).IPv4.String()
	}
	now := model.Time(time.Hour)
	report := func(group string, hosts ...string) *nccl.Dump {
		d := &nccl.Dump{}
		for i, h := range hosts {
			d.Members = append(d.Members, nccl.Member{Group: nccl.Group{ID: group, Size: len(hosts)}, Rank: i, Host: h, Time: time.Unix(1, 0)})
		}
		return d
	}
	if n := c.IngestCollectives(now, report("0x1/0x2", addr("h10"), "h4.example.org", "h4", "h2")); n != 0 {
		t.Errorf("%d ranks of unknown hosts; want none", n)
	}
	c.IngestCollectives(now, report("0x3", "h0", "h1"))
	if n := c.IngestCollectives(now, report("0x4", "h7", "gpu9", "192.0.2.1", "tor0", "")); n != 3 {
		t.Errorf("%d ranks of unknown hosts; want 3", n)
	}
	c.learnJobs(now)
	want := "a [h0 h1] false; nccl:0x1 [h2 h4 h10] true; "
	if got := jobNames(c); got != want {
		t.Errorf("jobs %s; want %s", got, want)
	}
	if err := c.SetJobs([]Job{{Name: "b", Hosts: []string{"h10", "h2", "h3", "h4"}}}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * learnRound)
	c.learnJobs(now)
	if got, want := jobNames(c), "b [h10 h2 h3 h4] false; nccl:0x3 [h0 h1] true; "; got != want {
		t.Errorf("jobs %s; want %s", got, want)
	}
	c.learnJobs(now.Add(time.Hour))
	if got, want := jobNames(c), "b [h10 h2 h3 h4] false; "; got != want {
		t.Errorf("an hour later jobs %s; want %s", got, want)
	}
}

func jobNames(c *Controller) (text string) {
	for _, j := range *c.JobRecords() {
		text += fmt.Sprintf("%s %v %v; ", j.Name, j.Hosts, j.Learned)
	}
	return text
}

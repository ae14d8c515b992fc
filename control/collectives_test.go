package control

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/collectives"
	"github.com/weft-telemetry/weft/analyze/routeview"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
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

// forwardedTo hands what a decoder forwards about jobs and routes to another controller.
type forwardedTo struct {
	Forwarder
	leader *Controller
	pieces int
}

func (f *forwardedTo) Collectives(now model.Time, d *nccl.Dump) {
	f.pieces++
	f.leader.IngestCollectives(now, d)
}

func (f *forwardedTo) Tick(model.Time)                         {}
func (f *forwardedTo) Counters(model.Time, []PortCounters)     {}
func (f *forwardedTo) Routes(_ model.Time, _ *routeview.Table) {}

// TestCollectivesAreForwarded: what a decoder is given about NCCL makes the same jobs at the
// leader; of long files the newest records are forwarded.
func TestCollectivesAreForwarded(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig(intentOf(t, f))
	leader, err := New(cfg, NoDevices{}, Output{})
	if err != nil {
		t.Fatal(err)
	}
	to := &forwardedTo{leader: leader}
	cfg.Forward = to
	decoder, err := New(cfg, NoDevices{}, Output{})
	if err != nil {
		t.Fatal(err)
	}
	d := &nccl.Dump{Members: []nccl.Member{
		{Group: nccl.Group{ID: "0x1", Size: 2}, Host: "h1"}, {Group: nccl.Group{ID: "0x1", Size: 2}, Rank: 1, Host: "h2.example.org"},
	}}
	kept := collectives.DefaultRecentConfig().Records
	for i := range kept + 10_000 {
		d.Records = append(d.Records, nccl.Record{Group: nccl.Group{ID: "0x2", Size: 2}, Rank: i % 2, Host: fmt.Sprint("h", 3+i%2), Op: "AllReduce", Seq: uint64(i / 2), Time: time.Unix(int64(i/2), 0)})
	}
	if n := decoder.IngestCollectives(1, d); n != 0 {
		t.Errorf("%d ranks of unknown hosts; want none", n)
	}
	decoder.Tick(model.Time(time.Second))
	leader.Tick(model.Time(3 * time.Second))
	if got, want := jobNames(leader), "nccl:0x1 [h1 h2] true; nccl:0x2 [h3 h4] true; "; got != want {
		t.Errorf("jobs of the leader %s; want %s", got, want)
	}
	if groups, _ := leader.Collectives(); len(groups) != 1 || to.pieces != 2+kept/forwardedAtOnce {
		t.Errorf("%d communicators in %d pieces; want 1, in pieces of %d records", len(groups), to.pieces, forwardedAtOnce)
	}
	decoder.Tick(model.Time(4 * time.Second))
	if to.pieces != 2+kept/forwardedAtOnce {
		t.Errorf("%d pieces later; want no more", to.pieces)
	}
}

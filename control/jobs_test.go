package control

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// jobsBed is a controller's jobs on a fat-tree of 16 hosts.
func jobsBed(t *testing.T) *Controller {
	t.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	return &Controller{fabric: f}
}

func TestJobsHaveFlowsOfTheirOwn(t *testing.T) {
	c := jobsBed(t)
	err := c.SetJobs([]Job{
		{Name: "a", Hosts: []string{"h0", "h1"}},
		{Name: "b", Hosts: []string{"h1", "h2"}, Prefixes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	addr := func(host string) model.Addr {
		id, _ := c.fabric.ByName(host)
		return c.fabric.Node(id).IPv4
	}
	outside := model.AddrOf(netip.MustParseAddr("192.0.2.9"))
	flow := func(src, dst model.Addr) []model.FlowKey { return []model.FlowKey{{Src: src, Dst: dst}} }
	for _, one := range []struct {
		what  string
		flows []model.FlowKey
		want  []string
	}{
		{"inside a", flow(addr("h0"), addr("h1")), []string{"a"}},
		{"inside b", flow(addr("h2"), addr("h1")), []string{"b"}},
		{"from a to b", flow(addr("h0"), addr("h2")), []string{}},
		{"of b, outside the fabric", flow(addr("h2"), outside), []string{"b"}},
		{"of nobody", flow(addr("h7"), addr("h8")), []string{}},
		{"one of each", append(flow(addr("h2"), addr("h1")), flow(addr("h0"), addr("h1"))...), []string{"a", "b"}},
	} {
		if got := c.affectedJobs(one.flows); !slices.Equal(got, one.want) {
			t.Errorf("%s: hurts %v, want %v", one.what, got, one.want)
		}
	}
}

// TestRanksOfAffectedJobs: an incident names the hosts of each job that have affected flows,
// by name, or by address outside of the fabric, and not those of flows between jobs.
func TestRanksOfAffectedJobs(t *testing.T) {
	c := jobsBed(t)
	if err := c.SetJobs([]Job{
		{Name: "a", Hosts: []string{"h0", "h1", "h10"}},
		{Name: "b", Hosts: []string{"h2"}, Prefixes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
	}); err != nil {
		t.Fatal(err)
	}
	addr := func(host string) model.Addr {
		id, _ := c.fabric.ByName(host)
		return c.fabric.Node(id).IPv4
	}
	outside := model.AddrOf(netip.MustParseAddr("192.0.2.9"))
	for _, one := range []struct {
		flows []model.FlowKey
		want  string
	}{
		{[]model.FlowKey{{Src: addr("h10"), Dst: addr("h1")}, {Src: addr("h1"), Dst: addr("h10")}}, "[{a [h1 h10]}]"},
		{[]model.FlowKey{{Src: outside, Dst: addr("h2")}, {Src: addr("h0"), Dst: addr("h1")}}, "[{a [h0 h1]} {b [h2 192.0.2.9]}]"},
		{[]model.FlowKey{{Src: addr("h0"), Dst: addr("h2")}, {Src: addr("h7"), Dst: addr("h8")}}, "[]"},
	} {
		if got := fmt.Sprint(c.affectedRanks(one.flows)); got != one.want {
			t.Errorf("ranks of %v are %s, want %s", one.flows, got, one.want)
		}
	}
}

func TestBadJobsChangeNothing(t *testing.T) {
	c := jobsBed(t)
	good := []Job{{Name: "a", Hosts: []string{"h0"}}}
	if err := c.SetJobs(good); err != nil {
		t.Fatal(err)
	}
	for want, list := range map[string][]Job{
		"no name":       {{Hosts: []string{"h0"}}},
		"twice":         {{Name: "a", Hosts: []string{"h0"}}, {Name: "a", Hosts: []string{"h1"}}},
		"neither hosts": {{Name: "a"}},
		`"h99" of a`:    {{Name: "a", Hosts: []string{"h99"}}},
		`"tor0" of a`:   {{Name: "a", Hosts: []string{"tor0"}}},
	} {
		if err := c.SetJobs(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want an error about %s", list, err, want)
		}
	}
	if len(c.cfg.Jobs) != 1 || c.cfg.Jobs[0].Name != "a" {
		t.Errorf("jobs are %v after refused ones, want %v", c.cfg.Jobs, good)
	}
}

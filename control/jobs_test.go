package control

import (
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

package served_test

import (
	"context"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/live"
	"github.com/weft-telemetry/weft/scenario/served"
)

const twoFlows = `seed: 1
duration: 6ms
topology: {generate: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 2}}
traffic:
  - {kind: persistent, pairs: [h0>h2], rate: 40Gb/s}
  - {kind: persistent, pairs: [h1>h3], rate: 10Gb/s}
telemetry:
  - {kind: flowset, slot: 1ms, flows: 100, ipv6: off}
`

// TestReadTraffic asks a controller of a fabric whose rates are known.
func TestReadTraffic(t *testing.T) {
	s, err := scenario.Parse("test.yaml", []byte(twoFlows))
	if err != nil {
		t.Fatal(err)
	}
	run, err := live.Start(t.Context(), s, live.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := run.Client()
	top, err := c.Topology(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fabric, err := served.Fabric(&top)
	if err != nil {
		t.Fatal(err)
	}
	f := fabric.Topology.Fabric
	r := api.Range{From: run.Start()}
	now, err := served.ReadTraffic(t.Context(), c, f, r, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	// Two flows and their acknowledgements.
	if now.Flows != 4 || now.OnRecord != 4 || now.Outside != 0 || now.Truncated || now.Share != 1 {
		t.Fatalf("traffic %+v; want four flows with recorded paths", now)
	}
	for _, j := range now.Jobs {
		for _, flow := range j.Flows {
			want := map[string]model.Rate{"h0": 40 * model.Gbps, "h1": 10 * model.Gbps}[f.Node(flow.Src).Name]
			if want > 0 && (flow.Demand < want*95/100 || flow.Demand > want*11/10) {
				t.Errorf("flow %v of %s: %v; want about %v", flow.Key, f.Node(flow.Src).Name, flow.Demand, want)
			}
			if len(flow.Path) != 5 || flow.Path[0].Node != flow.Src {
				t.Errorf("flow %v takes %v; want host, leaf, spine, leaf, host", flow.Key, flow.Path)
			}
		}
	}
	// Pages of one flow, and no more than two of them.
	paged, err := served.ReadTraffic(t.Context(), c, f, r, 2)
	if err != nil || paged.Flows != 2 || !paged.Truncated || paged.Share >= 1 {
		t.Errorf("the largest two flows: %+v, %v; want them, and that others are left out", paged, err)
	}
}

// pages is a controller with flows of its own.
type pages struct {
	*client.Client
	flows []api.Flow
	asked []api.FlowsQuery
}

func (p *pages) Jobs(context.Context, api.Range) (api.JobList, error) {
	return api.JobList{Items: []api.Job{{Name: "training", Hosts: []string{"h0", "h2"}}}}, nil
}

func (p *pages) Flows(_ context.Context, q api.FlowsQuery) (page api.FlowPage, err error) {
	p.asked = append(p.asked, q)
	at := time.Unix(100, 0)
	page.CoveredFrom, page.CoveredTo = at, at.Add(time.Second)
	if n := len(p.asked); n <= len(p.flows) {
		page.Items = p.flows[n-1 : n]
		if n < len(p.flows) {
			page.Next = "more"
		}
	}
	page.Totals.Bytes = 4000
	return page, nil
}

// TestReadTrafficOutside: flows of others than the topology's hosts are counted, a path
// that is not one is not taken, and all pages are of one range.
func TestReadTrafficOutside(t *testing.T) {
	s, err := scenario.Parse("test.yaml", []byte(twoFlows))
	if err != nil {
		t.Fatal(err)
	}
	flow := func(src, dst string, path ...string) api.Flow {
		return api.Flow{FlowRef: api.FlowRef{Src: src, Dst: dst}, Bytes: 1000, Path: path}
	}
	p := &pages{flows: []api.Flow{
		flow("h0", "h2", "leaf0", "spine1", "leaf1"), flow("", "h2", "leaf0"), flow("h1", "h2", "leaf0", "leaf1"), flow("h1", "h3", "leaf0", "nothing"),
	}}
	now, err := served.ReadTraffic(t.Context(), p, s.Topology.Fabric, api.Range{Last: "1s"}, 100)
	if err != nil {
		t.Fatal(err)
	}
	if now.Flows != 3 || now.Outside != 1 || now.OnRecord != 1 || now.Share != 0.75 || len(now.Jobs) != 2 || now.Jobs[0].Name != "training" {
		t.Errorf("traffic %+v; want one flow of the job, two others, one from outside", now)
	}
	if q := p.asked[1]; q.After != "more" || q.Last != "" || !q.From.Equal(time.Unix(100, 0)) {
		t.Errorf("the second page was asked with %+v; want the range of the first", q)
	}
}

package served

import (
	"context"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/fairshare"
)

// Controller is what Traffic asks. *client.Client is one.
type Controller interface {
	Flows(ctx context.Context, q api.FlowsQuery) (api.FlowPage, error)
	Jobs(ctx context.Context, r api.Range) (api.JobList, error)
}

// Traffic is what flows sent in a range, by their rates and paths.
type Traffic struct {
	Jobs []scenario.JobFlows `json:"-"` // the last has the flows of no job

	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Flows     int       `json:"flows"`          // in Jobs
	OnRecord  int       `json:"recorded_paths"` // of them: the others take the intended routes
	Outside   int       `json:"outside"`        // flows with an end outside the topology
	Share     float64   `json:"share"`          // of all bytes in the range that are of Flows
	Truncated bool      `json:"truncated"`      // smaller flows were not read
}

// pageSize is the API's limit.
const pageSize = 1000

// otherFlows names the flows of no job.
const otherFlows = "other flows"

// ReadTraffic asks for the flows of a range, the largest first, at most limit of them.
// The rate of a flow is its mean over the part of the range of which there are records.
func ReadTraffic(ctx context.Context, c Controller, f *topo.Fabric, r api.Range, limit int) (*Traffic, error) {
	list, err := c.Jobs(ctx, r)
	if err != nil {
		return nil, err
	}
	t := &Traffic{}
	flows, all, err := t.read(ctx, c, r, limit)
	if err != nil {
		return nil, err
	}
	jobOf := newJobIndex(list.Items)
	t.Jobs = make([]scenario.JobFlows, len(list.Items)+1)
	for i := range list.Items {
		t.Jobs[i].Name = list.Items[i].Name
	}
	t.Jobs[len(list.Items)].Name = otherFlows
	var known uint64
	seconds := t.To.Sub(t.From).Seconds()
	for i := range flows {
		x := &flows[i]
		src, okSrc := f.ByName(x.Src)
		_, okDst := f.ByName(x.Dst)
		if !okSrc || !okDst {
			t.Outside++
			continue
		}
		flow := fairshare.Flow{Key: x.Flow, Src: src, Demand: max(model.Rate(float64(x.Bytes)*8/seconds), 1), Path: pathOver(f, x)}
		if flow.Path != nil {
			t.OnRecord++
		}
		at := jobOf.of(x)
		t.Jobs[at].Flows = append(t.Jobs[at].Flows, flow)
		t.Flows++
		known += x.Bytes
	}
	if t.Share = 1; all > 0 {
		t.Share = min(1, float64(known)/float64(all))
	}
	t.Jobs = slices.DeleteFunc(t.Jobs, func(j scenario.JobFlows) bool { return len(j.Flows) == 0 })
	return t, nil
}

// read reads pages of flows. It returns the bytes of all flows of the range, too.
func (t *Traffic) read(ctx context.Context, c Controller, r api.Range, limit int) (flows []api.Flow, all uint64, err error) {
	q := api.FlowsQuery{Range: r, Paging: api.Paging{Limit: min(limit, pageSize)}}
	for {
		page, err := c.Flows(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		if q.After == "" {
			all = page.Totals.Bytes
			t.From, t.To = page.CoveredFrom, page.CoveredTo
			// Later pages are of the same range, though the clock goes on.
			q.Range = api.Range{From: page.CoveredFrom, To: page.CoveredTo}
			if k := page.Coverage.KeptFrom; k != nil && k.After(t.From) && k.Before(t.To) {
				t.From = *k
			}
			if k := page.Coverage.KeptTo; k != nil && k.After(t.From) && k.Before(t.To) {
				t.To = *k // the start of the newest slot: flows know where it ends
			}
		}
		for i := range page.Items {
			if last := page.Items[i].Last; last.After(t.To) {
				t.To = last
			}
		}
		flows = append(flows, page.Items...)
		t.Truncated = t.Truncated || page.Partial
		if page.Next == "" || len(page.Items) == 0 {
			return flows, all, nil
		}
		if len(flows) >= limit {
			t.Truncated = true
			return flows, all, nil
		}
		q.After, q.Limit = page.Next, min(limit-len(flows), pageSize)
	}
}

// jobIndex finds the job of a flow.
type jobIndex struct {
	hosts []map[string]bool
}

func newJobIndex(list []api.Job) (x jobIndex) {
	for i := range list {
		set := make(map[string]bool, len(list[i].Hosts))
		for _, h := range list[i].Hosts {
			set[h] = true
		}
		x.hosts = append(x.hosts, set)
	}
	return x
}

// of returns the first job with both ends of a flow, or the number of jobs.
func (x *jobIndex) of(flow *api.Flow) int {
	for i, set := range x.hosts {
		if set[flow.Src] && set[flow.Dst] {
			return i
		}
	}
	return len(x.hosts)
}

// pathOver returns the recorded path of a flow, or nil where the record leaves open
// which links it takes: with parallel links, or without a switch of the path.
func pathOver(f *topo.Fabric, x *api.Flow) []topo.Hop {
	if len(x.Path) == 0 {
		return nil
	}
	names := slices.Concat([]string{x.Src}, x.Path, []string{x.Dst})
	hops := make([]topo.Hop, len(names))
	for i, name := range names {
		id, ok := f.ByName(name)
		if !ok {
			return nil
		}
		hops[i].Node = id
		if i == 0 {
			continue
		}
		out := f.Node(hops[i-1].Node).PortsTo(id)
		if len(out) != 1 {
			return nil
		}
		hops[i-1].Out = out[0]
		hops[i].In = f.Port(model.Port{Node: hops[i-1].Node, Port: out[0]}).Peer.Port
	}
	return hops
}

package client

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// Clock returns the fabric's time and pace.
func (c *Client) Clock(ctx context.Context) (api.Clock, error) {
	return callJSON[api.Clock](ctx, c, "GET", "/clock", nil, nil)
}

// SetPace sets the simulated seconds per wall-clock second.
func (c *Client) SetPace(ctx context.Context, pace float64) (api.Clock, error) {
	return callJSON[api.Clock](ctx, c, "PUT", "/clock", nil, api.PaceRequest{Pace: pace})
}

// Health returns the health of the pipeline.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	return callJSON[api.Health](ctx, c, "GET", "/health", nil, nil)
}

// Sources lists what each switch reports.
func (c *Client) Sources(ctx context.Context) (api.SourceList, error) {
	return callJSON[api.SourceList](ctx, c, "GET", "/sources", nil, nil)
}

// Routes lists the routes of switches.
func (c *Client) Routes(ctx context.Context, q api.RoutesQuery) (api.RouteList, error) {
	return callJSON[api.RouteList](ctx, c, "GET", "/routes", queryParams(q), nil)
}

// Incidents lists incidents, newest first.
func (c *Client) Incidents(ctx context.Context, q api.IncidentsQuery) (api.Page[api.Incident], error) {
	return callJSON[api.Page[api.Incident]](ctx, c, "GET", "/incidents", queryParams(q), nil)
}

// Incident returns one incident with evidence, timeline and remedy.
func (c *Client) Incident(ctx context.Context, id string) (api.IncidentDetail, error) {
	return callJSON[api.IncidentDetail](ctx, c, "GET", "/incidents/"+url.PathEscape(id), nil, nil)
}

// ActOnIncident acknowledges, mutes, assigns or comments an incident.
func (c *Client) ActOnIncident(ctx context.Context, id string, r api.IncidentActionRequest) (api.IncidentAction, error) {
	return callJSON[api.IncidentAction](ctx, c, "POST", "/incidents/"+url.PathEscape(id)+"/actions", nil, r)
}

// VerifyIncident starts a check whether the fault of an incident is still there. The
// result is the verification of Incident.
func (c *Client) VerifyIncident(ctx context.Context, id string) (api.Verification, error) {
	return callJSON[api.Verification](ctx, c, "POST", "/incidents/"+url.PathEscape(id)+"/verify", nil, nil)
}

// ProveIncident starts a test of an incident's verdict by experiment. The result is the
// proof of Incident.
func (c *Client) ProveIncident(ctx context.Context, id string) (api.Proof, error) {
	return callJSON[api.Proof](ctx, c, "POST", "/incidents/"+url.PathEscape(id)+"/prove", nil, nil)
}

// Diagnoses lists verdicts about slow flows, newest first.
func (c *Client) Diagnoses(ctx context.Context, q api.DiagnosesQuery) (api.Page[api.Diagnosis], error) {
	return callJSON[api.Page[api.Diagnosis]](ctx, c, "GET", "/diagnoses", queryParams(q), nil)
}

// Diagnosis returns one diagnosis with its provenance graph.
func (c *Client) Diagnosis(ctx context.Context, id string) (api.DiagnosisDetail, error) {
	return callJSON[api.DiagnosisDetail](ctx, c, "GET", "/diagnoses/"+url.PathEscape(id), nil, nil)
}

// DiagnosisDrawing returns the provenance graph of a diagnosis as "dot" or "svg".
func (c *Client) DiagnosisDrawing(ctx context.Context, id, format string) ([]byte, error) {
	return c.call(ctx, "GET", "/diagnoses/"+url.PathEscape(id), url.Values{"format": {format}}, nil)
}

// Flows lists flows of a time range, summed over its slots.
func (c *Client) Flows(ctx context.Context, q api.FlowsQuery) (api.FlowPage, error) {
	return callJSON[api.FlowPage](ctx, c, "GET", "/flows", queryParams(q), nil)
}

// FlowGroups lists groups of flows of a time range, the largest first.
func (c *Client) FlowGroups(ctx context.Context, q api.FlowGroupsQuery) (api.FlowGroups, error) {
	return callJSON[api.FlowGroups](ctx, c, "GET", "/flow-groups", queryParams(q), nil)
}

// Jobs lists the jobs of a range, without their cells and flows.
func (c *Client) Jobs(ctx context.Context, r api.Range) (api.JobList, error) {
	return callJSON[api.JobList](ctx, c, "GET", "/jobs", queryParams(r), nil)
}

// Job returns one job of a range.
func (c *Client) Job(ctx context.Context, name string, r api.Range) (api.JobDetail, error) {
	return callJSON[api.JobDetail](ctx, c, "GET", "/jobs/"+url.PathEscape(name), queryParams(r), nil)
}

// Flow returns all records of one flow in a time range.
func (c *Client) Flow(ctx context.Context, key model.FlowKey, r api.Range) (api.FlowDetail, error) {
	return callJSON[api.FlowDetail](ctx, c, "GET", "/flows/"+url.PathEscape(key.String()), queryParams(r), nil)
}

// FlowPostcards returns the path and latency of the newest packets of a flow, at most
// limit, from the collector's memory.
func (c *Client) FlowPostcards(ctx context.Context, key model.FlowKey, limit int) (api.FlowPostcards, error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	return callJSON[api.FlowPostcards](ctx, c, "GET", "/flows/"+url.PathEscape(key.String())+"/postcards", q, nil)
}

// FlowFindings returns a page of what the flow analyses found in a time range:
// forwarding faults, losses by link, ECMP imbalance, bursts.
func (c *Client) FlowFindings(ctx context.Context, q api.FlowFindingsQuery) (api.FlowFindings, error) {
	return callJSON[api.FlowFindings](ctx, c, "GET", "/flow-findings", queryParams(q), nil)
}

// AllFlowFindings returns all pages in one.
func (c *Client) AllFlowFindings(ctx context.Context, r api.Range) (all api.FlowFindings, err error) {
	q := api.FlowFindingsQuery{Range: r, Paging: api.Paging{Limit: 1000}}
	if all, err = c.FlowFindings(ctx, q); err != nil {
		return all, err
	}
	for all.Next != "" {
		q.After = all.Next
		next, err := c.FlowFindings(ctx, q)
		if err != nil {
			return all, err
		}
		all.Append(&next)
	}
	return all, nil
}

// Traces lists packet traces, newest first.
func (c *Client) Traces(ctx context.Context, q api.TracesQuery) (api.Page[api.TraceSummary], error) {
	return callJSON[api.Page[api.TraceSummary]](ctx, c, "GET", "/traces", queryParams(q), nil)
}

// Trace returns one packet trace, hop by hop.
func (c *Client) Trace(ctx context.Context, id string) (api.Trace, error) {
	return callJSON[api.Trace](ctx, c, "GET", "/traces/"+url.PathEscape(id), nil, nil)
}

// TracePcapng returns one packet trace as a pcapng file.
func (c *Client) TracePcapng(ctx context.Context, id string) ([]byte, error) {
	return c.call(ctx, "GET", "/traces/"+url.PathEscape(id)+".pcapng", nil, nil)
}

// Port returns the time series of a port. Step is the minimum step; 0 fits the
// range.
func (c *Client) Port(ctx context.Context, node string, port model.PortID, r api.Range,
	step time.Duration,
) (api.PortSeries, error) {
	q := queryParams(r)
	if step > 0 {
		q.Set("step", step.String())
	}
	return callJSON[api.PortSeries](ctx, c, "GET", "/ports/"+url.PathEscape(node)+"/"+strconv.Itoa(int(port)), q, nil)
}

// PortsNow returns the newest state that switches wrote of their ports, or of those
// of one switch, from the collector's memory.
func (c *Client) PortsNow(ctx context.Context, node string) (api.PortsNow, error) {
	q := url.Values{}
	if node != "" {
		q.Set("node", node)
	}
	return callJSON[api.PortsNow](ctx, c, "GET", "/ports/now", q, nil)
}

// PortNow returns the newest state that a switch wrote of a port.
func (c *Client) PortNow(ctx context.Context, node, port string) (api.PortNow, error) {
	return callJSON[api.PortNow](ctx, c, "GET", "/ports/now/"+url.PathEscape(node)+"/"+url.PathEscape(port), nil, nil)
}

// HostCounters returns what a host, by name or address, sent and received; class is a
// priority, or -1 for all.
func (c *Client) HostCounters(ctx context.Context, host string, class int) (api.HostCounters, error) {
	q := url.Values{"class": {strconv.Itoa(class)}}
	return callJSON[api.HostCounters](ctx, c, "GET", "/hosts/"+url.PathEscape(host)+"/counters", q, nil)
}

// Heatmap returns a metric of all ports over time.
func (c *Client) Heatmap(ctx context.Context, q api.HeatmapQuery) (api.Heatmap, error) {
	return callJSON[api.Heatmap](ctx, c, "GET", "/ports/heatmap", queryParams(q), nil)
}

// BuiltInCounters lists all counters, with the built-in ones that counted
// something.
func (c *Client) BuiltInCounters(ctx context.Context) ([]api.Counter, error) {
	p, err := callJSON[api.Page[api.Counter]](ctx, c, "GET", "/counters", url.Values{"builtin": {"true"}}, nil)
	return p.Items, err
}

// Counters lists all custom counters.
func (c *Client) Counters(ctx context.Context) ([]api.Counter, error) {
	p, err := callJSON[api.Page[api.Counter]](ctx, c, "GET", "/counters", nil, nil)
	return p.Items, err
}

// Counter returns the time series of a counter. Step is the minimum step; 0 fits
// the range.
func (c *Client) Counter(ctx context.Context, name string, r api.Range, step time.Duration) (api.CounterSeries, error) {
	q := queryParams(r)
	if step > 0 {
		q.Set("step", step.String())
	}
	return callJSON[api.CounterSeries](ctx, c, "GET", "/counters/"+url.PathEscape(name), q, nil)
}

// AddCounter adds a counter of the mirrored packets that match a filter.
func (c *Client) AddCounter(ctx context.Context, r api.CounterRequest) (api.Counter, error) {
	return callJSON[api.Counter](ctx, c, "POST", "/counters", nil, r)
}

// RemoveCounter deletes a counter.
func (c *Client) RemoveCounter(ctx context.Context, name string) error {
	_, err := c.call(ctx, "DELETE", "/counters/"+url.PathEscape(name), nil, nil)
	return err
}

// Probes lists probes, newest first.
func (c *Client) Probes(ctx context.Context) ([]api.Probe, error) {
	p, err := callJSON[api.Page[api.Probe]](ctx, c, "GET", "/probes", nil, nil)
	return p.Items, err
}

// Probe returns one probe and its result so far.
func (c *Client) Probe(ctx context.Context, id string) (api.Probe, error) {
	return callJSON[api.Probe](ctx, c, "GET", "/probes/"+url.PathEscape(id), nil, nil)
}

// StartProbe sends guided probes and returns without waiting for the result.
func (c *Client) StartProbe(ctx context.Context, r api.ProbeRequest) (api.Probe, error) {
	return callJSON[api.Probe](ctx, c, "POST", "/probes", nil, r)
}

// Marks lists debug marks, newest first.
func (c *Client) Marks(ctx context.Context) ([]api.Mark, error) {
	p, err := callJSON[api.Page[api.Mark]](ctx, c, "GET", "/marks", nil, nil)
	return p.Items, err
}

// SetMark marks packets so that every switch mirrors them.
func (c *Client) SetMark(ctx context.Context, r api.MarkRequest) (api.Mark, error) {
	return callJSON[api.Mark](ctx, c, "POST", "/marks", nil, r)
}

// RemoveMark removes a debug mark.
func (c *Client) RemoveMark(ctx context.Context, id string) error {
	_, err := c.call(ctx, "DELETE", "/marks/"+url.PathEscape(id), nil, nil)
	return err
}

// FaultKinds lists the faults that a demo can inject.
func (c *Client) FaultKinds(ctx context.Context) ([]api.FaultKind, error) {
	p, err := callJSON[api.Page[api.FaultKind]](ctx, c, "GET", "/faults/kinds", nil, nil)
	return p.Items, err
}

// Faults lists injected faults and their detection, newest first.
func (c *Client) Faults(ctx context.Context) ([]api.Fault, error) {
	p, err := callJSON[api.Page[api.Fault]](ctx, c, "GET", "/faults", nil, nil)
	return p.Items, err
}

// InjectFault injects a fault.
func (c *Client) InjectFault(ctx context.Context, r api.FaultRequest) (api.Fault, error) {
	return callJSON[api.Fault](ctx, c, "POST", "/faults", nil, r)
}

// ReportSlowFlow reports a slow flow, which requests a diagnosis, and waits up to
// wait, at most 5 s, for the verdict.
func (c *Client) ReportSlowFlow(ctx context.Context, r api.SlowFlowReport, wait time.Duration) (api.SlowFlow, error) {
	q := url.Values{}
	if wait > 0 {
		q.Set("wait_ms", fmt.Sprint(wait.Milliseconds()))
	}
	return callJSON[api.SlowFlow](ctx, c, "POST", "/slow-flows", q, r)
}

// SlowFlows lists reported slow flows with their verdicts.
func (c *Client) SlowFlows(ctx context.Context) ([]api.SlowFlow, error) {
	p, err := callJSON[api.Page[api.SlowFlow]](ctx, c, "GET", "/slow-flows", nil, nil)
	return p.Items, err
}

// SlowFlow returns one reported slow flow with its verdicts.
func (c *Client) SlowFlow(ctx context.Context, id string) (api.SlowFlow, error) {
	return callJSON[api.SlowFlow](ctx, c, "GET", "/slow-flows/"+url.PathEscape(id), nil, nil)
}

// CompleteFilter parses a filter of "flows", "traces" or "packets" and returns its
// error, if any, and the completions at a byte offset; -1 is the end.
func (c *Client) CompleteFilter(ctx context.Context, of, text string, at int) (api.FilterCheck, error) {
	q := url.Values{"of": {of}, "text": {text}, "at": {strconv.Itoa(at)}}
	return callJSON[api.FilterCheck](ctx, c, "GET", "/filter/complete", q, nil)
}

// All iterates over a list page by page: it calls fetch with "" first and then with
// the Next of the previous page.
func All[T any](fetch func(after string) (api.Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for after := ""; ; {
			p, err := fetch(after)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range p.Items {
				if !yield(item, nil) {
					return
				}
			}
			if after = p.Next; after == "" {
				return
			}
		}
	}
}

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

// Topology describes the fabric.
func (c *Client) Topology(ctx context.Context) (api.Topology, error) {
	return callJSON[api.Topology](ctx, c, "GET", "/topology", nil, nil)
}

// State returns the state of every port and node: now, or at a time that is not
// zero.
func (c *Client) State(ctx context.Context, at time.Time) (api.State, error) {
	q := url.Values{}
	if !at.IsZero() {
		q.Set("at", at.UTC().Format(time.RFC3339Nano))
	}
	return callJSON[api.State](ctx, c, "GET", "/state", q, nil)
}

// Clock tells the fabric's time and pace.
func (c *Client) Clock(ctx context.Context) (api.Clock, error) {
	return callJSON[api.Clock](ctx, c, "GET", "/clock", nil, nil)
}

// SetPace sets how many seconds of a simulated fabric pass in one of the wall.
func (c *Client) SetPace(ctx context.Context, pace float64) (api.Clock, error) {
	return callJSON[api.Clock](ctx, c, "PUT", "/clock", nil, api.PaceRequest{Pace: pace})
}

// Health returns the pipeline's account.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	return callJSON[api.Health](ctx, c, "GET", "/health", nil, nil)
}

// Incidents lists incidents, newest first.
func (c *Client) Incidents(ctx context.Context, q api.IncidentsQuery) (api.Page[api.Incident], error) {
	return callJSON[api.Page[api.Incident]](ctx, c, "GET", "/incidents", queryParams(q), nil)
}

// Incident returns all that is known of one.
func (c *Client) Incident(ctx context.Context, id string) (api.IncidentDetail, error) {
	return callJSON[api.IncidentDetail](ctx, c, "GET", "/incidents/"+url.PathEscape(id), nil, nil)
}

// Diagnoses lists verdicts about slow flows, newest first.
func (c *Client) Diagnoses(ctx context.Context, q api.DiagnosesQuery) (api.Page[api.Diagnosis], error) {
	return callJSON[api.Page[api.Diagnosis]](ctx, c, "GET", "/diagnoses", queryParams(q), nil)
}

// Diagnosis returns one with its graph.
func (c *Client) Diagnosis(ctx context.Context, id string) (api.DiagnosisDetail, error) {
	return callJSON[api.DiagnosisDetail](ctx, c, "GET", "/diagnoses/"+url.PathEscape(id), nil, nil)
}

// DiagnosisDrawing returns a diagnosis's graph as "dot" or "svg".
func (c *Client) DiagnosisDrawing(ctx context.Context, id, format string) ([]byte, error) {
	return c.call(ctx, "GET", "/diagnoses/"+url.PathEscape(id), url.Values{"format": {format}}, nil)
}

// Flows sums up flows over a time range.
func (c *Client) Flows(ctx context.Context, q api.FlowsQuery) (api.FlowPage, error) {
	return callJSON[api.FlowPage](ctx, c, "GET", "/flows", queryParams(q), nil)
}

// Flow returns all that is known of one flow in a range.
func (c *Client) Flow(ctx context.Context, key model.FlowKey, r api.Range) (api.FlowDetail, error) {
	return callJSON[api.FlowDetail](ctx, c, "GET", "/flows/"+url.PathEscape(key.String()), queryParams(r), nil)
}

// Traces lists packets' ways, newest first.
func (c *Client) Traces(ctx context.Context, q api.TracesQuery) (api.Page[api.TraceSummary], error) {
	return callJSON[api.Page[api.TraceSummary]](ctx, c, "GET", "/traces", queryParams(q), nil)
}

// Trace returns one packet's way.
func (c *Client) Trace(ctx context.Context, id string) (api.Trace, error) {
	return callJSON[api.Trace](ctx, c, "GET", "/traces/"+url.PathEscape(id), nil, nil)
}

// TracePcapng returns one packet's way as a pcapng file.
func (c *Client) TracePcapng(ctx context.Context, id string) ([]byte, error) {
	return c.call(ctx, "GET", "/traces/"+url.PathEscape(id)+".pcapng", nil, nil)
}

// Port returns one port over time, in steps of at least so long; 0: as fits.
func (c *Client) Port(ctx context.Context, node string, port model.PortID, r api.Range, step time.Duration) (api.PortSeries, error) {
	q := queryParams(r)
	if step > 0 {
		q.Set("step", step.String())
	}
	return callJSON[api.PortSeries](ctx, c, "GET", "/ports/"+url.PathEscape(node)+"/"+strconv.Itoa(int(port)), q, nil)
}

// Heatmap returns a measure of all ports over time.
func (c *Client) Heatmap(ctx context.Context, q api.HeatmapQuery) (api.Heatmap, error) {
	return callJSON[api.Heatmap](ctx, c, "GET", "/ports/heatmap", queryParams(q), nil)
}

// Counters lists all counters.
func (c *Client) Counters(ctx context.Context) ([]api.Counter, error) {
	p, err := callJSON[api.Page[api.Counter]](ctx, c, "GET", "/counters", nil, nil)
	return p.Items, err
}

// Counter returns one over time, in steps of at least so long; 0: as fits.
func (c *Client) Counter(ctx context.Context, name string, r api.Range, step time.Duration) (api.CounterSeries, error) {
	q := queryParams(r)
	if step > 0 {
		q.Set("step", step.String())
	}
	return callJSON[api.CounterSeries](ctx, c, "GET", "/counters/"+url.PathEscape(name), q, nil)
}

// AddCounter counts the packets that match a filter from now on.
func (c *Client) AddCounter(ctx context.Context, r api.CounterRequest) (api.Counter, error) {
	return callJSON[api.Counter](ctx, c, "POST", "/counters", nil, r)
}

// RemoveCounter stops counting.
func (c *Client) RemoveCounter(ctx context.Context, name string) error {
	_, err := c.call(ctx, "DELETE", "/counters/"+url.PathEscape(name), nil, nil)
	return err
}

// Probes lists probes, newest first.
func (c *Client) Probes(ctx context.Context) ([]api.Probe, error) {
	p, err := callJSON[api.Page[api.Probe]](ctx, c, "GET", "/probes", nil, nil)
	return p.Items, err
}

// Probe returns one and what has come of it.
func (c *Client) Probe(ctx context.Context, id string) (api.Probe, error) {
	return callJSON[api.Probe](ctx, c, "GET", "/probes/"+url.PathEscape(id), nil, nil)
}

// StartProbe sends guided probes and returns before they have arrived.
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

// RemoveMark ends a mark.
func (c *Client) RemoveMark(ctx context.Context, id string) error {
	_, err := c.call(ctx, "DELETE", "/marks/"+url.PathEscape(id), nil, nil)
	return err
}

// FaultKinds lists what the lab of a demo can break.
func (c *Client) FaultKinds(ctx context.Context) ([]api.FaultKind, error) {
	p, err := callJSON[api.Page[api.FaultKind]](ctx, c, "GET", "/faults/kinds", nil, nil)
	return p.Items, err
}

// Faults lists what was broken and what was found, newest first.
func (c *Client) Faults(ctx context.Context) ([]api.Fault, error) {
	p, err := callJSON[api.Page[api.Fault]](ctx, c, "GET", "/faults", nil, nil)
	return p.Items, err
}

// InjectFault breaks something.
func (c *Client) InjectFault(ctx context.Context, r api.FaultRequest) (api.Fault, error) {
	return callJSON[api.Fault](ctx, c, "POST", "/faults", nil, r)
}

// ReportSlowFlow asks why a flow is slow and waits some time for the verdict, up
// to five seconds.
func (c *Client) ReportSlowFlow(ctx context.Context, r api.SlowFlowReport, wait time.Duration) (api.SlowFlow, error) {
	q := url.Values{}
	if wait > 0 {
		q.Set("wait_ms", fmt.Sprint(wait.Milliseconds()))
	}
	return callJSON[api.SlowFlow](ctx, c, "POST", "/slow-flows", q, r)
}

// SlowFlows returns what was reported, and found of it.
func (c *Client) SlowFlows(ctx context.Context) ([]api.SlowFlow, error) {
	p, err := callJSON[api.Page[api.SlowFlow]](ctx, c, "GET", "/slow-flows", nil, nil)
	return p.Items, err
}

// SlowFlow returns what was found of a flow that was reported.
func (c *Client) SlowFlow(ctx context.Context, id string) (api.SlowFlow, error) {
	return callJSON[api.SlowFlow](ctx, c, "GET", "/slow-flows/"+url.PathEscape(id), nil, nil)
}

// CompleteFilter says whether a filter of "flows", "traces" or "packets" is
// right, and what could stand at a byte of it; -1 is the end.
func (c *Client) CompleteFilter(ctx context.Context, of, text string, at int) (api.FilterCheck, error) {
	q := url.Values{"of": {of}, "text": {text}, "at": {strconv.Itoa(at)}}
	return callJSON[api.FilterCheck](ctx, c, "GET", "/filter/complete", q, nil)
}

// All reads a list page by page: ask is called with "" first and then with the
// Next of the page before.
func All[T any](ask func(after string) (api.Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for after := ""; ; {
			p, err := ask(after)
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

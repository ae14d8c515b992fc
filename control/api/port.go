package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// PortSeries is a port over time.
type PortSeries struct {
	PortRef
	RateBps  int64       `json:"rate_bps"`
	From     time.Time   `json:"from"`
	To       time.Time   `json:"to"`
	StepNs   int64       `json:"step_ns" doc:"0: raw samples, not aggregated"`
	Samples  []PortPoint `json:"samples" doc:"Oldest first"`
	Complete bool        `json:"complete" doc:"The whole range is covered; otherwise its oldest part is missing"`
}

// PortPoint is one sample of a port, or the means of one step.
type PortPoint struct {
	Time        time.Time `json:"time"`
	QueueBytes  int64     `json:"queue_bytes"`
	LatencyNs   int64     `json:"latency_ns"`
	LoadBps     int64     `json:"load_bps"`
	PausedShare float64   `json:"paused_share"`
	Samples     uint64    `json:"samples"`
}

// Heatmap is a metric by port and time.
type Heatmap struct {
	Metric       string       `json:"metric" enum:"queue_bytes,latency_ns,load_bps,paused_share"`
	From         time.Time    `json:"from"`
	StepNs       int64        `json:"step_ns"`
	Steps        int          `json:"steps"`
	Ports        []PortRef    `json:"ports" doc:"Rows, highest values first"`
	Values       [][]*float64 `json:"values" doc:"By port, then step: the maximum of the step; null: no sample"`
	Max          float64      `json:"max"`
	CoveredFrom  time.Time    `json:"covered_from" doc:"Start of the covered part of the range: a response reads a bounded number of samples, newest first"`
	OmittedPorts int          `json:"omitted_ports" doc:"Ports with samples beyond the top N"`
	Complete     bool         `json:"complete" doc:"All samples and ports of the range are included; otherwise see covered_from and omitted_ports"`
}

type portInput struct {
	Range
	Node string `path:"node" maxLength:"256"`
	Port string `path:"port" maxLength:"256" doc:"Port number or interface name, e.g. 3 or Ethernet8"`
	Step string `query:"step" maxLength:"16" doc:"Minimum step, e.g. 1s; default: fits the range"`
}

// HeatmapQuery selects a heat map.
type HeatmapQuery struct {
	Range
	Metric string `query:"metric" enum:"queue_bytes,latency_ns,load_bps,paused_share" default:"queue_bytes"`
	Steps  int    `query:"steps" minimum:"1" maximum:"600" default:"60"`
	Top    int    `query:"top" minimum:"1" maximum:"1000" default:"200" doc:"Number of ports, highest values first"`
	Node   string `query:"node" maxLength:"256" doc:"Only ports of this node"`
}

func (s *Server) portRoutes() {
	get(s, "/ports/heatmap", "get-heatmap", "Ports", "Heat map of a metric by port and time",
		coalesced(s, "get-heatmap", s.heatmap))
	get(s, "/ports/{node}/{port}", "get-port", "Ports", "One port over time", coalesced(s, "get-port", s.portSeries))
	get(s, "/ports/{node}/{port}/counters", "get-port-counters", "Ports",
		"Queue watermark, PFC by priority, losses by pattern and ECN marks of one port in a range",
		coalesced(s, "get-port-counters", s.portCounters))
}

// maxPoints bounds the points of a time series.
const maxPoints = 2000

func (s *Server) portSeries(ctx context.Context, in *portInput) (p PortSeries, err error) {
	q, err := s.query(in.Range, Paging{})
	if err != nil {
		return p, err
	}
	f := s.deps.Live.Fabric()
	at, err := findPort(f, in.Node, in.Port)
	if err != nil {
		return p, fmt.Errorf("%w: %w", err, ErrNotFound)
	}
	q.Node, q.Port = in.Node, at.Port
	if q.Step, err = parseStep(in.Step, q.To.Sub(q.From), maxPoints); err != nil {
		return p, err
	}
	p = PortSeries{
		PortRef: newPortRef(f, at), RateBps: int64(f.Port(at).Rate),
		From: q.From, To: q.To, StepNs: int64(q.Step), Samples: []PortPoint{},
	}
	next, _, err := walkRecords(ctx, s, s.deps.Records.Ports, q, func(r *record.PortSample) bool {
		p.Samples = append(p.Samples, PortPoint{
			Time: r.Time, QueueBytes: int64(r.Queue), LatencyNs: int64(r.Latency), LoadBps: int64(r.Load),
			PausedShare: r.Paused, Samples: r.Samples,
		})
		return len(p.Samples) < maxPoints
	})
	p.Complete = next == ""
	slices.Reverse(p.Samples)
	return p, err
}

// parseStep returns the step of a time series. By default ranges of more than 1
// minute are aggregated into about 600 steps.
func parseStep(text string, span time.Duration, most int) (time.Duration, error) {
	if text == "" {
		if span <= time.Minute {
			return 0, nil
		}
		return span / 600, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("step %q, want a duration such as 1s: %w", text, ErrInvalid)
	}
	if d > 0 && span/d > time.Duration(most) {
		return 0, fmt.Errorf("step %s in a range of %s, want at most %d steps: %w", d, span, most, ErrInvalid)
	}
	return d, nil
}

func (s *Server) heatmap(ctx context.Context, in *HeatmapQuery) (m Heatmap, err error) {
	q, err := s.query(in.Range, Paging{})
	if err != nil {
		return m, err
	}
	q.Node = in.Node
	step := max(q.To.Sub(q.From)/time.Duration(in.Steps), 1)
	if step >= store.Second { // finer steps than the store's rollups need raw samples
		q.Step = step
	}
	rows := map[PortRef][]*float64{}
	covered := q.To
	visit := func(r *record.PortSample) bool {
		covered = r.Time // newest first
		at := int(r.Time.Sub(q.From) / step)
		if at < 0 || at >= in.Steps {
			return true // a rollup's step may begin before the range
		}
		port := PortRef{Node: r.Node, Port: r.Port}
		row := rows[port]
		if row == nil {
			row = make([]*float64, in.Steps)
			rows[port] = row
		}
		if v := metricValue(r, in.Metric); row[at] == nil || *row[at] < v {
			row[at] = &v
		}
		return true
	}
	// Samples are as small as rollup steps, so the same budget applies.
	reads := 1
	if q.Step == 0 {
		reads = seriesBudget
	}
	for range reads {
		if q.After, _, err = walkRecords(ctx, s, s.deps.Records.Ports, q, visit); err != nil {
			return m, err
		}
		if q.After == "" {
			break
		}
	}
	m = Heatmap{
		Metric: in.Metric, From: q.From, StepNs: int64(step), Steps: in.Steps, CoveredFrom: covered, Complete: q.After == "",
		Ports: []PortRef{}, Values: [][]*float64{},
	}
	if m.Complete {
		m.CoveredFrom = q.From
	}
	s.fillHeatmap(&m, rows, in.Top)
	return m, nil
}

// fillHeatmap keeps the rows with the highest values.
func (s *Server) fillHeatmap(m *Heatmap, rows map[PortRef][]*float64, top int) {
	heat := make(map[PortRef]float64, len(rows))
	for p, row := range rows {
		m.Ports = append(m.Ports, p)
		for _, v := range row {
			if v != nil {
				heat[p] = max(heat[p], *v)
			}
		}
		m.Max = max(m.Max, heat[p])
	}
	slices.SortFunc(m.Ports, func(a, b PortRef) int {
		return cmp.Or(cmp.Compare(heat[b], heat[a]), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Port, b.Port))
	})
	if len(m.Ports) > top {
		m.OmittedPorts = len(m.Ports) - top
		m.Ports, m.Complete = m.Ports[:top], false
	}
	f := s.deps.Live.Fabric()
	for i := range m.Ports {
		p := &m.Ports[i]
		m.Values = append(m.Values, rows[*p])
		if id, ok := f.ByName(p.Node); ok && f.Port(model.Port{Node: id, Port: p.Port}) != nil {
			*p = newPortRef(f, model.Port{Node: id, Port: p.Port})
		}
	}
}

func metricValue(r *record.PortSample, metric string) float64 {
	switch metric {
	case "latency_ns":
		return float64(r.Latency)
	case "load_bps":
		return float64(r.Load)
	case "paused_share":
		return r.Paused
	}
	return float64(r.Queue)
}

package api

import (
	"context"
	"time"
)

// Health is the account of the pipeline: what came in, what went on, and what
// was lost, stage by stage.
type Health struct {
	Time     time.Time `json:"time"`
	State    string    `json:"state" enum:"ok,degraded,failed"`
	UptimeMs int64     `json:"uptime_ms"`
	Stages   []Stage   `json:"stages" doc:"In the order that a report passes them, from switch to store"`
	Store    Storage   `json:"store"`
	Alerts   []string  `json:"alerts" doc:"What is wrong and what to do, for people"`

	Sources    []SourceHealth `json:"sources" doc:"What switches report, by kind; those that were heard since the start"`
	Silent     []string       `json:"silent" doc:"Switches that reported and do not any more, the first hundred"`
	ReportAges []ReportAge    `json:"-"` // for metrics
}

// SourceHealth is one kind of report.
type SourceHealth struct {
	Source   string  `json:"source" doc:"flowset, label, mirror, epoch"`
	Switches int     `json:"switches" doc:"That have reported it"`
	Silent   int     `json:"silent" doc:"Of those: that have not for long"`
	AgeMs    float64 `json:"age_ms" doc:"Of the newest report"`
}

// ReportAge is when one switch was heard of last by one kind of report.
type ReportAge struct {
	Switch, Source string
	AgeMs          float64
}

// Stage is one part of the pipeline. In = Out + all losses + what is queued,
// where a stage makes one of one.
type Stage struct {
	Name         string      `json:"name" doc:"Stable: switches, transport, translator, memory, readers, analyzers, incidents, store"`
	Title        string      `json:"title"`
	Unit         string      `json:"unit" doc:"What is counted: reports, records, …"`
	State        string      `json:"state" enum:"ok,degraded,failed,idle"`
	In           uint64      `json:"in_total"`
	Out          uint64      `json:"out_total"`
	InPerSecond  float64     `json:"in_per_second"`
	OutPerSecond float64     `json:"out_per_second"`
	Queued       int         `json:"queued"`
	QueueLimit   int         `json:"queue_limit" doc:"0: it has no queue"`
	Losses       []StageLoss `json:"losses" doc:"Every reason, also those that have not happened"`
}

// StageLoss is what a stage lost for one reason.
type StageLoss struct {
	Reason    string  `json:"reason"`
	About     string  `json:"about,omitempty"`
	Count     uint64  `json:"total"`
	PerSecond float64 `json:"per_second"`
	Expected  bool    `json:"expected" doc:"By design, as when equal reports are merged; no reason to worry"`
}

// Storage is the store's account.
type Storage struct {
	Kind     string     `json:"kind" doc:"duckdb"`
	Bytes    int64      `json:"bytes"`
	MaxBytes int64      `json:"max_bytes" doc:"0: no limit"`
	Oldest   *time.Time `json:"oldest,omitempty" doc:"Record that is still kept"`
	Expired  uint64     `json:"forgotten_total" doc:"Records dropped by age and size"`
	Memory   int64      `json:"-"` // bytes that the engine holds; for metrics
}

func (s *Server) healthRoutes() {
	get(s, "/health", "get-health", "Health", "The pipeline from switch to store: rates, losses by reason, queues",
		func(context.Context, *struct{}) (Health, error) { return s.deps.Live.Health(), nil })
}

package api

import (
	"context"
	"time"
)

// Health is the state of the pipeline: input, output and losses of every stage.
type Health struct {
	Time     time.Time `json:"time"`
	State    string    `json:"state" enum:"ok,degraded,failed"`
	UptimeMs int64     `json:"uptime_ms"`
	Stages   []Stage   `json:"stages" doc:"In pipeline order, from switch to store"`
	Store    Storage   `json:"store"`
	Alerts   []string  `json:"alerts" doc:"Problems and what to do about them, as text"`

	Sources    []SourceHealth `json:"sources" doc:"Kinds of reports received since the start"`
	Silent     []string       `json:"silent" doc:"Switches that have stopped reporting, at most 100"`
	ReportAges []ReportAge    `json:"-"` // for metrics
}

// SourceHealth is the freshness of one kind of report.
type SourceHealth struct {
	Source   string  `json:"source" doc:"flowset, label, mirror, epoch"`
	Switches int     `json:"switches" doc:"Switches that have sent such reports"`
	Silent   int     `json:"silent" doc:"Switches that have stopped sending them"`
	AgeMs    float64 `json:"age_ms" doc:"Age of the newest report"`
}

// ReportAge is the age of one switch's newest report of one kind.
type ReportAge struct {
	Switch, Source string
	AgeMs          float64
}

// Stage is one stage of the pipeline. In = Out + losses + queued, if the stage
// emits one output per input.
type Stage struct {
	Name         string      `json:"name" doc:"Stable: switches, transport, translator, memory, readers, analyzers, incidents, store"`
	Title        string      `json:"title"`
	Unit         string      `json:"unit" doc:"Unit of the counters: reports, records, …"`
	State        string      `json:"state" enum:"ok,degraded,failed,idle"`
	In           uint64      `json:"in_total"`
	Out          uint64      `json:"out_total"`
	InPerSecond  float64     `json:"in_per_second"`
	OutPerSecond float64     `json:"out_per_second"`
	Queued       int         `json:"queued"`
	QueueLimit   int         `json:"queue_limit" doc:"0: no queue"`
	Losses       []StageLoss `json:"losses" doc:"All reasons, including those with count 0"`
}

// StageLoss counts a stage's losses for one reason.
type StageLoss struct {
	Reason    string  `json:"reason"`
	About     string  `json:"about,omitempty"`
	Count     uint64  `json:"total"`
	PerSecond float64 `json:"per_second"`
	Expected  bool    `json:"expected" doc:"By design, e.g. duplicate reports merged; harmless"`
}

// Storage is the state of the store.
type Storage struct {
	Kind     string     `json:"kind" doc:"duckdb"`
	Bytes    int64      `json:"bytes"`
	MaxBytes int64      `json:"max_bytes" doc:"0: no limit"`
	Oldest   *time.Time `json:"oldest,omitempty" doc:"Time of the oldest record"`
	Expired  uint64     `json:"expired_total" doc:"Records deleted by the age and size limits"`
	Memory   int64      `json:"-"` // bytes that the engine holds; for metrics
}

func (s *Server) healthRoutes() {
	get(s, "/health", "get-health", "Health", "Pipeline health from switch to store: rates, losses by reason, queues",
		func(context.Context, *struct{}) (Health, error) { return s.deps.Live.Health(), nil })
}

package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Health is the state of the pipeline: input, output and losses of every stage.
type Health struct {
	Time     time.Time `json:"time"`
	State    string    `json:"state" enum:"ok,no-data,degraded,stalled,failed" doc:"no-data: no report was received since the start; stalled: a stage has work and makes no progress"`
	NoData   *NoData   `json:"no_data,omitempty" doc:"How to get data, until the first report is received"`
	UptimeMs int64     `json:"uptime_ms"`
	Stages   []Stage   `json:"stages" doc:"In pipeline order, from switch to store"`
	Store    Storage   `json:"store"`
	Panics   uint64    `json:"panics_total" doc:"Recovered panics of reports and analyses"`
	Alerts   []string  `json:"alerts" doc:"Problems and what to do about them, as text"`

	Sources    []SourceHealth `json:"sources" doc:"Kinds of reports received since the start"`
	Silent     []string       `json:"silent" doc:"Switches that have stopped reporting, at most 100"`
	ReportAges []ReportAge    `json:"-"` // for metrics
	Wrong      []WrongSource  `json:"-"` // of SourceList

	Refused []RefusedSource `json:"refused_sources" doc:"Addresses of refused reports, those with most refusals first, at most 20"`

	TokenFailures []TokenFailures `json:"token_failures" doc:"Client addresses with the most wrong API tokens, at most 10, until 10 min after the last"`
}

// NoData is what a client shows while no report was received.
type NoData struct {
	Text   string          `json:"text" doc:"That there is no data, and where switches send reports to"`
	SendTo []SourceAddress `json:"send_to"`
	Try    []TryCommand    `json:"try" doc:"How to try Weft without switches"`
}

// SourceAddress is where the reports of a source are received.
type SourceAddress struct {
	Source  string `json:"source" doc:"dta, int, erspan"`
	Title   string `json:"title"`
	Address string `json:"address"`
}

// TryCommand is a command line that brings data.
type TryCommand struct {
	About   string `json:"about"`
	Command string `json:"command"`
}

// TokenFailures counts the wrong tokens of one client address.
type TokenFailures struct {
	Address string    `json:"address" doc:"IPv4 address or IPv6 network of 64 bits"`
	Count   uint64    `json:"count"`
	Last    time.Time `json:"last" doc:"By the clock of the controller's machine"`
}

// RefusedSource is a source address whose reports were refused.
type RefusedSource struct {
	Input     string            `json:"input" doc:"What they were sent to: dta, int, erspan"`
	Address   string            `json:"address"`
	Datagrams uint64            `json:"datagrams_total" doc:"Refused datagrams, or reports of an accepted one"`
	Reasons   map[string]uint64 `json:"reasons" doc:"The same by reason"`
}

// SourceHealth is the freshness of one kind of report.
type SourceHealth struct {
	Source   string  `json:"source" doc:"flowset, label, mirror, epoch"`
	Switches int     `json:"switches" doc:"Switches that have sent such reports"`
	Silent   int     `json:"silent" doc:"Switches that have stopped sending them"`
	AgeMs    float64 `json:"age_ms" doc:"Age of the newest report"`
}

// ReportAge is what one switch has sent of one kind of report.
type ReportAge struct {
	Switch  string  `json:"switch"`
	Source  string  `json:"source" doc:"flowset, label, mirror, epoch, diagnosis-request, counters, packet-sample, flow-record, route"`
	Reports uint64  `json:"reports_total" doc:"Used by the analyses, since the start"`
	AgeMs   float64 `json:"age_ms" doc:"Of the newest"`
	Silent  bool    `json:"silent" doc:"The switch sent some before, and nothing of any kind for controller.silent_after"`
}

// SourceList is what all switches have sent.
type SourceList struct {
	Time  time.Time     `json:"time"`
	Items []ReportAge   `json:"items" doc:"Ascending by switch and source"`
	Wrong []WrongSource `json:"wrong" doc:"Sources that cannot be right, by what others count of the same packets"`
}

// WrongSource is a source that contradicts others which count the same packets.
type WrongSource struct {
	Switch    string    `json:"switch"`
	Port      *PortRef  `json:"port,omitempty" doc:"Of a counter: its port; of a flowset: where it was found"`
	Source    string    `json:"source" enum:"flowset,packets sent,bytes sent,packets received,bytes received,packets to sample"`
	Protocol  string    `json:"protocol,omitempty" doc:"That a counter comes by: sFlow, gNMI, OTLP; absent: port states of Weft"`
	State     string    `json:"state" enum:"lying,resetting,silent"`
	Share     float64   `json:"share" doc:"Of lying: by how much it is wrong; -0.01 is 1 % too little"`
	Witnesses int       `json:"witnesses" doc:"Other counts of the same packets, which agree"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	Text      string    `json:"text"`
}

// Stage is one stage of the pipeline. In = Out + losses + queued, if the stage
// emits one output per input.
type Stage struct {
	Name         string      `json:"name" doc:"Stable: switches, transport, translator, memory, readers, analyzers, incidents, store"`
	Title        string      `json:"title"`
	Unit         string      `json:"unit" doc:"Unit of the counters: reports, records, …"`
	State        string      `json:"state" enum:"ok,degraded,stalled,failed,idle"`
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
		func(context.Context, *struct{}) (Health, error) { return s.health(), nil })
	get(s, "/sources", "get-sources", "Health", "What each switch reports: kinds, numbers, ages, and which sources are wrong",
		func(context.Context, *struct{}) (SourceList, error) {
			h := s.deps.Live.Health()
			list := SourceList{Time: h.Time, Items: append([]ReportAge{}, h.ReportAges...), Wrong: append([]WrongSource{}, h.Wrong...)}
			slices.SortFunc(list.Items, func(a, b ReportAge) int {
				return cmp.Or(strings.Compare(a.Switch, b.Switch), strings.Compare(a.Source, b.Source))
			})
			return list, nil
		})
}

// shownAddresses bounds the addresses with wrong tokens in health and metrics.
const shownAddresses = 10

// health is that of the pipeline, with the problems of the API itself.
func (s *Server) health() Health {
	h := s.deps.Live.Health()
	for _, f := range s.failures.most(shownAddresses) {
		h.TokenFailures = append(h.TokenFailures, TokenFailures{Address: f.text(), Count: f.count, Last: f.last.UTC()})
		if f.count >= uint64(s.cfg.TokenFailures) {
			h.Alerts = append(h.Alerts, fmt.Sprintf("%d wrong API tokens from %s; correct the client or block the address",
				f.count, f.text()))
		}
	}
	degraded := func(text string, err error) {
		h.Alerts = append(h.Alerts, text+": "+err.Error())
		if h.State == "ok" {
			h.State = "degraded"
		}
	}
	if err := s.accepts.recent(time.Now()); err != nil {
		degraded("the API could not accept connections in the last minute; if it is out of files, raise the limit "+
			"(LimitNOFILE, ulimit -n)", err)
	}
	if s.audit != nil {
		if err := s.audit.lastError(); err != nil {
			degraded("the audit log of the API is not written; check the disk and the file's permissions", err)
		}
	}
	return h
}

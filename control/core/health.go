package core

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/wire/dta"
)

// PipelineStages is the way of reports from the translator's door through memory to the
// analyses: what the translator took in, what the inbox lost, what the
// controller made of it.
func PipelineStages(in translate.IntakeStats, overwritten uint64, c Stats) []api.Stage {
	var refused uint64
	for i, n := range in.Refused {
		if dta.Verdict(i) != dta.Stored {
			refused += n
		}
	}
	translator := api.Stage{
		Name: "translator", Title: "DTA translator", Unit: "reports", In: in.Reports, Out: in.Stored,
		Losses: []api.StageLoss{
			{Reason: "duplicate", Count: in.Duplicate, Expected: true},
			{Reason: "stale", About: "too late to tell from a repetition", Count: in.Stale},
			{Reason: "refused", About: "no memory for them, or above the rate", Count: refused},
			{Reason: "malformed", About: "datagrams", Count: in.Foreign + in.Truncated},
		},
	}
	var read, used uint64
	var unused []api.StageLoss
	for k, n := range c.Reports {
		read += n
		used += n - c.Refused[k]
		unused = append(unused, api.StageLoss{Reason: "unreadable " + Kind(k).String(), Count: c.Refused[k]})
	}
	unused = append(unused,
		api.StageLoss{Reason: "late flowset", About: "flowsets whose slot had been judged", Count: c.Flowsets.Late},
		api.StageLoss{Reason: "odd flowset", About: "flowsets of another slot length, or of a clock that is ahead", Count: c.Flowsets.Odd})
	memory := api.Stage{
		Name: "memory", Title: "Queryable memory", Unit: "reports", In: in.Stored, Out: read + c.Unplanned,
		Losses: []api.StageLoss{{Reason: "overwritten", About: "before they were read", Count: overwritten}},
	}
	analyzers := api.Stage{
		Name: "analyzers", Title: "Analyses", Unit: "reports", In: read + c.Unplanned, Out: used,
		Losses: append(unused, api.StageLoss{Reason: "unplanned", About: "to lists that are nobody's", Count: c.Unplanned}),
	}
	return []api.Stage{translator, memory, analyzers}
}

// HealthStage is the keeper's part of the pipeline's account.
func (k *BatchWriter) HealthStage() api.Stage {
	s := k.Stats()
	return api.Stage{
		Name: "store", Title: "Store (DuckDB)", Unit: "records", In: s.Taken, Out: s.Kept, Queued: s.Waiting, QueueLimit: k.most,
		Losses: []api.StageLoss{
			{Reason: "shed ports", About: "the queue was half full: the store was too slow", Count: s.Shed.Ports},
			{Reason: "shed flows", About: "it was full to three quarters", Count: s.Shed.Flows},
			{Reason: "shed losses", About: "to seven eighths", Count: s.Shed.Losses},
			{Reason: "shed counters", About: "to seven eighths", Count: s.Shed.Counters},
			{Reason: "shed traces", About: "it was full", Count: s.Shed.Traces},
			{Reason: "failed", About: "the store refused them", Count: s.Failed},
		},
	}
}

// HealthTracker turns totals of stages into rates and states, from one look to the
// next. Many goroutines may use it.
type HealthTracker struct {
	began time.Time

	mu   sync.Mutex
	at   time.Time
	last map[string]api.Stage
	rate map[string]api.Stage
}

// NewHealthTracker makes the account of something that began at a time.
func NewHealthTracker(began time.Time) *HealthTracker { return &HealthTracker{began: began} }

// Health is the account of stages at a time: a stage that has lost something
// recentWindow, not by design, is degraded.
func (r *HealthTracker) Health(now time.Time, stages []api.Stage) api.Health {
	h := api.Health{Time: now, State: "ok", UptimeMs: now.Sub(r.began).Milliseconds(), Alerts: []string{}}
	h.Stages = r.updateRates(now, stages)
	for i := range h.Stages {
		st := &h.Stages[i]
		if st.State == "degraded" {
			h.State = "degraded"
			h.Alerts = append(h.Alerts, fmt.Sprintf("%s loses %s", st.Title, st.Unit))
		}
	}
	h.Store = api.Storage{Kind: "duckdb"}
	return h
}

// updateRates sets rates and states. Looks that follow each other closely share rates.
func (r *HealthTracker) updateRates(now time.Time, stages []api.Stage) []api.Stage {
	r.mu.Lock()
	defer r.mu.Unlock()
	renew := now.Sub(r.at) >= time.Second
	if renew {
		span := now.Sub(r.at).Seconds()
		r.rate = map[string]api.Stage{}
		for _, st := range stages {
			was, known := r.last[st.Name]
			if !known {
				continue
			}
			n := api.Stage{InPerSecond: float64(st.In-was.In) / span, OutPerSecond: float64(st.Out-was.Out) / span}
			for i, l := range st.Losses {
				n.Losses = append(n.Losses, api.StageLoss{PerSecond: float64(l.Count-was.Losses[i].Count) / span})
			}
			r.rate[st.Name] = n
		}
		r.at, r.last = now, map[string]api.Stage{}
		for _, st := range stages {
			st.Losses = slices.Clone(st.Losses)
			r.last[st.Name] = st
		}
	}
	for i := range stages {
		st := &stages[i]
		n := r.rate[st.Name]
		st.InPerSecond, st.OutPerSecond, st.State = n.InPerSecond, n.OutPerSecond, "ok"
		if st.In == 0 {
			st.State = "idle"
		}
		for j := range n.Losses {
			l := &st.Losses[j]
			if l.PerSecond = n.Losses[j].PerSecond; l.PerSecond > 0 && !l.Expected {
				st.State = "degraded"
			}
		}
	}
	return stages
}

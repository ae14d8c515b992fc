package core

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/wire/dta"
)

// PipelineStages are the stages from the translator through memory to the
// analyses: what the translator accepted, what was overwritten unread, what the
// controller used.
func PipelineStages(in translate.IntakeStats, overwritten uint64, c control.Stats) []api.Stage {
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
			{Reason: "stale", About: "too late to distinguish from a retransmission", Count: in.Stale},
			{Reason: "refused", About: "no such list, or above the rate limit", Count: refused},
			{Reason: "malformed", About: "datagrams", Count: in.UnknownFormat + in.Truncated},
		},
	}
	var read, used uint64
	var unused []api.StageLoss
	for k, n := range c.Reports {
		read += n
		rejected := uint64(0)
		for _, count := range c.Rejected[k] {
			rejected += count
		}
		used += n - rejected - c.Refused[k] - c.Unknown[k] - c.Untimely[k] - c.Panicked[k]
		kind := control.Kind(k).String()
		unused = append(unused,
			api.StageLoss{Reason: "malformed " + kind, Count: c.Refused[k]},
			api.StageLoss{Reason: "unknown reporter of " + kind, About: "from a node that is not in the topology, or not the list's", Count: c.Unknown[k]},
			api.StageLoss{Reason: "untimely " + kind, About: "time further than controller.time_window from the collector's clock", Count: c.Untimely[k]},
			api.StageLoss{Reason: "panic " + kind, About: "the analysis of the report panicked, see the log", Count: c.Panicked[k]})
		unused = append(unused, rejectedReports(control.Kind(k), &c)...)
	}
	unused = append(unused,
		api.StageLoss{Reason: "late flowset", About: "flowsets of a slot that was already analysed", Count: c.Flowsets.Late},
		api.StageLoss{
			Reason: "inconsistent flowset", About: "flowsets of another slot length, or from a clock that runs ahead",
			Count: c.Flowsets.Inconsistent,
		})
	unused = append(unused,
		api.StageLoss{Reason: "dropped flowset", About: "beyond controller.flow_memory, of the switch that held most", Count: c.Flowsets.Dropped + c.Flowsets.Undecoded},
		api.StageLoss{Reason: "undecoded flow", About: "a switch counted more flows than its table can hold, or a part of it did not arrive", Count: c.Flowsets.UndecodedFlows},
		api.StageLoss{Reason: "sparse flowset", About: "too little of it arrived", Count: c.Flowsets.Sparse},
		api.StageLoss{Reason: "dropped epoch", About: "snapshots beyond controller.diagnosis_memory, of the switch that held most", Count: c.Epochs.Dropped},
		api.StageLoss{Reason: "evicted detection", About: "the oldest, whose answers are not needed any longer", Count: c.Epochs.Evicted, Expected: true},
		api.StageLoss{Reason: "reduced flow", About: "stored in sums only, beyond controller.keep_flows", Count: c.Flows.Reduced, Expected: true},
		api.StageLoss{Reason: "probe packet", About: "Weft's own probes, at each switch: counted apart, in no flowset", Count: c.Flowsets.Probes, Expected: true},
		api.StageLoss{Reason: "foreign probe", About: "traces of packets that are marked and stamped like probes, and that the controller did not have sent", Count: c.ForeignProbes},
		api.StageLoss{Reason: "evicted trace", About: "closed before its time, beyond controller.trace_memory", Count: c.EvictedTraces},
		api.StageLoss{Reason: "unproven trace", About: "ends early and proves no loss: mirrors were lost, or read too late on an overloaded host", Count: c.UnprovenTraces})
	memory := api.Stage{
		Name: "memory", Title: "Queryable memory", Unit: "reports", In: in.Stored, Out: read + c.UnknownList + in.Stored - in.Appended,
		Losses: []api.StageLoss{{Reason: "overwritten", About: "before they were read", Count: overwritten}},
	}
	analyzers := api.Stage{
		Name: "analyzers", Title: "Analyses", Unit: "reports", In: read + c.UnknownList, Out: used,
		Losses: append(unused, api.StageLoss{
			Reason: "unknown list", About: "sent to a list that is not in the plan", Count: c.UnknownList,
		}),
	}
	return []api.Stage{translator, memory, analyzers}
}

// rejections is why well-formed reports are not used, for people.
var rejections = [control.NumRejections]string{
	control.Oversized:     "larger than controller.flow_cells or its memory, or of a geometry that no switch has",
	control.Implausible:   "counts more than the switch can forward in a slot, or pauses and congestion that overlap",
	control.Contradictory: "others of the same flowset or snapshot say otherwise",
	control.Excess:        "beyond what is kept of one detection, or of requests",
	control.NoMemory:      "its switch holds most, and there is none left",
}

// rejectedReports are the losses of well-formed reports of a kind, by reason. Only
// flowsets, epochs and diagnosis requests are rejected.
func rejectedReports(k control.Kind, c *control.Stats) (list []api.StageLoss) {
	for r, n := range c.Rejected[k] {
		why := control.Rejection(r)
		epoch := why != control.Oversized
		if k == control.Flowset && why != control.Excess || k == control.Epoch && epoch || k == control.DiagnosisRequest && why == control.Excess {
			list = append(list, api.StageLoss{Reason: why.String() + " " + k.String(), About: rejections[r], Count: n})
		}
	}
	return list
}

// HealthTracker turns totals of stages into rates and states, from one sample to
// the next. Many goroutines may use it.
type HealthTracker struct {
	began time.Time

	mu   sync.Mutex
	at   time.Time
	last map[string]api.Stage
	rate map[string]api.Stage
}

// NewHealthTracker makes the tracker of a process that began at a time.
func NewHealthTracker(began time.Time) *HealthTracker { return &HealthTracker{began: began} }

// Health returns the health of stages at a time. A stage is degraded while it
// loses something that it is not designed to lose.
func (t *HealthTracker) Health(now time.Time, stages []api.Stage) api.Health {
	h := api.Health{Time: now, State: "ok", UptimeMs: now.Sub(t.began).Milliseconds(), Alerts: []string{}}
	h.Stages = t.updateRates(now, stages)
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

// updateRates sets rates and states. Samples less than a second apart share
// rates.
func (t *HealthTracker) updateRates(now time.Time, stages []api.Stage) []api.Stage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if span := now.Sub(t.at); span >= time.Second {
		t.rate = map[string]api.Stage{}
		for _, st := range stages {
			was, known := t.last[st.Name]
			if !known {
				continue
			}
			n := api.Stage{
				InPerSecond: float64(st.In-was.In) / span.Seconds(), OutPerSecond: float64(st.Out-was.Out) / span.Seconds(),
			}
			for _, l := range st.Losses { // a reason may be new
				before := lossOf(was.Losses, l.Reason)
				n.Losses = append(n.Losses, api.StageLoss{Reason: l.Reason, PerSecond: float64(l.Count-before.Count) / span.Seconds()})
			}
			t.rate[st.Name] = n
		}
		t.at, t.last = now, map[string]api.Stage{}
		for _, st := range stages {
			st.Losses = slices.Clone(st.Losses)
			t.last[st.Name] = st
		}
	}
	stages = slices.Clone(stages) // they may be those of a snapshot that others read
	for i := range stages {
		st := &stages[i]
		n := t.rate[st.Name]
		st.InPerSecond, st.OutPerSecond, st.State = n.InPerSecond, n.OutPerSecond, "ok"
		if st.In == 0 {
			st.State = "idle"
		}
		st.Losses = slices.Clone(st.Losses)
		for j := range st.Losses {
			l := &st.Losses[j]
			if l.PerSecond = lossOf(n.Losses, l.Reason).PerSecond; l.PerSecond > 0 && !l.Expected {
				st.State = "degraded"
			}
		}
	}
	return stages
}

// receives reports whether a report was accepted, of any source: into memory, or by
// an analysis.
func receives(stages []api.Stage) bool {
	return slices.ContainsFunc(stages, func(s api.Stage) bool {
		return (s.Name == "translator" || s.Name == "analyzers" || s.Name == "counters" || s.Name == "routes") && s.Out > 0
	})
}

// lossOf is the loss of a reason; zero where there is none.
func lossOf(list []api.StageLoss, reason string) api.StageLoss {
	if i := slices.IndexFunc(list, func(l api.StageLoss) bool { return l.Reason == reason }); i >= 0 {
		return list[i]
	}
	return api.StageLoss{}
}

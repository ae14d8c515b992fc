package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/report"
	"github.com/weft-telemetry/weft/sim"
)

// Verdict is the outcome of a run.
type Verdict string

// Verdicts.
const (
	Pass            Verdict = "PASS"  // every expectation met, no unexpected fault
	Fail            Verdict = "FAIL"  // an expectation was not met
	UnexpectedFault Verdict = "FAULT" // a deadlock, drops of a lossless class, or a diagnosis of PFC backpressure without an expectation about it
)

// Judged is an expectation and its outcome.
type Judged = report.Judged

// faultFigures are the figures that show a fault. A scenario that has an
// expectation about one expects it.
var faultFigures = []string{"deadlock", "lossless-drops", "diagnoses"}

// faultWords say what happened.
var faultWords = map[string]func(v float64) string{
	"deadlock": func(v float64) string {
		if v > 1 {
			return "a deadlock formed and persists"
		}
		return "a deadlock formed and dissolved"
	},
	"lossless-drops": func(v float64) string {
		return fmt.Sprintf("a lossless class dropped %s (buffer full)", plural.Count(uint64(v), "packet"))
	},
	"diagnoses": func(v float64) string {
		return fmt.Sprintf("PFC backpressure made flows slow (diagnoses: %.0f)", v)
	},
}

// FigureNames are the names of all figures, sorted.
func FigureNames() []string { return slices.Sorted(maps.Keys(figures)) }

// FormatFigure formats a value of a figure in its unit.
func FormatFigure(name string, v float64) string {
	if f := figures[name]; f.unit != count {
		return f.show(name, v)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func (r *Result) judge(x *session) {
	all := x.figures(r)
	r.Figures = all
	r.Verdict = Pass
	hasExpectation := make(map[string]bool)
	for i := range x.s.Expect {
		e := &x.s.Expect[i]
		of := all
		if e.Group != "" {
			of = flowFigures(r.Run.Flows, e.Group, r.Run.End)
		}
		j := Judged{What: e.what(), Want: e.Want.Text, Got: "unknown"}
		f := figures[e.Figure]
		if v, known := of[e.Figure]; known {
			j.Got, j.Pass = f.show(e.Figure, v), e.Want.holds(v, of["flows"])
			if e.Figure == "finished" {
				j.Got = fmt.Sprintf("%s of %v", j.Got, of["flows"])
			}
		}
		hasExpectation[e.Figure] = true
		r.expected(j)
	}
	if x.s.ExpectDiagnoses != nil {
		hasExpectation["diagnoses"] = true
		for _, j := range r.judgeDiagnoses(x) {
			r.expected(j)
		}
	}
	for _, j := range x.judgeTraces() {
		r.expected(j)
	}
	if r.Verdict == Pass {
		r.judgeFaults(all, hasExpectation)
	}
}

// judgeFaults notes the faults that the scenario has no expectation about.
func (r *Result) judgeFaults(all map[string]float64, hasExpectation map[string]bool) {
	for _, name := range faultFigures {
		if v := all[name]; v > 0 && !hasExpectation[name] {
			r.Verdict = UnexpectedFault
			f := figures[name]
			r.Faults = append(r.Faults, faultWords[name](v))
			r.Run.Notes = append(r.Run.Notes, fmt.Sprintf("unexpected fault: %s %s", name, f.show(name, v)))
		}
	}
}

// expected adds the outcome of an expectation.
func (r *Result) expected(j Judged) {
	if !j.Pass {
		r.Verdict = Fail
		r.Run.Notes = append(r.Run.Notes, fmt.Sprintf("expected %s: %s; it is %s", j.What, j.Want, j.Got))
	}
	r.Expected = append(r.Expected, j)
}

// figures returns the figures of the whole run. Unknown ones are missing.
func (x *session) figures(r *Result) map[string]float64 {
	out := flowFigures(r.Run.Flows, "", r.Run.End)
	c := &x.net.Counts
	for why, n := range c.Drops {
		out["drops"] += float64(n)
		out["drops-"+sim.Reason(why).String()] = float64(n)
	}
	out["lossless-drops"] = float64(r.LosslessDrops)
	out["pauses"], out["marked"] = float64(c.Pauses), float64(c.Marked)
	out["trimmed"], out["reordered"], out["duplicates"] = float64(c.Trimmed), float64(c.Reordered), float64(c.Duplicates)
	out["pauses-to-hosts"], out["pauses-by-hosts"] = float64(x.recorder.toHosts), float64(x.recorder.byHosts)
	if t := r.Telemetry; t != nil {
		out["reports"], out["reports-delivered"], out["reports-lost"] = float64(t.Reports), float64(t.Delivered), float64(t.lost())
	}
	// Flows that share a queue are no fault; PFC backpressure is.
	for i := range r.Diagnoses {
		if r.Diagnoses[i].Anomaly > anomaly.FlowContention {
			out["diagnoses"]++
		}
	}
	out["deadlock"] = 0
	for _, d := range r.Deadlocks {
		stage := 1.0
		if d.Persistent {
			stage = 2
		}
		out["deadlock"] = max(out["deadlock"], stage)
	}
	peak := model.Bytes(0)
	for _, p := range x.net.Ports() {
		for prio := range model.Priority(8) {
			peak = max(peak, x.recorder.Peak(model.Port{Node: p.Node, Port: p.ID}, prio).Bytes)
		}
	}
	out["queue-peak"] = float64(peak)
	return out
}

// flowFigures returns the figures of flows: those of a group, or all.
func flowFigures(flows []report.FlowResult, group string, end model.Time) map[string]float64 {
	if group != "" {
		flows = slices.DeleteFunc(slices.Clone(flows), func(f report.FlowResult) bool { return f.Group != group })
	}
	of := report.Run{Flows: flows, End: end}
	s := of.Summarize()
	out := map[string]float64{
		"flows": float64(s.Flows.Total), "finished": float64(s.Flows.Finished),
		"retransmitted": float64(s.Flows.Retransmitted), "goodput": float64(s.Flows.Goodput),
	}
	if all := s.Slowdown.All; all.Flows > 0 {
		out["slowdown-mean"], out["slowdown-max"] = all.Mean, all.Max
		out["slowdown-p50"], out["slowdown-p95"], out["slowdown-p99"] = all.P50, all.P95, all.P99
	}
	if s.Flows.Total > 0 && s.Flows.Finished == s.Flows.Total {
		first, last := flows[0].Start, flows[0].Finish
		for _, f := range flows {
			first, last = min(first, f.Start), max(last, f.Finish)
		}
		out["completion"] = float64(last.Sub(first))
	}
	return out
}

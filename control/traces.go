package control

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// traceOutput receives what the trace watch makes, in the controller's
// goroutine.
func (c *Controller) traceOutput() tracewatch.Output {
	return tracewatch.Output{Trace: c.traceRecord, Period: c.counterRecords, Finding: c.addTraceEvidence, Pause: c.addPauseFrame}
}

// traceRecord adds the record of a trace.
func (c *Controller) traceRecord(t *trace.Trace) {
	c.prober.MatchTrace(t)
	if c.onMarkedTrace != nil && t.Why.Has(mirror.Debug) {
		c.markedTraces = append(c.markedTraces, t) // the trace watch is locked now
	}
	r := record.Trace{
		Time: c.wallTime(t.Hops[0].Time), Flow: t.Key,
		End: t.End.String(), Why: t.Why.String(), LostMirrors: t.MirrorsLost, Frame: t.Frame,
	}
	r.ID = t.RecordID(r.Time)
	r.Latency, _ = t.Latency()
	for i := range t.Hops {
		h := &t.Hops[i]
		r.Hops = append(r.Hops, record.TraceHop{
			Time: c.wallTime(h.Time), Switch: c.nodeName(h.Switch), In: h.In, Out: h.Out,
			TTL: h.TTL, DSCP: h.TOS >> 2, ECN: h.TOS & 3, Depth: h.Depth,
		})
	}
	c.batch.Traces = append(c.batch.Traces, r)
	c.noteTraced(t.Key)
}

// publishMarkedTraces hands the traces of marked packets to onMarkedTrace. It is
// not called while the trace watch is locked: the backend locks itself first and
// the trace watch second.
func (c *Controller) publishMarkedTraces() {
	for _, t := range c.markedTraces {
		c.onMarkedTrace(t)
	}
	clear(c.markedTraces)
	c.markedTraces = c.markedTraces[:0]
}

// counterRecords adds records of a period's user-defined counters.
func (c *Controller) counterRecords(p *tracewatch.Period) {
	for name, l := range p.Counters.Custom {
		c.batch.Counters = append(c.batch.Counters, record.Counter{
			Time: c.wallTime(p.From), Period: p.To.Sub(p.From), Name: name, Packets: l.Packets, Bytes: uint64(l.Bytes), Flows: l.Flows.Count(),
		})
	}
}

// addTraceEvidence adds a finding of traces as evidence.
func (c *Controller) addTraceEvidence(from, to model.Time, f trace.Finding) {
	began := from
	if f.First != 0 { // a period is when traces are judged
		began = min(from, f.First)
	}
	e := incident.Evidence{
		At: c.now, From: began, Source: anomaly.Traces, Confirmed: true,
		Location: model.Port{Node: f.Switch}, Extent: f.Switches, NextHop: f.Next, HasNextHop: f.Known,
	}
	if f.Flow != nil {
		e.Flows = []model.FlowKey{*f.Flow}
	}
	switch f.Kind {
	case trace.Loop:
		e.Cause = anomaly.Loop
		if f.Detour() {
			e.Cause = anomaly.WrongRoute
			e.Text = fmt.Sprintf("%s passed %s twice and left the loop", plural.Count(f.Ended, "mirrored packet"), c.nodeName(f.Switch))
			break
		}
		e.Text = fmt.Sprintf("%s looped through %s", plural.Count(f.Ended, "mirrored packet"), c.nodeName(f.Switch))
	case trace.Silent:
		e.Cause = anomaly.DeadLink
		e.Text = fmt.Sprintf("%d mirrored packets were sent to %s, which mirrored none of them", f.Ended, c.nodeName(f.Next))
	default:
		e.Cause = anomaly.Loss
		e.Text = fmt.Sprintf("%d of %d mirrored packets were lost after %s", f.Ended, f.Packets, c.nodeName(f.Switch))
	}
	// The finding includes earlier periods, and packets may be stuck since then.
	first := c.slotOf(from.Add(-time.Duration(c.cfg.Traces.Window)*c.cfg.Traces.Period)) - 1
	if f.Kind != trace.Loop && c.meter.pausedAcross(f.Switch, first, c.slotOf(to)) >= c.cfg.StallShare {
		e.Cause, e.Confirmed = anomaly.Stall, false // packets may be stuck there
	}
	if e.Cause == anomaly.Loss && c.meter.discardedIn(f.Switch, first, c.slotOf(to)+1) >= f.Ended {
		e.Cause, e.Confirmed = anomaly.Contention, false
	}
	c.addEvidence(e)
}

// slotOf is the slot that an instant lies in.
func (c *Controller) slotOf(t model.Time) int64 { return int64(t) / int64(c.cfg.Flows.Slot) }

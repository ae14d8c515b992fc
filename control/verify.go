package control

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/control/probe"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// verification checks whether the fault of an incident is still there: probes like
// an affected flow are sent and hosts poll, where devices take commands; and all
// sources are watched for as long as evidence of the time may be late.
type verification struct {
	id    string
	in    *incident.Incident
	kept  bool // in is the correlator's, and not only made of its record
	start model.Time
	done  func(api.Verification)

	flow    model.FlowKey // that probes imitate
	probe   *probe.Drops  // nil: none were sent
	answer  *probe.DropAnswer
	again   string // evidence that the fault is still there
	seenAs  uint64 // the incident that has this evidence
	passed  uint64 // packets that were seen to pass its place
	ended   bool
	reached bool // the watch has lasted long enough
}

// maxVerifications is how many run at once.
const maxVerifications = 16

// VerifyIncident is part of api.Verifier.
func (f *Backend) VerifyIncident(ctx context.Context, d *api.IncidentDetail, done func(api.Verification)) (out api.Verification, err error) {
	failed := f.do(ctx, func() { out, err = f.c.verify(d, done) })
	if failed != nil {
		return out, failed
	}
	return out, err
}

// verify starts a verification.
func (c *Controller) verify(d *api.IncidentDetail, done func(api.Verification)) (api.Verification, error) {
	switch {
	case d.MergedInto != "":
		return api.Verification{}, fmt.Errorf("%s was merged into %s, want that: %w", d.ID, d.MergedInto, api.ErrConflict)
	case slices.ContainsFunc(c.verifications, func(v *verification) bool { return v.id == d.ID }):
		return api.Verification{}, fmt.Errorf("%s is being verified already: %w", d.ID, api.ErrConflict)
	case len(c.verifications) >= maxVerifications:
		return api.Verification{}, fmt.Errorf("%d verifications are running, want one of them to end: %w", len(c.verifications), api.ErrBusy)
	}
	v := &verification{id: d.ID, start: c.now, done: done}
	if n, err := strconv.ParseUint(strings.TrimPrefix(d.ID, "i"), 10, 64); err == nil {
		v.in = c.correlator.Find(n)
	}
	if v.kept = v.in != nil; !v.kept {
		var err error
		if v.in, err = c.incidentOf(d); err != nil {
			return api.Verification{}, err
		}
	}
	c.verifications = append(c.verifications, v)
	c.sendVerifyingProbes(v)
	if slices.Contains(v.in.Cause.Sources(), anomaly.Epochs) {
		c.pollFlow(v.in)
	}
	c.scheduleAfter(c.cfg.Incidents.QuietPeriod, func() {
		v.reached = true
		c.settle(v)
	})
	return api.Verification{State: "running", Begin: c.wallTime(c.now), Text: v.method(c)}, nil
}

// method says how a fault is verified.
func (v *verification) method(c *Controller) string {
	text := fmt.Sprintf("watches for evidence until %s from now", model.FormatDuration(c.cfg.Incidents.QuietPeriod))
	if v.probe != nil {
		text = fmt.Sprintf("sends probes like %v, and %s", v.flow, text)
	}
	return text
}

// incidentOf makes an incident of what its record has, enough to compare evidence
// with it.
func (c *Controller) incidentOf(d *api.IncidentDetail) (*incident.Incident, error) {
	cause := slices.Index(anomaly.CauseNames(), d.Cause)
	node, _, _ := strings.Cut(d.Location, ":")
	at, known := c.fabric.ByName(node)
	if cause < 0 || !known {
		return nil, fmt.Errorf("verify %s: cause %q at %q, want those of this fabric: %w", d.ID, d.Cause, d.Location, api.ErrConflict)
	}
	e := incident.Evidence{Cause: anomaly.Cause(cause), Confirmed: true, Location: model.Port{Node: at}}
	if d.Origin != nil {
		e.Location.Port = d.Origin.Port
	}
	for _, p := range d.Loop {
		if id, ok := c.fabric.ByName(p.Node); ok {
			e.Extent = append(e.Extent, id)
		}
	}
	for _, p := range d.Victims {
		if p.Flow != nil {
			e.Flows = append(e.Flows, p.Flow.Flow)
		}
	}
	return incident.Recall(e), nil
}

// sendVerifyingProbes sends probes like an affected flow, if probes can show the
// cause and devices send them.
func (c *Controller) sendVerifyingProbes(v *verification) {
	if f := v.in.Cause.Family(); f != anomaly.PacketLoss && v.in.Cause != anomaly.Loop {
		return
	}
	if v.flow = c.probeVictim(v.in); v.flow.IsZero() {
		return
	}
	q, err := c.prober.Drops(c.now, v.flow, nil, probesPerPattern)
	if err != nil {
		return // its path cannot be followed
	}
	takes, err := c.prober.Start(q)
	if err != nil {
		return // no one sends them: the result says so
	}
	v.probe = q
	c.awaitTraces(q, takes, func(int) {
		a := q.Answer()
		c.prober.Close(q)
		if v.ended {
			return
		}
		v.answer = &a
		c.addProbeEvidence(v.flow, &a)
		c.settle(v)
	})
}

// addVerifyingEvidence adds confirmed evidence that shows the fault of a verification
// again. A closed incident is opened by it, unless another explains it already.
func (c *Controller) addVerifyingEvidence(e *incident.Evidence) *incident.Incident {
	for _, v := range c.verifications {
		if e.From < v.start || !v.in.ShowsAgain(e) {
			continue
		}
		var match *incident.Incident
		if other := c.correlator.FindExplanation(*e); (other == nil || other == v.in) && v.kept && c.correlator.Reopen(v.in, *e) {
			match = v.in
		} else {
			match = c.correlator.AddEvidence(*e)
		}
		v.again, v.seenAs = e.Text, match.ID
		c.scheduleAfter(0, func() { c.settle(v) })
		return match
	}
	return nil
}

// countPassed counts packets that pass the places of verifications in a slot: where
// there are none, no evidence proves nothing.
func (c *Controller) countPassed(s *flowwatch.Slot) {
	for _, v := range c.verifications {
		if s.Start() < v.start {
			continue
		}
		at := c.switchPort(v.in.Location)
		for f := range s.Flows() {
			if v.in.Cause.Family() == anomaly.PacketLoss && !v.hasDestination(f.Key.Dst) {
				continue // a black hole drops packets to some destinations only
			}
			for i := range f.Hops {
				if h := &f.Hops[i]; h.Switch == at.Node && (at.Port == 0 || h.Out == at.Port) {
					v.passed += h.Packets
				}
			}
		}
	}
}

// switchPort is the port of a switch at a place: a host's is the one it is attached to.
func (c *Controller) switchPort(at model.Port) model.Port {
	n := c.fabric.Node(at.Node)
	if n.Role.IsSwitch() || len(n.Ports) == 0 {
		return at
	}
	return n.Ports[0].Peer
}

// hasDestination reports whether an affected flow goes to an address.
func (v *verification) hasDestination(a model.Addr) bool {
	return len(v.in.Flows) == 0 || slices.ContainsFunc(v.in.Flows, func(k model.FlowKey) bool { return k.Dst == a })
}

// settle ends a verification if enough is known.
func (c *Controller) settle(v *verification) {
	if v.ended {
		return
	}
	outcome, text := c.judge(v)
	if outcome == "" {
		return
	}
	v.ended = true
	c.verifications = slices.DeleteFunc(c.verifications, func(o *verification) bool { return o == v })
	end := c.wallTime(c.now)
	r := api.Verification{State: "done", Begin: c.wallTime(v.start), End: &end, Outcome: outcome, Text: text}
	if v.seenAs != 0 && incidentID(v.seenAs) != v.id {
		r.SeenAs = incidentID(v.seenAs)
	}
	if outcome == "recovered" && v.kept {
		c.correlator.CloseVerified(v.in, v.start)
	}
	// At the next step, when the incident's new state has been published.
	c.scheduleAfter(1, func() { v.done(r) })
}

// judge returns the outcome of a verification, or none as long as it is open.
func (c *Controller) judge(v *verification) (outcome, text string) {
	at := c.switchPort(v.in.Location)
	if v.again != "" {
		return "persists", v.again
	}
	if v.probe != nil && v.answer == nil {
		return "", ""
	}
	if v.answer != nil && v.answer.Kind == probe.Passed && v.probesSuffice() {
		return "recovered", v.probeText()
	}
	if !v.reached {
		return "", ""
	}
	if v.in.Cause.Family() == anomaly.Pausing && v.in.Cause != anomaly.Contention {
		if paused := c.meter.pausedIn(at, c.slotOf(v.start)+1, c.slotOf(c.now)); paused >= c.cfg.StallShare {
			e := incident.Evidence{
				At: c.now, From: v.start, Source: anomaly.Counters, Cause: v.in.Cause, Confirmed: true, Location: v.in.Location,
				Text: fmt.Sprintf("%s was paused for %s of a slot", c.portName(at), model.FormatShare(paused)),
			}
			if in := c.addVerifyingEvidence(&e); in != nil {
				return "persists", e.Text
			}
		}
	}
	switch last := c.liveness.lastReport(at.Node); {
	case v.answer != nil && v.answer.Kind == probe.Passed:
		return "recovered", v.probeText() + ", and no source has new evidence"
	case v.answer != nil:
		return "unknown", fmt.Sprintf("probes like %v: %s, %s; they do not show the fault", v.flow, v.answer.Kind, v.answer.Scope)
	case last < v.start:
		return "unknown", c.nodeName(at.Node) + " sent no report since"
	case v.passed == 0:
		return "unknown", "no packets were seen that would show the fault at " + c.portName(at)
	}
	return "recovered", fmt.Sprintf("%s passed %s, and no source has new evidence", plural.Count(v.passed, "packet"), c.portName(at))
}

// probesSuffice reports whether probes that passed rule the fault out: one that loses
// all packets of a flow, or more than probes can have missed.
func (v *verification) probesSuffice() bool {
	switch v.in.Cause {
	case anomaly.Blackhole, anomaly.DeadLink, anomaly.Loop:
		return true
	}
	return v.in.SentPackets > 0 && v.answer.Loss.High < float64(v.in.LostPackets)/float64(v.in.SentPackets)
}

func (v *verification) probeText() string {
	return fmt.Sprintf("%d of %d probes like %v arrived", v.answer.Reached-v.answer.Lost, v.answer.Reached, v.flow)
}

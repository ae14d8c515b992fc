package commodity

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// Verdict is one fault as counters and samples show it.
type Verdict struct {
	Cause anomaly.Cause
	// Location is the switch port, the switch (port 0), or the host (port 0) that
	// pauses its switch.
	Location model.Port
	Class    model.Priority // of PFC

	// From and To are the intervals that it rests on. It began and ended at some time
	// in the first and last of them, each at most Interval long.
	From, To model.Time
	Interval time.Duration
	// Confidence falls with the interval: see docs/commodity.md.
	Confidence float64

	Paused   float64        // largest share of an interval that PFC paused the port
	Waiting  []model.Port   // ports that wait for it; the cycle of a deadlock
	Extent   []model.NodeID // their nodes
	Culprits []Culprit
	Flows    []model.FlowKey // affected: those of drop notifications
	Receiver model.NodeID    // that all culprits send to, if HasReceiver
	// HasReceiver says that all culprits send to one host.
	HasReceiver bool
	// Packets were lost: NewPackets of them since the verdict before; of SentPackets,
	// where both ends of a link are compared.
	Packets, NewPackets, SentPackets uint64
	Text                             string
}

// Culprit is a flow that congests a queue, as samples show it.
type Culprit struct {
	Flow    model.FlowKey
	Bytes   uint64 // estimated
	Samples int
}

// Error returns the relative error of Bytes at 95 % confidence: 1.96 standard
// deviations of a Poisson count.
func (c *Culprit) Error() float64 { return 1.96 / math.Sqrt(float64(max(c.Samples, 1))) }

// Interval returns the shortest interval of the readings since the last round; 0: there
// are none.
func (a *Analyzer) Interval() (shortest time.Duration) {
	for _, id := range a.fabric.Switches() {
		if s := &a.nodes[id]; s.fresh && (shortest == 0 || s.interval < shortest) {
			shortest = s.interval
		}
	}
	return shortest
}

// Conclude ends a round: it evaluates the switches that reported since the last
// one, and returns what is wrong now. Call it about once per interval.
func (a *Analyzer) Conclude() (list []Verdict) {
	a.round++
	var findings []finding
	holders := map[model.NodeID]map[queueID]*holder{}
	for _, id := range a.fabric.Switches() {
		if a.nodes[id].fresh {
			a.judge(id)
		}
	}
	for _, id := range a.fabric.Switches() {
		if a.nodes[id].fresh {
			holders[id] = a.findWaits(id)
		}
	}
	a.waiters = a.reverseWaits()
	for _, id := range a.fabric.Switches() {
		if !a.nodes[id].fresh {
			continue
		}
		findings = append(findings, a.findHostPauses(id)...)
		findings = append(findings, a.findCongestion(id, holders[id])...)
		findings = append(findings, a.findDrops(id)...)
		findings = append(findings, a.findErrors(id)...)
		findings = append(findings, a.findLeaks(id)...)
	}
	findings = append(findings, a.findDeadlocks()...)
	findings = append(findings, a.findImbalance()...)
	slices.SortFunc(findings, func(x, y finding) int { return compareFindings(&x, &y) })
	var noted []*episode
	for i := range findings {
		if e := a.note(&findings[i]); e != nil {
			noted = append(noted, e)
		}
	}
	a.endEpisodes()
	for _, e := range noted {
		if e.confidence() >= a.cfg.MinConfidence && e.lasted() >= a.cfg.MinDuration && !a.isExplained(e) {
			list = append(list, a.verdict(e))
		}
	}
	a.rememberWaits()
	for _, id := range a.fabric.Switches() {
		if a.nodes[id].fresh {
			a.rememberPauses(id)
			a.nodes[id].forget()
		}
	}
	return list
}

// rememberPauses notes which queues were paused in this round.
func (a *Analyzer) rememberPauses(id model.NodeID) {
	for i := range a.nodes[id].ports {
		at := model.Port{Node: id, Port: model.PortID(i + 1)}
		for c := range a.nodes[id].ports[i].judged.class {
			if share, _ := a.paused(queueID{at, model.Priority(c)}); share >= a.cfg.MinPaused {
				a.nodes[id].ports[i].judged.class[c].pausedIn = a.round
			}
		}
	}
}

// isExplained reports whether an episode is a consequence of another: links between
// switches are congested where the fabric shares its load unevenly.
func (a *Analyzer) isExplained(e *episode) bool {
	if e.kind != congested && e.kind != full || a.isHost(a.peer(e.at).Node) {
		return false
	}
	return a.episodes[episodeID{kind: unbalanced}] != nil
}

// verdict describes an episode.
func (a *Analyzer) verdict(e *episode) Verdict {
	v := Verdict{
		Cause: a.cause(e), Location: e.at, Class: e.class, From: e.first, To: e.to, Interval: e.longest,
		Confidence: e.confidence(), Paused: e.peak, Waiting: e.path, Extent: e.extent, Culprits: e.named,
		Flows: e.flows, Packets: e.lost, NewPackets: e.newLost, SentPackets: e.sent,
	}
	if v.Cause == anomaly.Incast {
		v.Confidence *= together(e.named)
	}
	if e.kind == hostPauses {
		v.Location = model.Port{Node: a.peer(e.at).Node}
	}
	v.Receiver, v.HasReceiver = a.receiver(e.named)
	v.Text = a.describe(e, &v) + fmt.Sprintf(" (%s counters, %s to %s, confidence %.2f)", e.longest, v.From, v.To, v.Confidence)
	return v
}

// receiver returns the host that all culprits send to.
func (a *Analyzer) receiver(list []Culprit) (id model.NodeID, ok bool) {
	for i := range list {
		to, known := a.fabric.ByAddr(list[i].Flow.Dst)
		if !known || i > 0 && to != id {
			return 0, false
		}
		id, ok = to, true
	}
	return id, ok
}

// describe returns the verdict as a sentence without its end.
func (a *Analyzer) describe(e *episode, v *Verdict) string {
	port := a.fabric.PortName(e.at)
	if e.at.Port == 0 {
		port = a.fabric.Node(e.at.Node).Name
	}
	waiting := ""
	if n := len(v.Waiting); n > 0 && e.kind != deadlocked {
		waiting = "; " + plural.Count(n, "port") + " wait for it"
		if n == 1 {
			waiting = "; 1 port waits for it"
		}
	}
	switch e.kind {
	case hostPauses:
		host := a.fabric.Node(v.Location.Node).Name
		if v.Cause == anomaly.Storm {
			return fmt.Sprintf("PFC storm: %s pauses %s for up to %.0f %% of an interval and receives next to nothing%s", host, port, 100*e.peak, waiting)
		}
		return fmt.Sprintf("Slow receiver: %s pauses %s for up to %.0f %% of an interval while it receives %.0f %% of the link's rate%s", host, port, 100*e.peak, 100*e.tx, waiting)
	case congested:
		return fmt.Sprintf("%s: %s congest %s; PFC spreads%s", v.Cause.Title(), a.culprits(v), port, waiting)
	case full:
		return fmt.Sprintf("Flow contention: %s fill %s to %.0f %% of its rate", a.culprits(v), port, 100*e.tx)
	case unbalanced:
		return e.text
	case deadlocked:
		return fmt.Sprintf("PFC deadlock: %s wait for each other in a cycle, first %s", plural.Count(len(v.Waiting), "port"), port)
	case discarding:
		return fmt.Sprintf("%s drops packets: %d by reason %q", port, e.lost, e.reason)
	case discardingUnexplained:
		return fmt.Sprintf("%s drops packets: %d, for a reason that it does not export", port, e.lost)
	case overflowing:
		return fmt.Sprintf("%s drops packets: %d as its buffer is full", port, e.lost)
	case looping:
		return fmt.Sprintf("Possible forwarding loop: %d packets ended at %s by reason %q", e.lost, port, e.reason)
	case corrupting:
		return fmt.Sprintf("Link errors: %s received %s from %s", port, e.reason, a.fabric.PortName(a.peer(e.at)))
	default:
		return fmt.Sprintf("Both ends disagree about %s: %s, no error at either", a.fabric.LinkName(e.at), e.reason)
	}
}

// culprits names the flows that congest a queue.
func (a *Analyzer) culprits(v *Verdict) string {
	n := len(v.Culprits)
	if n == 0 {
		return "flows that no sample shows"
	}
	s := plural.Count(n, "flow") + " of " + plural.Count(senders(v.Culprits), "sender")
	if v.HasReceiver {
		s += " to " + a.fabric.Node(v.Receiver).Name
	}
	return s
}

// Evidence returns a verdict as evidence for incidents, found at an instant of the
// collector's clock.
func (a *Analyzer) Evidence(v *Verdict, at model.Time) incident.Evidence {
	e := incident.Evidence{
		At: at, From: v.From, Interval: v.Interval, Source: anomaly.Counters, Cause: v.Cause, Confirmed: v.Confidence >= confirmed,
		Location: v.Location, Extent: v.Extent, Receiver: v.Receiver, HasReceiver: v.HasReceiver,
		Flows: v.Flows, Text: v.Text, LostPackets: v.NewPackets, SentPackets: v.SentPackets, Scale: uint64(len(v.Waiting)),
	}
	if v.Cause == anomaly.Deadlock {
		e.DeadlockCycle = v.Waiting
	} else {
		e.Path = v.Waiting
	}
	for i := range v.Culprits {
		e.Culprits = append(e.Culprits, v.Culprits[i].Flow)
	}
	if p := a.fabric.Port(v.Location); v.Location.Port != 0 && p != nil {
		e.NextHop, e.HasNextHop = p.Peer.Node, true
		e.AtReceiver = v.HasReceiver && p.Peer.Node == v.Receiver
	}
	return e
}

// confirmed is the confidence from which on evidence rules out harmless
// explanations.
const confirmed = 0.65

package control

import (
	"fmt"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/wire/roce"
)

// segmentLosses are the packets that a segment lacks in a slot: those that are stuck before
// it, or those that it lost.
type segmentLosses struct {
	loss.Segment
	stuck      bool
	lost, sent uint64
	lossless   uint64 // of those lost: packets of a lossless class
	from, to   int64
	flows      []model.FlowKey
}

// addLossEvidence records every loss, and adds evidence where a link loses enough. Packets
// of a lossless class that a pause may hold are not lost: what does not arrive when the port
// is open again, is.
func (c *Controller) addLossEvidence(s *flowwatch.Slot) {
	type key struct {
		loss.Segment
		stuck bool
	}
	var order []*segmentLosses
	sums := map[key]*segmentLosses{}
	add := func(e *loss.Event, stuck bool) {
		if e.WholePath {
			return // the segment is not known
		}
		k := sums[key{e.Segment, stuck}]
		if k == nil {
			k = &segmentLosses{Segment: e.Segment, stuck: stuck, from: e.FirstSlot, to: e.LastSlot}
			sums[key{e.Segment, stuck}] = k
			order = append(order, k)
		}
		k.lost, k.sent, k.from, k.to = k.lost+e.Packets, k.sent+e.Sent, min(k.from, e.FirstSlot), max(k.to, e.LastSlot)
		k.flows = append(k.flows, e.Flow)
		if isLossless(e.Flow) {
			k.lossless += e.Packets
		}
	}
	late := c.stuck.takeLost(c.fabric, s, func(k *stuckFlow, a *stuckAccount) bool {
		return !c.isStuck(k.From, []model.FlowKey{k.flow}, a.from-1, s.Index, s.Index)
	})
	for i := range late {
		c.recordLoss(&late[i], s)
		add(&late[i], false)
	}
	for i := range s.Losses {
		e := &s.Losses[i]
		stuck := !e.WholePath && isLossless(e.Flow) && c.isStuck(e.From, []model.FlowKey{e.Flow}, e.FirstSlot-1, e.LastSlot+1, s.Index)
		if !stuck || !c.stuck.add(c.fabric, e, s) {
			c.recordLoss(e, s)
		}
		add(e, stuck)
	}
	for _, k := range order {
		if k.lost >= c.cfg.LossPackets && float64(k.lost) >= c.cfg.LossShare*float64(k.sent) {
			c.addSegmentEvidence(k, s)
		}
	}
}

// recordLoss adds the record of a loss.
func (c *Controller) recordLoss(e *loss.Event, s *flowwatch.Slot) {
	r := record.Loss{
		Time: c.wallTime(model.Time(e.FirstSlot * int64(s.Length))), Flow: e.Flow, From: c.nodeName(e.From.Node),
		Packets: e.Packets, Sent: e.Sent, Pattern: "scattered",
	}
	if e.To != (model.Port{}) {
		r.To = c.nodeName(e.To.Node)
	}
	if e.Packets == e.Sent {
		r.Pattern = "all"
	}
	c.batch.Losses = append(c.batch.Losses, r)
	c.recentLosses.add(c.now, e.From, e.Packets)
}

// addSegmentEvidence adds what a segment lacks as evidence.
func (c *Controller) addSegmentEvidence(k *segmentLosses, s *flowwatch.Slot) {
	e := incident.Evidence{
		At: max(c.now, s.End()), From: model.Time(k.from * int64(s.Length)), Until: model.Time((k.to + 1) * int64(s.Length)), Source: anomaly.Flowsets, Cause: anomaly.Loss, Confirmed: true,
		Location: k.From, Flows: k.flows, Scale: k.lost, LostPackets: k.lost, SentPackets: k.sent,
		Text: fmt.Sprintf("%d of %s of %s lost after %s", k.lost, plural.Count(k.sent, "packet"), plural.Count(len(k.flows), "flow"), c.portName(k.From)),
	}
	if k.To != (model.Port{}) {
		e.NextHop, e.HasNextHop = k.To.Node, true
	}
	switch full := c.meter.discardedIn(k.From.Node, k.from-1, k.to+1); {
	case k.stuck:
		e.Cause, e.LostPackets, e.SentPackets = anomaly.Stall, 0, 0
		e.Text = fmt.Sprintf("%s of %s are stuck at %s, which is paused", plural.Count(k.lost, "packet"), plural.Count(len(k.flows), "flow"), c.portName(k.From))
		c.setDownstreamPeer(&e)
	case k.lossless < c.cfg.LossPackets && full*2 >= k.lost:
		e.Cause, e.LostPackets, e.SentPackets = anomaly.Contention, 0, 0
		e.Text = fmt.Sprintf("%s discarded %s (buffer full)", c.nodeName(k.From.Node), plural.Count(full, "packet"))
	}
	c.addEvidence(e)
}

// isStuck reports whether packets that left a port in none of the slots up to found are
// held in its queue: PFC paused it when they arrived, and still did in the last two
// slots. A queue that was open for longer has sent what it held.
func (c *Controller) isStuck(port model.Port, flows []model.FlowKey, first, last, found int64) bool {
	routes := c.cfg.Intent.At(model.Time(first * int64(c.meter.slot)))
	paused := func(first, last int64) bool {
		return c.meter.pausedFor(port, flows, routes, first, last) >= c.cfg.StallShare
	}
	return paused(found-1, found) && paused(first, last)
}

// isLossless reports whether a flow is in a class that PFC pauses.
func isLossless(k model.FlowKey) bool { return k.Proto == model.UDP && k.DstPort == roce.Port }

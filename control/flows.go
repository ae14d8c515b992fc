package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/wire/roce"
)

// balanceWindow is how many slots of the present window have passed, and the first
// and last of them.
type balanceWindow struct {
	slots       int
	first, last int64
	length      time.Duration
}

func (w *balanceWindow) addSlot(s *flowwatch.Slot) {
	if w.slots == 0 {
		w.first = s.Index
	}
	w.slots, w.last, w.length = w.slots+1, s.Index, s.Length
}

// processSlot makes records and evidence of what all switches counted in one slot.
func (c *Controller) processSlot(s *flowwatch.Slot) {
	c.flowRecords(s)
	c.auditSlot(s)
	c.countPassed(s)
	c.settleSuspects(s)
	// First, so that stalled flows join the incident that pauses them, wherever it is.
	left := c.addPauseEvidence(c.meter.pausedPorts(s.Index, c.cfg.StallShare), s.Start())
	for i := range s.Paths {
		c.addPathEvidence(&s.Paths[i], s)
	}
	c.addLossEvidence(s)
	c.addPauseEvidence(left, s.Start())
	c.logSlot(s)
	c.balanceWindow.addSlot(s)
	c.doubtIncidents() // that the slot's evidence may have opened
	if ends := c.balanceWindow.slots >= c.cfg.BalanceSlots; s.Remote() && s.WindowEnd || !s.Remote() && ends {
		c.addImbalanceEvidence(c.endWindow(), s.Start())
	}
}

// endWindow logs what a window of slots shows, begins a new one, and returns the
// ECMP imbalance.
func (c *Controller) endWindow() []load.Imbalance {
	w := c.balanceWindow
	c.balanceWindow = balanceWindow{}
	list := c.windows.TakeImbalances()
	// Links are logged only: evidence is made of loss events, which come earlier.
	c.logWindow(w, c.windows.TakeLinks(), list)
	c.windows.ResetSizes()
	return list
}

// hostName is the name of an address's host; empty for one outside the fabric.
func (c *Controller) hostName(a model.Addr) string {
	if id, ok := c.fabric.ByAddr(a); ok {
		return c.nodeName(id)
	}
	return ""
}

// addPathEvidence adds a path finding as evidence.
func (c *Controller) addPathEvidence(f *paths.Finding, s *flowwatch.Slot) {
	e := incident.Evidence{
		At: max(c.now, s.End()), From: s.Start(), Source: anomaly.Flowsets, Confirmed: f.Confirmed,
		Location: f.At, Flows: f.Flows, Extent: f.Switches, Scale: uint64(len(f.Flows)),
	}
	if f.HasNext {
		e.NextHop, e.HasNextHop = f.Next.Node, true
	}
	some := fmt.Sprintf("%d of %s%s", len(f.Flows), plural.Count(len(f.Flows)+f.Others, "flow"), c.commonDestination(f.Flows))
	switch paused := c.meter.pausedFor(f.At, f.Flows, c.cfg.Intent.At(s.Start()), f.Slot-1, f.Slot+1); {
	case f.Kind != paths.Loop && f.Kind != paths.WrongRoute && paused >= c.cfg.StallShare && slices.ContainsFunc(f.Flows, isLossless):
		e.Cause = anomaly.Stall
		e.Text = fmt.Sprintf("%s stalled at %s, which was paused for %s of a slot",
			plural.Count(len(f.Flows), "flow"), c.portName(f.At), model.FormatShare(paused))
		c.setDownstreamPeer(&e)
	case f.Kind == paths.Loop:
		e.Cause = anomaly.Loop
		e.Text = fmt.Sprintf("%s are looping: %s", some, c.loopText(f.Switches))
	case f.Kind == paths.BlackHole && !f.HasNext && f.At.Port != 0:
		// It is not known what the next switch saw, which may have dropped them as well.
		// Evidence that knows the place says more about it, however few flows it has.
		e.Cause, e.Scale = anomaly.Blackhole, 0
		e.Text = fmt.Sprintf("%s are dropped at %s or after it", some, c.portName(f.At))
		c.setDownstreamPeer(&e)
	case f.Kind == paths.BlackHole:
		e.Cause = anomaly.Blackhole
		e.Text = fmt.Sprintf("%s are dropped at %s", some, c.portName(f.At))
	case f.Kind == paths.Silent:
		e.Cause = anomaly.DeadLink
		e.Text = fmt.Sprintf("%s leave %s and do not arrive at its peer", some, c.portName(f.At))
	case f.Kind == paths.WrongRoute:
		e.Cause = anomaly.WrongRoute
		c.setDownstreamPeer(&e)
		e.Text = fmt.Sprintf("%s leave %s by a port that is not intended: %s", some, c.nodeName(f.At.Node), c.portName(f.At))
	}
	c.logOrSuspect(f, s, e.Cause == anomaly.Stall)
	c.addEvidence(e)
}

// commonDestination names the host that all flows go to, if there is one.
func (c *Controller) commonDestination(flows []model.FlowKey) string {
	for i := range flows {
		if flows[i].Dst != flows[0].Dst {
			return ""
		}
	}
	if len(flows) == 0 || c.hostName(flows[0].Dst) == "" {
		return ""
	}
	return ", all to " + c.hostName(flows[0].Dst) + ","
}

// loopText names the switches of a loop, the first once more at the end.
func (c *Controller) loopText(list []model.NodeID) string {
	text := ""
	for _, id := range list {
		text += c.nodeName(id) + " → "
	}
	return text + c.nodeName(list[0])
}

// addEvidence adds evidence to its incident. Unconfirmed evidence opens none.
func (c *Controller) addEvidence(e incident.Evidence) *incident.Incident {
	if e.Confirmed {
		if in := c.addVerifyingEvidence(&e); in != nil {
			return in
		}
		return c.correlator.AddEvidence(e)
	}
	return c.correlator.AddSupporting(e)
}

// addLossEvidence records every loss, and adds evidence where a link loses enough.
func (c *Controller) addLossEvidence(s *flowwatch.Slot) {
	type sum struct {
		lost, sent uint64
		lossless   uint64 // of those lost: packets of a lossless class
		from, to   int64
		flows      []model.FlowKey
	}
	var order []loss.Segment
	sums := map[loss.Segment]*sum{}
	for i := range s.Losses {
		e := &s.Losses[i]
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
	late := c.stuck.takeLost(c.fabric, s, func(k *stuckFlow, a *stuckAccount) bool {
		return !c.isStuck(k.From, []model.FlowKey{k.flow}, a.from-1, s.Index, s.Index)
	})
	for _, e := range slices.Concat(late, s.Losses) {
		if e.WholePath {
			continue // the segment is not known
		}
		k := sums[e.Segment]
		if k == nil {
			k = &sum{from: e.FirstSlot, to: e.LastSlot}
			sums[e.Segment] = k
			order = append(order, e.Segment)
		}
		k.lost, k.sent, k.from, k.to = k.lost+e.Packets, k.sent+e.Sent, min(k.from, e.FirstSlot), max(k.to, e.LastSlot)
		k.flows = append(k.flows, e.Flow)
		if isLossless(e.Flow) {
			k.lossless += e.Packets
		}
	}
	for _, seg := range order {
		k := sums[seg]
		if k.lost < c.cfg.LossPackets || float64(k.lost) < c.cfg.LossShare*float64(k.sent) {
			continue
		}
		e := incident.Evidence{
			At: max(c.now, s.End()), From: model.Time(k.from * int64(s.Length)), Source: anomaly.Flowsets, Cause: anomaly.Loss, Confirmed: true,
			Location: seg.From, Flows: k.flows, Scale: k.lost, LostPackets: k.lost, SentPackets: k.sent,
			Text: fmt.Sprintf("%d of %s of %s lost after %s", k.lost, plural.Count(k.sent, "packet"), plural.Count(len(k.flows), "flow"), c.portName(seg.From)),
		}
		if seg.To != (model.Port{}) {
			e.NextHop, e.HasNextHop = seg.To.Node, true
		}
		switch full := c.meter.discardedIn(seg.From.Node, k.from-1, k.to+1); {
		case k.lossless > 0 && c.isStuck(seg.From, k.flows, k.from-1, k.to+1, s.Index):
			e.Cause, e.LostPackets, e.SentPackets = anomaly.Stall, 0, 0
			e.Text = fmt.Sprintf("%s of %s are stuck at %s, which is paused", plural.Count(k.lost, "packet"), plural.Count(len(k.flows), "flow"), c.portName(seg.From))
			c.setDownstreamPeer(&e)
			for i := range s.Losses {
				if s.Losses[i].Segment == seg {
					c.stuck.add(c.fabric, &s.Losses[i], s)
				}
			}
		case k.lossless < c.cfg.LossPackets && full*2 >= k.lost:
			e.Cause, e.LostPackets, e.SentPackets = anomaly.Contention, 0, 0
			e.Text = fmt.Sprintf("%s discarded %s (buffer full)", c.nodeName(seg.From.Node), plural.Count(full, "packet"))
		}
		c.addEvidence(e)
	}
}

// isStuck reports whether packets that left a port in none of the slots up to found are
// held in its queue: PFC paused it when they arrived, and still did in the last two
// slots. A queue that was open for longer has sent what it held.
func (c *Controller) isStuck(port model.Port, flows []model.FlowKey, first, last, found int64) bool {
	routes := c.cfg.Intent.At(model.Time(first * int64(c.meter.slot)))
	paused := func(first, last int64) bool {
		return c.meter.pausedFor(port, flows, routes, first, last) >= c.cfg.StallShare
	}
	return paused(first, last) && paused(found-1, found)
}

// isLossless reports whether a flow is in a class that PFC pauses.
func isLossless(k model.FlowKey) bool { return k.Proto == model.UDP && k.DstPort == roce.Port }

// addImbalanceEvidence adds evidence of ECMP imbalance by hash polarization.
// Imbalance by chance, or by a few large flows, is no fault. Switches whose
// imbalance another incident explains, such as a detour or a paused queue, add to
// that one; all others are one incident, as they are configured alike. A single switch must
// be out of balance in two windows.
func (c *Controller) addImbalanceEvidence(list []load.Imbalance, from model.Time) {
	all := incident.Evidence{At: c.now, From: from, Source: anomaly.Flowsets, Cause: anomaly.Imbalance, Confirmed: true}
	var worst *load.Imbalance
	for i := range list {
		im := &list[i]
		if im.Cause != load.Hash {
			continue
		}
		one := all
		one.Location, one.Extent, one.Text = model.Port{Node: im.Switch}, nil, im.Describe(c.fabric)
		if in := c.correlator.FindExplanation(one); in != nil && in.Cause != anomaly.Imbalance {
			c.addEvidence(one)
			continue
		}
		if all.Extent = append(all.Extent, im.Switch); worst == nil || im.Ratio > worst.Ratio {
			worst, all.Location, all.Text = im, one.Location, one.Text
		}
	}
	before := c.uneven
	if c.uneven = all.Extent; worst == nil {
		return
	}
	// Some of many switches are uneven by chance, now and then.
	all.Confirmed = len(all.Extent) > 1 || slices.Contains(before, worst.Switch)
	if n := len(all.Extent); n > 1 {
		all.Text = fmt.Sprintf("ECMP imbalance at %d switches, worst at %s", n, strings.TrimPrefix(all.Text, "ECMP imbalance at "))
	}
	c.addEvidence(all)
}

// setDownstreamPeer notes the node that a port sends to.
func (c *Controller) setDownstreamPeer(e *incident.Evidence) {
	if p := c.fabric.Port(e.Location); p != nil {
		e.NextHop, e.HasNextHop = p.Peer.Node, true
	}
}

// addPauseEvidence adds ports that were paused in a slot to the incidents that they
// touch: pauses spread from link to link, and show the extent of an incident. It
// returns the ports that touch none.
func (c *Controller) addPauseEvidence(left []model.Port, from model.Time) []model.Port {
	for again := true; again; {
		again = false
		var rest []model.Port
		for _, p := range left {
			e := incident.Evidence{
				At: c.now, From: from, Source: anomaly.Counters, Cause: anomaly.Stall, Confirmed: true, Location: p,
				Text: fmt.Sprintf("%s was paused", c.portName(p)),
			}
			c.setDownstreamPeer(&e)
			if c.correlator.AddSupporting(e) == nil {
				rest = append(rest, p)
			} else {
				again = true
			}
		}
		left = rest
	}
	return left
}

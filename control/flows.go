package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
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
	c.meter.creditPauseFrames(s.End())
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

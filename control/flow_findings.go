package control

import (
	"time"

	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/model"
)

// FlowFindings is part of api.FlowAnalyses.
func (f *Backend) FlowFindings(from, to time.Time) api.FlowFindings {
	return f.c.findings.Find(from, to)
}

// slotSpan is the time of successive slots, from the first to the last.
func (c *Controller) slotSpan(first, last int64, length time.Duration) api.FindingTime {
	return api.FindingTime{
		First: c.wallTime(model.Time(first * int64(length))), Last: c.wallTime(model.Time((last + 1) * int64(length))),
		Slots: int(last - first + 1),
	}
}

// pathKinds are the names of path findings in the API: those of incidents' causes.
var pathKinds = map[paths.Kind]string{
	paths.Loop: "loop", paths.BlackHole: "blackhole", paths.Silent: "silent-link", paths.WrongRoute: "wrong-route",
}

// logPath logs a forwarding fault. Stalled is set if pauses explain it.
func (c *Controller) logPath(f *paths.Finding, slot time.Duration, stalled bool) {
	one := api.PathFinding{
		Kind: pathKinds[f.Kind], Confirmed: f.Confirmed, Stalled: stalled, FindingTime: c.slotSpan(f.Slot, f.Slot, slot),
		At: c.portRef(f.At), AffectedFlows: api.AffectedFlows{Flows: f.Flows}, PassedFlows: f.Others,
	}
	if f.HasNext {
		next := c.portRef(f.Next)
		one.Next = &next
	}
	for _, id := range f.Switches {
		one.Switches = append(one.Switches, c.nodeName(id))
	}
	c.findings.AddPath(one)
}

// logSlot logs the losses whose link is not known, and the bursts, of one slot.
func (c *Controller) logSlot(s *flowwatch.Slot) {
	for i := range s.Losses {
		e := &s.Losses[i]
		if !e.WholePath {
			continue // the link has its sum at the end of the flowlet
		}
		one := api.LinkLoss{
			From: api.PortRef{Node: c.nodeName(e.From.Node)}, FindingTime: c.slotSpan(e.FirstSlot, e.LastSlot, s.Length),
			LostPackets: e.Packets, SentPackets: e.Sent, Pattern: loss.WholePath.String(),
			AffectedFlows: api.AffectedFlows{Flows: []model.FlowKey{e.Flow}},
		}
		if e.To != (model.Port{}) {
			one.To = &api.PortRef{Node: c.nodeName(e.To.Node)}
		}
		c.findings.AddLoss(one)
	}
	for i := range s.Spikes {
		b := &s.Spikes[i]
		c.findings.AddBurst(api.MicroburstFinding{
			Port: c.portRef(b.Port), FindingTime: c.slotSpan(b.Slot, b.Slot+b.Slots-1, s.Length),
			LoadShare: b.Load, UsualShare: b.Usual, NewFlows: b.New, AffectedFlows: api.AffectedFlows{Flows: b.Flows},
		})
	}
	for i := range s.Rhythms {
		p := &s.Rhythms[i]
		c.findings.AddPeriodicSender(api.PeriodicSender{
			Port: c.portRef(p.Port), Source: p.Source.String(), FindingTime: c.slotSpan(p.Slot, p.Slot, s.Length),
			Bursts: p.Bursts, PeriodNs: int64(p.Period), LoadShare: p.Load, MeanShare: p.Mean,
		})
	}
}

// logWindow logs the ECMP imbalance of a window of slots, and the losses of flowlets
// that ended in it.
func (c *Controller) logWindow(w balanceWindow, links []*loss.Link, list []load.Imbalance) {
	at := c.slotSpan(w.first, w.last, w.length)
	for _, l := range links {
		if l.Lost == 0 {
			continue
		}
		one := api.LinkLoss{
			From: c.portRef(l.From), FindingTime: c.slotSpan(l.FirstSlot, l.LastSlot, w.length),
			LostPackets: l.Lost, SentPackets: l.Sent, Pattern: l.Pattern().String(),
		}
		if l.To != (model.Port{}) {
			to := c.portRef(l.To)
			one.To = &to
		}
		for i := range l.Affected {
			one.Flows = append(one.Flows, l.Affected[i].Flow)
		}
		c.findings.AddLoss(one)
	}
	for i := range list {
		im := &list[i]
		one := api.ECMPImbalance{
			Switch: c.nodeName(im.Switch), FindingTime: at, Cause: im.Cause.String(), Ratio: im.Ratio, Heavy: im.Heavy,
		}
		for _, p := range im.Ports {
			one.Ports = append(one.Ports, api.PortShare{
				PortRef: c.portRef(model.Port{Node: im.Switch, Port: p.Port}), Flows: p.Flows, Packets: p.Packets,
			})
		}
		c.findings.AddImbalance(one)
	}
}

package slowslot

import (
	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/analyze/slowslot/slowload"
	"github.com/weft-telemetry/weft/analyze/slowslot/slowloss"
	"github.com/weft-telemetry/weft/analyze/slowslot/slowpaths"
	"github.com/weft-telemetry/weft/topo"
)

// Result is everything that the analyses say about a slot.
type Result struct {
	Findings []paths.Finding
	Losses   []loss.Event
	Stats    loss.Stats
	Spikes   []load.Microburst
	Rhythms  []load.PeriodicSender
	Flows    []Record
	// Of a window, in the slots that end one.
	Links      []Link
	Imbalances []load.Imbalance
	Sizes      []load.Size
	Spread     []int
	Untracked  uint64
}

// Record is a flow with its path.
type Record struct {
	Flow string
	Hops []Hop
	Loop []uint32
}

// Hop is a flow at a switch.
type Hop struct {
	Switch         uint32
	Packets, Bytes uint64
	Exact          bool
}

// Link is a loss.Link as its users see it.
type Link struct {
	loss.Segment
	Flowlets            int
	Sent, Lost          uint64
	FirstSlot, LastSlot int64
	Affected            []loss.AffectedFlowlet
	Pattern             loss.Pattern
}

// Limits of flows that are tracked. They are small enough that some are reached.
type Limits struct{ Tracked, Sizes, Balance int }

// Configs returns configurations that find something in slots of few packets.
func (l *Limits) Configs(in *topo.Intent) (loss.Config, load.BalanceConfig, load.BurstConfig) {
	lc, bc, uc := loss.DefaultConfig(in), load.DefaultBalanceConfig(in), load.DefaultBurstConfig(in.At(0).Fabric())
	lc.MaxFlows, bc.MaxFlows = l.Tracked, l.Balance
	bc.MinFlows, bc.Ratio, bc.Sigma = 4, 1.1, 1
	uc.Load, uc.History, uc.MinBursts, uc.Jitter = 0.0005, 4, 3, 0.9
	return lc, bc, uc
}

// Slow analyses slots with maps of flows.
type Slow struct {
	intent  *topo.Intent
	paths   *slowpaths.Detector
	loss    *slowloss.Tracker
	bursts  *slowload.BurstDetector
	balance *slowload.BalanceDetector
	sizes   *slowload.Sizes
}

// NewSlow returns analyses that have seen no slot.
func NewSlow(in *topo.Intent, l Limits) *Slow {
	lc, bc, uc := l.Configs(in)
	return &Slow{
		intent: in, paths: must(slowpaths.NewDetector(paths.DefaultConfig(in))), loss: must(slowloss.NewTracker(lc)),
		bursts: must(slowload.NewBurstDetector(uc)), balance: must(slowload.NewBalanceDetector(bc)), sizes: slowload.NewSizes(l.Sizes),
	}
}

// Observe returns all results of the next slot, and those of a window that ends with it.
func (a *Slow) Observe(s int64, r Report, window bool) (out Result) {
	m := slowpaths.NewMap(s, SlotLength)
	for _, d := range r.Lost {
		m.MarkLost(d.Switch, d.V6)
	}
	for _, d := range r.Sets {
		m.AddFlowset(d)
	}
	out.Findings, out.Losses = a.paths.Observe(m), a.loss.Observe(m)
	out.Stats = a.loss.Stats()
	out.Spikes, out.Rhythms = a.bursts.Observe(m)
	a.balance.Observe(m)
	a.sizes.Observe(m)
	for key := range m.All() {
		t := m.FlowPath(key, a.intent.At(m.Start()))
		f := Record{Flow: key.String()}
		for _, h := range t.Hops {
			f.Hops = append(f.Hops, Hop{uint32(h.Switch), h.Packets, h.Bytes, h.Exact})
		}
		for _, id := range t.Loop {
			f.Loop = append(f.Loop, uint32(id))
		}
		out.Flows = append(out.Flows, f)
	}
	if window {
		for _, l := range a.loss.TakeLinks() {
			out.Links = append(out.Links, Link{l.Segment, l.Flowlets, l.Sent, l.Lost, l.FirstSlot, l.LastSlot, l.Affected, l.Pattern()})
		}
		out.Imbalances, out.Sizes, out.Spread, out.Untracked = a.balance.TakeImbalances(), a.sizes.Top(50), a.sizes.Distribution(), a.sizes.Untracked
		a.sizes.Reset()
	}
	return out
}

// LinksOf returns what users see of links.
func LinksOf(list []*loss.Link) (links []Link) {
	for _, l := range list {
		links = append(links, Link{l.Segment, l.Flowlets, l.Sent, l.Lost, l.FirstSlot, l.LastSlot, l.Affected, l.Pattern()})
	}
	return links
}

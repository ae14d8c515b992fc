package slowloss

import (
	"cmp"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// Link sums up all ended flowlets that crossed a segment.
type Link struct {
	Segment
	Flowlets int
	Sent     uint64 // packets
	Lost     uint64
	// FirstSlot and LastSlot bound when the lost packets passed From.
	FirstSlot, LastSlot int64

	Affected []AffectedFlowlet // flowlets that lost packets
	sizes    []uint64          // packets of each flowlet, to compare with even losses
}

// Pattern distinguishes losses of some flows from losses of all. Under Selective
// every affected flowlet lost at least a tenth of its packets, and at most half
// as many flowlets are affected as evenly spread losses would affect.
func (l *Link) Pattern() Pattern {
	if l.Lost == 0 {
		return NoLoss
	}
	rate := float64(l.Lost) / float64(l.Sent)
	expected := 0.0
	for _, n := range l.sizes {
		expected += 1 - math.Pow(1-rate, float64(n))
	}
	hard := !slices.ContainsFunc(l.Affected, func(h AffectedFlowlet) bool { return h.Lost*10 < h.Sent })
	if hard && float64(len(l.Affected)) <= expected/2 {
		return Selective
	}
	return Scattered
}

// addToLinks adds an ended flowlet to the links it crossed.
func (t *Tracker) addToLinks(key model.FlowKey, fl *flowlet, slot int64) {
	if fl.spreads(slot) || fl.ambiguous() {
		return
	}
	for i := range fl.hops {
		h := &fl.hops[i]
		if fl.isLastHop(i) && !h.provenLost || h.moved || h.packets == 0 {
			continue
		}
		s := fl.segment(i)
		l := t.links[s]
		if l == nil {
			l = &Link{Segment: s}
			t.links[s] = l
		}
		l.Flowlets++
		l.Sent += h.packets
		l.sizes = append(l.sizes, h.packets)
		if h.reported > 0 {
			if l.Lost == 0 {
				l.FirstSlot, l.LastSlot = h.firstLoss, h.lastLoss
			}
			l.FirstSlot, l.LastSlot = min(l.FirstSlot, h.firstLoss), max(l.LastSlot, h.lastLoss)
			l.Lost += h.reported
			l.Affected = append(l.Affected, AffectedFlowlet{Flow: key, Sent: h.packets, Lost: h.reported})
		}
	}
}

// TakeLinks returns the loss map since the last call, the links with most losses
// first, and starts a new one.
func (t *Tracker) TakeLinks() []*Link {
	list := make([]*Link, 0, len(t.links))
	for _, l := range t.links {
		slices.SortStableFunc(l.Affected, func(a, b AffectedFlowlet) int { return a.Flow.Compare(b.Flow) })
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b *Link) int {
		return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(a.From.Node, b.From.Node),
			cmp.Compare(a.From.Port, b.From.Port),
			cmp.Compare(a.To.Node, b.To.Node), cmp.Compare(a.To.Port, b.To.Port))
	})
	clear(t.links)
	return list
}

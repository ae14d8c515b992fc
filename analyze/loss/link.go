package loss

import (
	"cmp"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/analyze/paths"
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

// AffectedFlowlet is one flowlet's loss.
type AffectedFlowlet struct {
	Flow       model.FlowKey
	Sent, Lost uint64
}

// Pattern says which flows a link's losses affect.
type Pattern uint8

// Patterns.
const (
	NoLoss    Pattern = iota
	Scattered         // as many flowlets as random drops would affect: congestion, or random loss
	Selective         // few flowlets, with high loss: a black hole shorter than the flowlets, or for some flows
	WholePath         // counters do not show the link: of an Event, never of a Link
)

var patternNames = [...]string{NoLoss: "none", Scattered: "scattered", Selective: "selective", WholePath: "whole-path"}

// String prints the pattern's name.
func (p Pattern) String() string { return patternNames[p] }

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

// links are the links of a window, by the port that packets left through.
type links struct {
	byPort [][]*Link // by the port's number
	others []*Link   // of ports that the fabric does not have
	list   []*Link   // all
}

// find returns the link of a segment, a new one if there is none.
func (ls *links) find(ports *paths.Ports, s *Segment) *Link {
	if ls.byPort == nil {
		ls.byPort = make([][]*Link, ports.Len())
	}
	same := &ls.others
	if n, ok := ports.Number(s.From.Node, s.From.Port); ok {
		same = &ls.byPort[n]
	}
	for _, l := range *same {
		if l.Segment == *s {
			return l
		}
	}
	l := &Link{Segment: *s}
	*same, ls.list = append(*same, l), append(ls.list, l)
	return l
}

func (ls *links) clear() {
	for i := range ls.byPort {
		ls.byPort[i] = nil
	}
	ls.others, ls.list = nil, nil
}

// addToLinks adds an ended flowlet to the links it crossed.
func (t *Tracker) addToLinks(key *model.FlowKey, fl *flowlet, slot int64) {
	list := t.hopsOf(fl)
	if fl.spreads(slot) || t.ambiguous(list) {
		return
	}
	for i := range list {
		h := &list[i]
		if t.isLast(i) && h.state&provenLost == 0 || h.state&moved != 0 || h.packets == 0 {
			continue
		}
		s := segment(list, i)
		l := t.links.find(t.ports, &s)
		one := Link{Flowlets: 1, Sent: h.packets}
		if reported := t.reported(h); reported > 0 {
			d := &t.deficits[h.deficit-1]
			one.Lost, one.FirstSlot, one.LastSlot = reported, d.firstLoss, d.lastLoss
			l.Affected = append(l.Affected, AffectedFlowlet{*key, h.packets, reported})
		}
		l.sizes = append(l.sizes, h.packets)
		l.add(&one)
	}
}

// add adds the sums of another link.
func (l *Link) add(o *Link) {
	l.Flowlets += o.Flowlets
	l.Sent += o.Sent
	if o.Lost > 0 {
		if l.Lost == 0 {
			l.FirstSlot, l.LastSlot = o.FirstSlot, o.LastSlot
		}
		l.FirstSlot, l.LastSlot = min(l.FirstSlot, o.FirstSlot), max(l.LastSlot, o.LastSlot)
		l.Lost += o.Lost
	}
}

// TakeLinks returns the loss map since the last call, the links with most losses
// first, and starts a new one.
func (t *Tracker) TakeLinks() []*Link { return TakeLinks(t) }

// TakeLinks returns the loss map of several trackers, each of which saw a part of the
// flows, as one that saw all of them would.
func TakeLinks(trackers ...*Tracker) []*Link {
	parts := make([][]*Link, len(trackers))
	for i, t := range trackers {
		parts[i] = t.TakePartLinks()
	}
	return MergeLinks(trackers[0].ports, parts...)
}

// sortLinks sorts links, and what they list, so that they do not depend on the parts.
func sortLinks(list []*Link) []*Link {
	for _, l := range list {
		slices.Sort(l.sizes) // what depends on them must not depend on their order
		// Flowlets of one flow are all in one part, in the order in which they ended.
		slices.SortStableFunc(l.Affected, func(a, b AffectedFlowlet) int { return a.Flow.Compare(b.Flow) })
	}
	slices.SortFunc(list, func(a, b *Link) int {
		return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(a.From.Node, b.From.Node),
			cmp.Compare(a.From.Port, b.From.Port),
			cmp.Compare(a.To.Node, b.To.Node), cmp.Compare(a.To.Port, b.To.Port))
	})
	return list
}

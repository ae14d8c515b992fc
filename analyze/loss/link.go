package loss

import (
	"cmp"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// Link is what became of all flowlets that crossed a segment and are over.
type Link struct {
	Segment
	Flowlets int
	Sent     uint64 // packets
	Lost     uint64

	Hurt  []Hurt   // flowlets that lost packets
	sizes []uint64 // packets of each flowlet, to compare with even losses
}

// Hurt is one flowlet's loss.
type Hurt struct {
	Flow       model.FlowKey
	Sent, Lost uint64
}

// Pattern says whom a link's losses hit.
type Pattern uint8

// Patterns.
const (
	NoLoss    Pattern = iota
	Scattered         // as many flowlets as chance would hit: congestion, or random drops
	Selective         // few flowlets, and those hard: a black hole shorter than the flowlets, or for some flows
)

var patternNames = [...]string{NoLoss: "none", Scattered: "scattered", Selective: "selective"}

// String prints the pattern's name.
func (p Pattern) String() string { return patternNames[p] }

// Pattern tells losses of some flows from losses of all. Every flowlet that
// loses packets under Selective lost at least a tenth of them, and at most half
// as many flowlets are hurt as the same losses spread evenly would hurt.
func (l *Link) Pattern() Pattern {
	if l.Lost == 0 {
		return NoLoss
	}
	rate := float64(l.Lost) / float64(l.Sent)
	expected := 0.0
	for _, n := range l.sizes {
		expected += 1 - math.Pow(1-rate, float64(n))
	}
	hard := !slices.ContainsFunc(l.Hurt, func(h Hurt) bool { return h.Lost*10 < h.Sent })
	if hard && float64(len(l.Hurt)) <= expected/2 {
		return Selective
	}
	return Scattered
}

// account adds a flowlet that is over to the links it crossed.
func (t *Tracker) account(key model.FlowKey, fl *flowlet) {
	if fl.mixed() {
		return
	}
	for i := range fl.hops {
		h := &fl.hops[i]
		if fl.leaf(i) && !h.gone {
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
		if h.told > 0 {
			l.Lost += h.told
			l.Hurt = append(l.Hurt, Hurt{key, h.packets, h.told})
		}
	}
}

// Take returns the loss map since the last call, the links with most losses
// first, and starts a new one.
func (t *Tracker) Take() []*Link {
	list := make([]*Link, 0, len(t.links))
	for _, l := range t.links {
		slices.SortFunc(l.Hurt, func(a, b Hurt) int { return a.Flow.Compare(b.Flow) })
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b *Link) int {
		return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(a.From.Node, b.From.Node), cmp.Compare(a.From.Port, b.From.Port),
			cmp.Compare(a.To.Node, b.To.Node), cmp.Compare(a.To.Port, b.To.Port))
	})
	clear(t.links)
	return list
}

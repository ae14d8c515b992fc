package ports

import (
	"time"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
)

// Journey sums up the ways of a followed flow's packets, hop by hop.
type Journey struct {
	Flow    model.FlowKey
	Packets int
	Hops    []Hop // of the newest way
	Changes int   // of the way: hops begin anew with each

	last model.Time
}

// Hop is one switch on the way.
type Hop struct {
	Newest        label.Item
	Least, Most   time.Duration // in the switch
	sum           time.Duration
	Link, MinLink time.Duration // from the switch before: newest and least; NoLink at the first hop
	packets       int
}

// Mean is the mean time in the switch.
func (h *Hop) Mean() time.Duration { return h.sum / time.Duration(max(h.packets, 1)) }

// Port is where packets leave the switch.
func (h *Hop) Port() model.Port { return model.Port{Node: h.Newest.Switch, Port: h.Newest.Egress} }

// add takes the newest way, unless it is known.
func (j *Journey) add(w *coverage.FlowPath) {
	if j.Packets > 0 && w.Time == j.last {
		return
	}
	j.last = w.Time
	j.Packets++
	if !j.same(w.Hops) {
		if j.Hops != nil {
			j.Changes++
		}
		j.Hops = make([]Hop, len(w.Hops))
	}
	for i := range w.Hops {
		link := coverage.NoLink
		if i > 0 {
			link = w.Hops[i].Time.Add(-w.Hops[i].Latency).Sub(w.Hops[i-1].Time)
		}
		j.Hops[i].add(w.Hops[i], link)
	}
}

func (h *Hop) add(it label.Item, link time.Duration) {
	if h.packets == 0 {
		h.Least, h.MinLink = it.Latency, link
	}
	h.Newest, h.Link = it, link
	h.Least, h.Most = min(h.Least, it.Latency), max(h.Most, it.Latency)
	h.MinLink = min(h.MinLink, link)
	h.sum += it.Latency
	h.packets++
}

// same tells whether the way is as it was.
func (j *Journey) same(hops []label.Item) bool {
	if len(hops) != len(j.Hops) {
		return false
	}
	for i := range hops {
		n := &j.Hops[i].Newest
		if n.Switch != hops[i].Switch || n.Ingress != hops[i].Ingress || n.Egress != hops[i].Egress {
			return false
		}
	}
	return true
}

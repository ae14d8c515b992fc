package labels

import (
	"time"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
)

// FlowLatency is the latency of a followed flow's packets, hop by hop.
type FlowLatency struct {
	Flow    model.FlowKey
	Packets int
	Hops    []Hop // of the newest path
	Changes int   // of the path; each resets Hops

	last model.Time
}

// Hop is one switch on the path.
type Hop struct {
	Newest        label.Item
	Min, Max      time.Duration // in the switch
	sum           time.Duration
	Link, MinLink time.Duration // from the switch before: newest and minimum; NoLink at the first hop
	packets       int
}

// Mean is the mean time in the switch.
func (h *Hop) Mean() time.Duration { return h.sum / time.Duration(max(h.packets, 1)) }

// Port is the egress port.
func (h *Hop) Port() model.Port { return model.Port{Node: h.Newest.Switch, Port: h.Newest.Egress} }

// addPath adds the newest path, unless it was added before.
func (j *FlowLatency) addPath(w *coverage.FlowPath) {
	if j.Packets > 0 && w.Time == j.last {
		return
	}
	j.last = w.Time
	j.Packets++
	if !j.samePath(w.Hops) {
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
		j.Hops[i].addSample(w.Hops[i], link)
	}
}

func (h *Hop) addSample(it label.Item, link time.Duration) {
	if h.packets == 0 {
		h.Min, h.MinLink = it.Latency, link
	}
	h.Newest, h.Link = it, link
	h.Min, h.Max = min(h.Min, it.Latency), max(h.Max, it.Latency)
	h.MinLink = min(h.MinLink, link)
	h.sum += it.Latency
	h.packets++
}

// samePath reports whether the path has not changed.
func (j *FlowLatency) samePath(hops []label.Item) bool {
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

package report

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// PortSummary is one port over the whole run.
type PortSummary struct {
	Node      string       `json:"node"`
	Port      model.PortID `json:"port"`
	Interface string       `json:"interface,omitempty"`
	Peer      string       `json:"peer,omitempty"`
	PeakQueue model.Bytes  `json:"-"` // largest sample
	Tx        model.Bytes  `json:"-"`
	// Utilisation is Tx over the port's capacity in the sampled time; zero
	// where rate or interval is unknown.
	Utilisation float64 `json:"utilisation"`
	Paused      float64 `json:"paused_share"` // mean over samples

	series *PortSeries
}

// MarshalJSON writes sizes as numbers; by default they are text.
func (p PortSummary) MarshalJSON() ([]byte, error) {
	type plain PortSummary
	return json.Marshal(struct {
		plain
		PeakQueue int64 `json:"peak_queue_bytes"`
		Tx        int64 `json:"tx_bytes"`
	}{plain(p), int64(p.PeakQueue), int64(p.Tx)})
}

// Name returns "s1 Ethernet8 → h7", or "s1:3 → h7" without interface names.
func (p PortSummary) Name() string {
	if p.Peer == "" {
		return portName(p.Node, p.Port, p.Interface)
	}
	return portName(p.Node, p.Port, p.Interface) + " → " + p.Peer
}

// rankPorts returns the n ports with the highest utilisation, and the n with
// the deepest queues. Ports that sent or queued nothing are not listed.
func (r *Run) rankPorts(n int) (busiest, deepest []PortSummary) {
	ports := make([]PortSummary, 0, len(r.Ports))
	for i := range r.Ports {
		ports = append(ports, r.sumPort(&r.Ports[i]))
	}
	index := func(a, b PortSummary) int {
		return cmp.Or(cmp.Compare(a.series.ID, b.series.ID), cmp.Compare(a.Port, b.Port))
	}
	top := func(order func(a, b PortSummary) int, idle func(PortSummary) bool) []PortSummary {
		sorted := slices.DeleteFunc(slices.Clone(ports), idle)
		slices.SortFunc(sorted, func(a, b PortSummary) int { return cmp.Or(order(a, b), index(a, b)) })
		return sorted[:min(n, len(sorted))]
	}
	busiest = top(func(a, b PortSummary) int {
		return cmp.Or(cmp.Compare(b.Utilisation, a.Utilisation), cmp.Compare(b.Tx, a.Tx))
	}, func(p PortSummary) bool { return p.Tx == 0 })
	deepest = top(func(a, b PortSummary) int {
		return cmp.Compare(b.PeakQueue, a.PeakQueue)
	}, func(p PortSummary) bool { return p.PeakQueue == 0 })
	return busiest, deepest
}

func (r *Run) sumPort(p *PortSeries) PortSummary {
	out := PortSummary{Node: p.Node, Port: p.Port, Interface: p.Interface, Peer: p.Peer, series: p}
	for _, s := range p.Samples {
		out.PeakQueue = max(out.PeakQueue, s.Queue)
		out.Tx += s.Tx
		out.Paused += s.Paused
	}
	if n := float64(len(p.Samples)); n > 0 {
		out.Paused /= n
		if p.Rate > 0 && r.Interval > 0 {
			out.Utilisation = float64(out.Tx) * 8 / (float64(p.Rate) * r.Interval.Seconds() * n)
		}
	}
	return out
}

package fairshare

import (
	"math"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Flow is a flow whose rate is forecast.
type Flow struct {
	Key    model.FlowKey
	Src    model.NodeID
	Demand model.Rate // at most this; 0: as much as it gets
	// Path is the one that the flow is known to take, which it keeps unless a link of it
	// is down; nil: routes decide.
	Path []topo.Hop
}

// Forecast is what flows get on a fabric when all send at once, for ever.
type Forecast struct {
	Flows []FlowForecast
	Load  []float64 // by Direction: bits per second
}

// FlowForecast is what one flow gets.
type FlowForecast struct {
	Links  []int      // of its path, by Direction; nil: no route
	Rate   model.Rate // max-min fair
	Ideal  model.Rate // where only hosts' links are shared
	NoPath bool
}

// Slowdown returns how many times slower a flow is than it would be in a fabric
// where only hosts' links are shared.
func (f *FlowForecast) Slowdown() float64 {
	if f.NoPath || f.Rate <= 0 {
		return math.Inf(1)
	}
	return max(1, float64(f.Ideal)/float64(f.Rate))
}

// Direction returns the index of a link in the direction away from a port.
func Direction(f *topo.Fabric, egress model.Port) int {
	link := f.Port(egress).Link
	if f.Links()[link].A == egress {
		return 2 * link
	}
	return 2*link + 1
}

// Egress returns the port of Direction.
func Egress(f *topo.Fabric, direction int) model.Port {
	l := &f.Links()[direction/2]
	if direction%2 == 0 {
		return l.A
	}
	return l.B
}

// New forecasts flows on their paths. Links that are down carry nothing: a static
// route into one is no path.
func New(r *topo.Routes, flows []Flow) *Forecast {
	f := r.Fabric()
	down := make(map[int]bool)
	for _, l := range r.Config().Down {
		down[l] = true
	}
	capacity := make([]float64, 2*len(f.Links()), 2*len(f.Links())+len(flows))
	for i := range capacity {
		capacity[i] = float64(f.Links()[i/2].Rate)
	}
	out := &Forecast{Flows: make([]FlowForecast, len(flows)), Load: make([]float64, len(capacity))}
	shared, ideal := make([][]int, len(flows)), make([][]int, len(flows))
	var hops []topo.Hop
	for i, flow := range flows {
		var err error
		if hops = append(hops[:0], flow.Path...); len(hops) == 0 || crosses(f, hops, down) {
			hops, err = r.AppendPath(hops[:0], flow.Key, flow.Src)
		}
		least := math.Inf(1)
		if flow.Demand > 0 {
			least = float64(flow.Demand)
		}
		own := &out.Flows[i]
		for _, h := range hops {
			if h.Out == 0 || err != nil {
				continue
			}
			at := model.Port{Node: h.Node, Port: h.Out}
			own.NoPath = own.NoPath || down[f.Port(at).Link]
			own.Links = append(own.Links, Direction(f, at))
			least = min(least, float64(f.Port(at).Rate))
		}
		if own.NoPath = own.NoPath || err != nil; own.NoPath {
			own.Links = nil
			continue
		}
		// A link of its own holds the flow to its demand and its slowest link.
		capacity = append(capacity, least)
		limit := len(capacity) - 1
		shared[i] = append(append(shared[i], own.Links...), limit)
		ideal[i] = []int{limit}
		if n := len(own.Links); n > 0 {
			ideal[i] = append(ideal[i], own.Links[0])
			if n > 1 {
				ideal[i] = append(ideal[i], own.Links[n-1])
			}
		}
	}
	rates, ideals := Rates(capacity, shared, 0), Rates(capacity, ideal, 0)
	for i := range out.Flows {
		own := &out.Flows[i]
		own.Rate, own.Ideal = model.Rate(rates[i]), model.Rate(ideals[i])
		for _, l := range own.Links {
			out.Load[l] += rates[i]
		}
	}
	return out
}

// crosses reports whether a path takes one of the links.
func crosses(f *topo.Fabric, path []topo.Hop, links map[int]bool) bool {
	return slices.ContainsFunc(path, func(h topo.Hop) bool {
		return h.Out != 0 && links[f.Port(model.Port{Node: h.Node, Port: h.Out}).Link]
	})
}

// Worst returns the flow with the highest slowdown, or -1 if there is none.
func (f *Forecast) Worst() int {
	worst := -1
	for i := range f.Flows {
		if worst < 0 || f.Flows[i].Slowdown() > f.Flows[worst].Slowdown() {
			worst = i
		}
	}
	return worst
}

package api

import "github.com/weft-telemetry/weft/analyze/provenance/drawing"

// maxLevel bounds the columns of a drawing, whatever the record claims.
const maxLevel = 64

// drawing converts the graph for analyze/provenance/drawing.
func (g *Graph) drawing() *drawing.Drawing {
	d := &drawing.Drawing{}
	level := func(n int) int { return min(max(n, 0), maxLevel) }
	for i := range g.Ports {
		p := &g.Ports[i]
		d.Ports = append(d.Ports, drawing.Port{
			ID: p.ID, Node: p.Node, Port: p.Port, Peer: p.Peer, ToHost: p.ToHost, Priority: p.Priority,
			Packets: p.Packets, Paused: p.PausedPackets, PauseFrames: p.PauseFrames, Depth: p.DepthPackets,
			PausedNow: p.Paused, Level: level(p.Level),
		})
	}
	for i := range g.Flows {
		f := &g.Flows[i]
		victim := f.Role == "victim"
		if victim {
			d.Victim = f.ID
		}
		d.Flows = append(d.Flows, drawing.Flow{ID: f.ID, Key: f.Flow, Victim: victim, Level: level(f.Level)})
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		d.Edges = append(d.Edges, drawing.Edge{From: e.From, To: e.To, Kind: drawing.Kind(e.Kind), Weight: e.Weight})
	}
	return d
}

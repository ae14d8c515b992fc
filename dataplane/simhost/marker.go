package simhost

import (
	"fmt"

	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/analyze/filter/headers"
	"github.com/weft-telemetry/weft/inhost/marker"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Markers are markers at work in simulated hosts, each made when it is first
// switchInfo for.
type Markers struct {
	net   *sim.Network
	hosts map[model.NodeID]*marker.Marker
}

// NewMarkers makes markers as marker.DefaultConfig has them.
func NewMarkers(n *sim.Network) *Markers {
	return &Markers{n, map[model.NodeID]*marker.Marker{}}
}

// Mark has a host mark the packets that a filter chooses, beside those that it
// marks already.
func (ms *Markers) Mark(host model.NodeID, f *filter.Filter[headers.Frame]) error {
	m := ms.hosts[host]
	if m == nil {
		var err error
		if m, err = marker.New(marker.DefaultConfig()); err != nil {
			return err
		}
		if err := installMarker(ms.net, host, m); err != nil {
			return err
		}
		ms.hosts[host] = m
	}
	var view headers.Frame
	return m.Enable(marker.Rule{Name: f.String(), Match: func(p *packet.Packet) bool {
		view.Packet = *p
		return f.Match(&view)
	}})
}

// Unmark ends what Mark began with a filter that prints the same.
func (ms *Markers) Unmark(host model.NodeID, f *filter.Filter[headers.Frame]) error {
	if m := ms.hosts[host]; m == nil || !m.Disable(f.String()) {
		return fmt.Errorf("simhost: node %d marks nothing by %q", host, f)
	}
	return nil
}

// Stats adds up what the markers count.
func (ms *Markers) Stats() (s marker.Stats) {
	for _, m := range ms.hosts {
		one := m.Stats()
		s.Seen += one.Seen
		s.Marked += one.Marked
		s.RateLimited += one.RateLimited
	}
	return s
}

// headBytes is as much of a frame as rules of a marker can ask about.
const headBytes = 192

// installMarker has a host mark what it sends, by the rules that its marker has at the
// time.
func installMarker(n *sim.Network, host model.NodeID, m *marker.Marker) error {
	if !n.Fabric().HasNode(host) || n.Host(host) == nil {
		return fmt.Errorf("simhost: marks by node %d, want a host", host)
	}
	h := n.Host(host)
	var buffer []byte
	for _, port := range h.Ports() {
		others := port.Tap
		port.Tap = func(now engine.Time, p *sim.Packet) {
			if m.HasRules() && p.Kind != sim.KindPFC {
				buffer = n.AppendFrame(buffer[:0], p, port)
				p.DSCP |= m.Mark(h.Clock(), buffer[:min(len(buffer), headBytes)], model.Bytes(p.Size))
			}
			if others != nil {
				others(now, p)
			}
		}
	}
	return nil
}

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

// Markers run markers in simulated hosts, each created on first use.
type Markers struct {
	net   *sim.Network
	hosts map[model.NodeID]*marker.Marker
}

// NewMarkers returns markers with marker.DefaultConfig.
func NewMarkers(n *sim.Network) *Markers {
	return &Markers{n, map[model.NodeID]*marker.Marker{}}
}

// Mark has a host mark the packets that a filter matches, in addition to those
// that it marks already.
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

// Unmark ends the marking of a filter with the same text.
func (ms *Markers) Unmark(host model.NodeID, f *filter.Filter[headers.Frame]) error {
	if m := ms.hosts[host]; m == nil || !m.Disable(f.String()) {
		return fmt.Errorf("simhost: node %d has no mark for filter %q", host, f)
	}
	return nil
}

// Stats returns the sum of the markers' counters.
func (ms *Markers) Stats() (s marker.Stats) {
	for _, m := range ms.hosts {
		one := m.Stats()
		s.Seen += one.Seen
		s.Marked += one.Marked
		s.RateLimited += one.RateLimited
	}
	return s
}

// headBytes is the part of a frame that a marker's rules can match.
const headBytes = 192

// installMarker has a host mark its packets by its marker's rules.
func installMarker(n *sim.Network, host model.NodeID, m *marker.Marker) error {
	if !n.Fabric().HasNode(host) || n.Host(host) == nil {
		return fmt.Errorf("simhost: marks at node %d, want a host", host)
	}
	h := n.Host(host)
	var buffer []byte
	for _, port := range h.Ports() {
		others := port.Tap()
		port.SetLocalTap(func(now engine.Time, p *sim.Packet) {
			if m.HasRules() && p.Kind != sim.KindPFC {
				buffer = n.AppendFrame(buffer[:0], p, port)
				p.DSCP |= m.Mark(h.Clock(), buffer[:min(len(buffer), headBytes)], model.Bytes(p.Size))
			}
			if others != nil {
				others(now, p)
			}
		})
	}
	return nil
}

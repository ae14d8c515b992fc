package traces

import (
	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/analyze/filter/headers"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inhost/marker"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Hosts are simulated hosts that mark packets. It is a tracewatch.Marker.
type Hosts struct {
	net     *sim.Network
	markers map[model.NodeID]*marker.Marker
}

func newHosts(n *sim.Network) *Hosts { return &Hosts{n, map[model.NodeID]*marker.Marker{}} }

// Mark has a host mark the packets that a filter chooses.
func (h *Hosts) Mark(host model.NodeID, f *filter.Filter[headers.Frame]) error {
	m := h.markers[host]
	if m == nil {
		var err error
		if m, err = marker.New(marker.DefaultConfig()); err != nil {
			return err
		}
		if err := simhost.Mark(h.net, host, m); err != nil {
			return err
		}
		h.markers[host] = m
	}
	var view headers.Frame
	return m.Enable(marker.Rule{Name: f.String(), Match: func(p *packet.Packet) bool {
		view.Packet = *p
		return f.Match(&view)
	}})
}

// Unmark ends it.
func (h *Hosts) Unmark(host model.NodeID, f *filter.Filter[headers.Frame]) error {
	if m := h.markers[host]; m != nil {
		m.Disable(f.String())
	}
	return nil
}

// Stats adds up what the hosts count.
func (h *Hosts) Stats() (s marker.Stats) {
	for _, m := range h.markers {
		one := m.Stats()
		s.Seen += one.Seen
		s.Marked += one.Marked
		s.Limited += one.Limited
	}
	return s
}

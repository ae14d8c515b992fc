package htsim

import (
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// activation is what activates a trigger and what it starts, as indexes of
// Connections.
type activation struct{ by, starts []int }

func (m *Matrix) activations() map[uint32]*activation {
	all := make(map[uint32]*activation)
	at := func(id uint32) *activation {
		if all[id] == nil {
			all[id] = &activation{}
		}
		return all[id]
	}
	for i := range m.Connections {
		c := &m.Connections[i]
		if c.Trigger != 0 {
			at(c.Trigger).starts = append(at(c.Trigger).starts, i)
		}
		for _, id := range []uint32{c.SendDone, c.RecvDone} {
			if id != 0 {
				at(id).by = append(at(id).by, i)
			}
		}
	}
	return all
}

// checkTriggers checks that every trigger exists, is activated, and can be
// expressed as flows that wait for others.
func (m *Matrix) checkTriggers() error {
	all := m.activations()
	for i := range m.Connections {
		c := &m.Connections[i]
		for _, id := range []uint32{c.Trigger, c.SendDone, c.RecvDone} {
			if id != 0 && m.Triggers[id] == nil {
				return fileerror.Errorf(m.File, c.Line, "trigger %d is not in the file, want it", id)
			}
		}
	}
	ids := make([]uint32, 0, len(all))
	for id := range all {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	multishot := false
	for _, id := range ids {
		a, t := all[id], m.Triggers[id]
		errorf := func(format string, args ...any) error {
			return fileerror.Errorf(m.File, t.Line, "trigger %d: %s", id, fmt.Sprintf(format, args...))
		}
		switch {
		case len(a.starts) == 0:
		case len(a.by) == 0:
			return errorf("no connection activates it, want one")
		case t.Kind == Oneshot && len(a.by) > 1:
			return errorf("oneshot that %d connections activate, want one: the first to be done would start it, use a barrier", len(a.by))
		case t.Kind == Barrier && t.Count != len(a.by):
			return errorf("barrier of count %d that is activated %d times, want as many", t.Count, len(a.by))
		case t.Kind == Multishot && len(a.starts) > len(a.by):
			return errorf("multishot of %d connections that is activated %d times, want as often", len(a.starts), len(a.by))
		case t.Kind == Multishot && len(a.by) > 1:
			multishot = true
		}
	}
	if multishot {
		m.Notes = append(m.Notes, "multishot triggers: each connection waits for the activation at its own position in the file; in htsim for the next one")
	}
	return nil
}

// RankCount returns the number of nodes.
func (m *Matrix) RankCount() int { return m.Nodes }

// Flows returns the matrix as flows between hosts, node by node.
func (m *Matrix) Flows(hosts []model.NodeID) ([]traffic.Flow, error) {
	if m.Nodes > len(hosts) {
		return nil, fileerror.Errorf(m.File, 1, "Nodes %d for a topology of %d hosts, want at most that", m.Nodes, len(hosts))
	}
	flows := make([]traffic.Flow, len(m.Connections))
	for i := range m.Connections {
		c := &m.Connections[i]
		flows[i] = traffic.Flow{
			Src: hosts[c.Src], Dst: hosts[c.Dst], Start: c.Start, Bytes: c.Size, Priority: traffic.DefaultClass().Priority,
		}
	}
	for id, a := range m.activations() {
		for k, i := range a.starts {
			if m.Triggers[id].Kind == Multishot {
				flows[i].After = a.by[k : k+1]
			} else {
				flows[i].After = a.by
			}
		}
	}
	return flows, nil
}

// FailedLinks returns the failed links, as indexes of the fabric's.
func (m *Matrix) FailedLinks(f *topo.Fabric) (links []int, err error) {
	for _, bad := range m.Failures {
		var tier []model.NodeID
		for _, id := range f.Switches() {
			if f.Node(id).Role == bad.Tier {
				tier = append(tier, id)
			}
		}
		if bad.Switch >= len(tier) {
			return nil, fileerror.Errorf(m.File, bad.Line, "switch_id %d, want from 0 to %d, a %v of the topology", bad.Switch, len(tier)-1, bad.Tier)
		}
		var up []int
		for _, p := range f.Node(tier[bad.Switch]).Ports {
			if f.Node(p.Peer.Node).Tier > f.Node(tier[bad.Switch]).Tier {
				up = append(up, p.Link)
			}
		}
		if bad.Link >= len(up) {
			return nil, fileerror.Errorf(m.File, bad.Line, "link_id %d, want from 0 to %d, an uplink of %s", bad.Link, len(up)-1, f.Node(tier[bad.Switch]).Name)
		}
		links = append(links, up[bad.Link])
	}
	return links, nil
}

package api

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/control/runbook"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// RunbookStep is one step of what an operator does about an incident.
type RunbookStep struct {
	Text     string           `json:"text" doc:"What the step is for"`
	Node     string           `json:"node" doc:"Where the commands are entered"`
	Changes  bool             `json:"changes" doc:"It changes what the node does; other steps only show something"`
	Commands []RunbookCommand `json:"commands"`
}

// RunbookCommand is what to enter on one system.
type RunbookCommand struct {
	System string   `json:"system" enum:"sonic,eos,cumulus,linux"`
	Lines  []string `json:"lines"`
}

// runbook returns the steps for an incident; none for a cause of another version.
func (s *Server) runbook(d *IncidentDetail) (list []RunbookStep) {
	var cause anomaly.Cause
	if cause.UnmarshalText([]byte(d.Cause)) != nil {
		return nil
	}
	for _, step := range runbook.Steps(cause, incidentPlace(s.deps.Live.Fabric(), d)) {
		r := RunbookStep{Text: step.Text, Node: step.Node, Changes: step.Changes}
		for _, c := range step.Commands {
			r.Commands = append(r.Commands, RunbookCommand(c))
		}
		list = append(list, r)
	}
	return list
}

// incidentPlace returns the switch, port, host and destination of an incident. An
// incident at a host is at the switch port of that host.
func incidentPlace(f *topo.Fabric, d *IncidentDetail) (p runbook.Place) {
	if dst, ok := mainDestination(d.Victims); ok {
		p.Address, p.IPv6 = dst.String(), !dst.Is4()
		if owners := f.Owners(dst); len(owners) == 1 {
			p.Host = f.Node(owners[0]).Name
		}
	}
	for _, port := range d.Loop {
		if !slices.Contains(p.Cycle, port.Node) {
			p.Cycle = append(p.Cycle, port.Node)
		}
	}
	at, ok := incidentPort(f, d)
	if !ok {
		return p
	}
	node := f.Node(at.Node)
	if !node.Role.IsSwitch() && len(node.Ports) > 0 {
		at = node.Ports[0].Peer
		node = f.Node(at.Node)
	}
	p.Switch = node.Name
	port := f.Port(at)
	if port == nil {
		return p
	}
	p.Port = port.Name
	peer := f.Port(port.Peer)
	if peer == nil {
		return p
	}
	if n := f.Node(port.Peer.Node); !n.Role.IsSwitch() {
		p.Host, p.HostPort = n.Name, peer.Name
	} else {
		p.Peer, p.PeerPort = n.Name, peer.Name
	}
	return p
}

// incidentPort returns the port where an incident started, or its node with port 0.
func incidentPort(f *topo.Fabric, d *IncidentDetail) (model.Port, bool) {
	if d.Origin != nil {
		if p, err := d.Origin.resolvePort(f); err == nil {
			return p, true
		}
	}
	id, ok := f.ByName(d.Location)
	return model.Port{Node: id}, ok
}

// mainDestination returns the destination of most victims, the first of equal ones.
func mainDestination(victims []Participant) (dst model.Addr, ok bool) {
	count := map[model.Addr]int{}
	for i := range victims {
		if v := victims[i].Flow; v != nil && !v.Flow.IsZero() {
			a := v.Flow.Dst
			if count[a]++; !ok || count[a] > count[dst] {
				dst, ok = a, true
			}
		}
	}
	return dst, ok
}

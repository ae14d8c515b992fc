package scenario

import (
	"net/netip"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
)

// Faults of forwarding tables, and the patterns by which faults select flows.

// blackholeSpec drops by a table entry, for a destination, or by a pattern of
// 5-tuples.
type blackholeSpec struct {
	schedule
	Switch ref     `yaml:"switch"`
	To     ref     `yaml:"to"`
	Match  pattern `yaml:"match"`
}

func (s *blackholeSpec) fault(e *env) (sim.Fault, error) {
	if err := s.need("switch", s.Switch); err != nil {
		return nil, err
	}
	if s.To.given() == s.has("match") {
		return nil, s.errorf("", "blackhole, want either to (a destination) or match (a pattern)")
	}
	sw, err := e.switchNamed(s.Switch)
	if err != nil {
		return nil, err
	}
	if s.has("match") {
		match, err := s.Match.compile(e)
		return sim.LossySwitch{Switch: sw, Share: 1, Match: match}, err
	}
	return e.entries(nil, sw, s.To, nil)
}

// loopSpec makes packets to a destination loop.
type loopSpec struct {
	schedule
	To       ref   `yaml:"to"`
	Switches []ref `yaml:"switches"` // each sends to the next, the last to the first
}

func (s *loopSpec) fault(e *env) (sim.Fault, error) {
	if err := s.need("to", s.To); err != nil {
		return nil, err
	}
	if len(s.Switches) < 2 {
		return nil, s.errorf("switches", "loop of %d switches, want at least 2", len(s.Switches))
	}
	var f sim.Reroute
	for i, r := range s.Switches {
		sw, err := e.switchNamed(r)
		if err != nil {
			return nil, err
		}
		if f, err = e.entries(f.Entries, sw, s.To, s.Switches[(i+1)%len(s.Switches):][:1]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// rerouteSpec changes routes against the intended ones.
type rerouteSpec struct {
	schedule
	Routes []routeSpec `yaml:"routes"`
}

type routeSpec struct {
	sourcePos
	At   ref   `yaml:"at"` // a switch
	To   ref   `yaml:"to"`
	Flow ref   `yaml:"flow"` // instead of to: one 5-tuple
	Via  []ref `yaml:"via"`  // neighbours; empty: dropped
}

func (s *rerouteSpec) fault(e *env) (sim.Fault, error) {
	var f sim.Reroute
	for i := range s.Routes {
		r := &s.Routes[i]
		if !r.At.given() || r.To.given() == r.Flow.given() {
			return nil, r.errorf("", "route %d, want at (a switch) and either to or flow", i+1)
		}
		sw, err := e.switchNamed(r.At)
		if err != nil {
			return nil, err
		}
		if r.To.given() {
			if f, err = e.entries(f.Entries, sw, r.To, r.Via); err != nil {
				return nil, err
			}
			continue
		}
		key, err := model.ParseFlowKey(r.Flow.text)
		if err != nil || key.IsZero() {
			return nil, r.Flow.Errorf("flow %q, want a form such as: udp 10.0.0.2:10000 > 10.0.1.2:4791", r.Flow.text)
		}
		via, err := e.neighbours(sw, r.Via)
		if err != nil {
			return nil, err
		}
		f.Entries = append(f.Entries, sim.Entry{Switch: sw, Flow: key, Via: via})
	}
	if len(f.Entries) == 0 {
		return nil, s.errorf("routes", "reroute has no routes, want at least one")
	}
	return f, nil
}

// entries appends wrong routes of a switch to a destination, one for each of
// its addresses.
func (e *env) entries(list []sim.Entry, sw model.NodeID, to ref, via []ref) (f sim.Reroute, err error) {
	prefixes, err := e.prefixes(to)
	if err != nil {
		return f, err
	}
	hops, err := e.neighbours(sw, via)
	if err != nil {
		return f, err
	}
	for _, p := range prefixes {
		list = append(list, sim.Entry{Switch: sw, To: p, Via: hops})
	}
	return sim.Reroute{Entries: list}, nil
}

func (e *env) neighbours(sw model.NodeID, via []ref) (ids []model.NodeID, err error) {
	for _, r := range via {
		id, err := e.node(r)
		if err != nil {
			return nil, err
		}
		if len(e.fabric.Node(sw).PortsTo(id)) == 0 {
			return nil, r.Errorf("%s has no link to %s, want a neighbour", e.fabric.Node(sw).Name, r.text)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// pattern selects flows by parts of their 5-tuple; omitted parts match all.
type pattern struct {
	sourcePos
	Src     ref    `yaml:"src"` // a node, an address or a prefix
	Dst     ref    `yaml:"dst"`
	SrcPort uint16 `yaml:"src-port"`
	DstPort uint16 `yaml:"dst-port"`
	Proto   string `yaml:"proto"`
}

// compile returns it as a function; nil where it matches everything.
func (p *pattern) compile(e *env) (func(model.FlowKey) bool, error) {
	var src, dst []netip.Prefix
	var proto model.Proto
	var err error
	if p.Src.given() {
		if src, err = e.prefixes(p.Src); err != nil {
			return nil, err
		}
	}
	if p.Dst.given() {
		if dst, err = e.prefixes(p.Dst); err != nil {
			return nil, err
		}
	}
	if p.Proto != "" {
		if proto, err = model.ParseProto(p.Proto); err != nil {
			return nil, p.errorf("proto", "%v", err)
		}
	}
	if len(p.keys) == 0 {
		return nil, nil
	}
	return func(k model.FlowKey) bool {
		return holds(src, k.Src) && holds(dst, k.Dst) &&
			(p.SrcPort == 0 || p.SrcPort == k.SrcPort) && (p.DstPort == 0 || p.DstPort == k.DstPort) &&
			(p.Proto == "" || proto == k.Proto)
	}, nil
}

// holds reports whether one of the prefixes, if there are any, holds an
// address.
func holds(list []netip.Prefix, a model.Addr) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a.Netip()) })
}

package topo

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/model"
)

func checkFabricName(name string) error {
	if name != "" && !validName(name, "-_. ") {
		return fmt.Errorf("fabric name %q, want at most 63 letters, digits, '-', '_', '.' or spaces, first a letter or digit",
			name)
	}
	return nil
}

func (b *Builder) checkNode(s NodeSpec) error {
	if len(b.f.nodes) >= MaxNodes {
		return fmt.Errorf("node %q is one too many, want at most %d nodes", s.Name, MaxNodes)
	}
	if !validName(s.Name, "-_.") {
		return fmt.Errorf("node name %q, want 1 to 63 letters, digits, '-', '_' or '.', first a letter or digit", s.Name)
	}
	if _, taken := b.f.byName[s.Name]; taken {
		return fmt.Errorf("node name %q is taken, want a unique name", s.Name)
	}
	if int(s.Role) >= len(roleTiers) {
		return fmt.Errorf("node %q: %v, want a known role", s.Name, s.Role)
	}
	if s.Pod < NoPod || s.Pod >= MaxNodes {
		return fmt.Errorf("node %q: pod %d, want 0 to %d", s.Name, s.Pod, MaxNodes-1)
	}
	if s.IPv4.IsValid() && !s.IPv4.Is4() {
		return fmt.Errorf("node %q: address %v, want an IPv4 address", s.Name, s.IPv4)
	}
	if a := s.IPv6; a.IsValid() && (!a.Is6() || a.Is4In6() || a.Zone() != "") {
		return fmt.Errorf("node %q: address %v, want an IPv6 address without a zone, not a mapped IPv4 address", s.Name, a)
	}
	for _, a := range []netip.Addr{s.IPv4, s.IPv6} {
		if !a.IsValid() {
			continue
		}
		if a.IsUnspecified() || a.IsMulticast() {
			return fmt.Errorf("node %q: address %v, want a unicast address", s.Name, a)
		}
		if owner, taken := b.addrs[model.AddrOf(a)]; taken {
			return fmt.Errorf("node %q: address %v belongs to %s, want a unique address", s.Name, a, b.f.nodes[owner].Name)
		}
		if owner, taken := b.vips[model.AddrOf(a)]; taken {
			return fmt.Errorf("node %q: address %v is a net of %s, want a unique address", s.Name, a, b.f.nodes[owner].Name)
		}
	}
	for i, p := range s.Nets {
		if !p.IsValid() || p.Addr().Is4In6() {
			return fmt.Errorf("node %q: net %v, want a prefix such as 192.0.2.0/24 or 2001:db8::/32", s.Name, p)
		}
		if slices.ContainsFunc(s.Nets[:i], func(q netip.Prefix) bool { return q.Masked() == p.Masked() }) {
			return fmt.Errorf("node %q: net %v is listed twice, want it once", s.Name, p)
		}
		owner, taken := b.addrs[model.AddrOf(p.Addr())]
		if p.IsSingleIP() && (taken || p.Addr() == s.IPv4 || p.Addr() == s.IPv6) {
			name := s.Name
			if taken {
				name = b.f.nodes[owner].Name
			}
			return fmt.Errorf("node %q: net %v is the address of node %s, want an address of no node", s.Name, p, name)
		}
	}
	return nil
}

func (b *Builder) checkLink(a, z End, s LinkSpec) error {
	for _, e := range []End{a, z} {
		if !b.f.HasNode(e.Node) {
			return fmt.Errorf("link names node %d, want a node added before (0 to %d)", e.Node, len(b.f.nodes)-1)
		}
	}
	na, nz := &b.f.nodes[a.Node], &b.f.nodes[z.Node]
	what := "link " + na.Name + " - " + nz.Name
	if len(b.f.links) >= MaxLinks {
		return fmt.Errorf("%s is one too many, want at most %d links", what, MaxLinks)
	}
	if a.Node == z.Node {
		return fmt.Errorf("%s joins a node to itself, want two nodes", what)
	}
	for _, n := range []*Node{na, nz} {
		if len(n.Ports) >= MaxPorts {
			return fmt.Errorf("%s: %s has %d ports, want at most %d", what, n.Name, len(n.Ports)+1, MaxPorts)
		}
	}
	for _, e := range []End{a, z} {
		if e.Port == "" {
			continue
		}
		if !validName(e.Port, "-_./") {
			return fmt.Errorf("%s: port name %q, want 1 to 63 letters, digits, '-', '_', '.' or '/', first a letter or digit",
				what, e.Port)
		}
		if b.portNames[portName{e.Node, e.Port}] {
			return fmt.Errorf("%s: port %s:%s is taken, want a free port", what, b.f.nodes[e.Node].Name, e.Port)
		}
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (s LinkSpec) check() error {
	if s.Rate <= 0 {
		return fmt.Errorf("rate %v, want above 0", s.Rate)
	}
	if s.Delay < 0 {
		return fmt.Errorf("delay %v, want at least 0", s.Delay)
	}
	if !(s.ErrorRate >= 0 && s.ErrorRate <= 1) { // so that NaN is refused
		return fmt.Errorf("error rate %v, want 0 to 1", s.ErrorRate)
	}
	return nil
}

// validName takes ASCII only, so that names are safe in file names, interface
// names, DNS, dot and YAML.
func validName(s, others string) bool {
	for i, c := range []byte(s) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || strings.IndexByte(others, c) < 0) {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 63
}

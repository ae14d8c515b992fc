package runbook

import (
	"strings"

	"github.com/weft-telemetry/weft/analyze/anomaly"
)

// Place is what is known about where an incident is. Empty fields are not known.
type Place struct {
	Switch, Port   string   // the switch and its interface
	Peer, PeerPort string   // at the other end of Port
	Host, HostPort string   // the host of the incident and its interface
	Address        string   // destination of the affected flows
	IPv6           bool     // Address is an IPv6 address
	Cycle          []string // switches of a forwarding loop or a deadlock cycle
}

// Step is one step: what it is for, the node it is done on, and how.
type Step struct {
	Text     string
	Node     string
	Changes  bool // it changes what the node does; others only show
	Commands []Command
}

// Command is the lines to enter on one vendor's system.
type Command struct {
	System string // sonic, eos, cumulus; linux for hosts
	Lines  []string
}

// Systems are the systems that steps on switches have commands for.
func Systems() []string { return []string{"sonic", "eos", "cumulus"} }

// maxCycle is how many switches of a cycle have steps of their own.
const maxCycle = 4

// Steps returns the steps for a cause. Steps that need a name that is not known are
// left out; a step on every switch of a cycle is repeated.
func Steps(c anomaly.Cause, p Place) (list []Step) {
	for i := range table[c] {
		t := &table[c][i]
		at := []Place{p}
		if t.on == eachOfCycle && len(p.Cycle) > 0 {
			at = nil
			for _, sw := range p.Cycle[:min(maxCycle, len(p.Cycle))] {
				one := p
				one.Switch = sw
				at = append(at, one)
			}
		}
		for _, one := range at {
			if s, ok := t.fill(one); ok {
				list = append(list, s)
			}
		}
	}
	return list
}

// fill fills the names of a place into a step; false if one is missing.
func (t *step) fill(p Place) (s Step, ok bool) {
	route := "ip route"
	if p.IPv6 {
		route = "ipv6 route"
	}
	names := map[string]string{
		"switch": p.Switch, "port": p.Port, "peer": p.Peer, "peer-port": p.PeerPort,
		"host": p.Host, "host-port": p.HostPort, "address": p.Address, "route": route,
	}
	missing := false
	expand := func(text string) string {
		return expand(text, func(name string) string {
			missing = missing || !isName(names[name])
			return names[name]
		})
	}
	s = Step{Text: expand(t.text), Node: expand(t.node()), Changes: t.changes}
	for _, c := range []struct{ system, lines string }{
		{"sonic", t.sonic}, {"eos", t.eos}, {"cumulus", t.cumulus}, {"linux", t.linux},
	} {
		if c.lines != "" {
			s.Commands = append(s.Commands, Command{c.system, strings.Split(expand(c.lines), "\n")})
		}
	}
	return s, !missing
}

// expand replaces "{name}" by what value returns.
func expand(text string, value func(name string) string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		out.WriteString(value(name))
		text = after
	}
}

// isName reports whether a text may be part of a command: a name of a topology file
// that a shell would read as something else must not be pasted into one.
func isName(text string) bool {
	for _, r := range text {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("._-/: ", r):
		default:
			return false
		}
	}
	return text != "" && text[0] != '-' && (!strings.Contains(text, " ") || text == "ip route" || text == "ipv6 route")
}

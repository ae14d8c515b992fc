package topo

import (
	"fmt"
	"strconv"
	"strings"
)

// Role says what a node is for. Only two things depend on it: hosts and muxes
// carry no transit traffic, and drawings put a role on its tier.
type Role uint8

// Roles, from the hosts upward. The zero Role is Host.
const (
	Host   Role = iota
	Mux         // a host that answers for virtual addresses (its Nets)
	ToR         // switch with hosts below it
	Leaf        // middle tier; the only lower tier of a leaf-spine fabric
	Spine       // top tier
	Border      // switch towards the outside
	Switch      // switch of no stated tier: its tier is its distance from hosts
)

var roleNames = [...]string{Host: "host", Mux: "mux", ToR: "tor", Leaf: "leaf", Spine: "spine", Border: "border", Switch: "switch"}

// roleAliases are other common names of the same tiers.
var roleAliases = map[string]Role{"edge": ToR, "agg": Leaf, "aggregation": Leaf, "core": Spine, "server": Host}

// IsSwitch reports whether nodes of this role forward other nodes' packets.
func (r Role) IsSwitch() bool { return r >= ToR }

// String prints the role's name.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("role(%d)", uint8(r))
}

// ParseRole parses a role's name or one of its aliases: edge, agg, aggregation,
// core, server.
func ParseRole(s string) (Role, error) {
	for r, name := range roleNames {
		if strings.EqualFold(s, name) {
			return Role(r), nil
		}
	}
	if r, ok := roleAliases[strings.ToLower(s)]; ok {
		return r, nil
	}
	return 0, fmt.Errorf("role %q, want one of %s", s, strings.Join(roleNames[:], ", "))
}

// PortName returns the default name of a port by its number: eth1, eth2, … on
// hosts, as containers have them beside their management eth0; Ethernet0,
// Ethernet4, … on switches, as SONiC counts lanes.
func (r Role) PortName(port int) string {
	if r.IsSwitch() {
		return "Ethernet" + strconv.Itoa(4*(port-1))
	}
	return "eth" + strconv.Itoa(port)
}

// roleTiers gives each role its height in a drawing; that of Switch is computed.
var roleTiers = [...]int{Host: 0, Mux: 0, ToR: 1, Leaf: 2, Spine: 3, Border: 4, Switch: 0}

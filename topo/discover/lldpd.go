package discover

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// lldpdAnswer is what lldpcli -f json0 show neighbors prints: everything is a list.
type lldpdAnswer struct {
	LLDP []struct {
		Interface []struct {
			Name    string `json:"name"`
			Chassis []struct {
				ID         []lldpdValue `json:"id"`
				Name       []lldpdValue `json:"name"`
				Addresses  []lldpdValue `json:"mgmt-ip"`
				Capability []struct {
					Type    string `json:"type"`
					Enabled bool   `json:"enabled"`
				} `json:"capability"`
			} `json:"chassis"`
			Port []struct {
				ID    []lldpdValue `json:"id"`
				Descr []lldpdValue `json:"descr"`
			} `json:"port"`
		} `json:"interface"`
	} `json:"lldp"`
}

type lldpdValue struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// maxInterfaces limits the neighbours of one answer: no switch has as many.
const maxInterfaces = 1 << 14

// ParseLLDPD reads the neighbours of a node as lldpd has them: the output of
// lldpcli -f json0 show neighbors, with or without details.
func ParseLLDPD(node string, text []byte) (n Node, err error) {
	n.Name = node
	var a lldpdAnswer
	if err := json.Unmarshal(text, &a); err != nil {
		return n, fmt.Errorf("%w; want the output of lldpcli -f json0 show neighbors", err)
	}
	if a.LLDP == nil {
		return n, fmt.Errorf("no object lldp, want the output of lldpcli -f json0 show neighbors")
	}
	count := 0
	for _, part := range a.LLDP {
		for _, in := range part.Interface {
			if count++; count > maxInterfaces {
				return n, fmt.Errorf("more than %d neighbours", maxInterfaces)
			}
			if in.Name == "" || len(in.Chassis) == 0 || len(in.Port) == 0 {
				return n, fmt.Errorf("neighbour %d has no interface, chassis or port", count)
			}
			c, p := &in.Chassis[0], &in.Port[0]
			var peer Neighbor
			for _, list := range [][]lldpdValue{c.Name, c.ID} {
				if len(list) > 0 && peer.Node == "" {
					peer.Node = list[0].Value
				}
			}
			for _, v := range c.Addresses {
				if addr, err := netip.ParseAddr(v.Value); err == nil && addr.Is4() && !peer.Addr.IsValid() {
					peer.Addr = addr
				}
			}
			for _, k := range c.Capability {
				peer.Forwards = peer.Forwards || k.Enabled && (k.Type == "Bridge" || k.Type == "Router")
			}
			peer.Ports = portNames(p.ID, p.Descr)
			at := n.port(in.Name)
			if at == nil {
				n.Ports = append(n.Ports, Port{Name: in.Name})
				at = &n.Ports[len(n.Ports)-1]
			}
			at.Neighbors = append(at.Neighbors, peer)
		}
	}
	return n, nil
}

// portNames are the names of a port: an id that is an interface's name is the best, one that
// is a MAC address the worst.
func portNames(ids, descriptions []lldpdValue) (names []string) {
	var last []string
	for _, v := range ids {
		switch {
		case v.Value == "":
		case v.Type == "mac":
			last = append(last, v.Value)
		case v.Type == "ifname":
			names = append([]string{v.Value}, names...)
		default:
			last = append([]string{v.Value}, last...)
		}
	}
	for _, v := range descriptions {
		if v.Value != "" {
			names = append(names, v.Value)
		}
	}
	return append(names, last...)
}

package gnmi

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	gnmipb "github.com/openconfig/gnmi/proto/gnmi"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo/discover"
)

// discoverOpenConfig reads /interfaces and /lldp/interfaces.
func discoverOpenConfig(ctx context.Context, client gnmipb.GNMIClient, n *discover.Node) error {
	var interfaces, lldp map[string]any
	if err := getJSON(ctx, client, nil, openconfigPath("interfaces"), &interfaces); err != nil {
		return err
	}
	if err := getJSON(ctx, client, nil, openconfigPath("lldp", "interfaces"), &lldp); err != nil {
		return err
	}
	for _, one := range children(interfaces, "interface") {
		p := discover.Port{Name: leafText(one, "name"), Rate: portSpeed(leafText(one, "ethernet", "state", "port-speed"))}
		if p.Name != "" {
			n.Ports = append(n.Ports, p)
		}
	}
	for _, one := range children(lldp, "interface") {
		name := leafText(one, "name")
		at := slices.IndexFunc(n.Ports, func(p discover.Port) bool { return p.Name == name })
		if at < 0 {
			continue
		}
		for _, heard := range children(descend(one, "neighbors"), "neighbor") {
			state := descend(heard, "state")
			peer := discover.Neighbor{Node: cmp.Or(leafText(state, "system-name"), leafText(state, "chassis-id"))}
			if a, err := netip.ParseAddr(leafText(state, "management-address")); err == nil && a.Is4() {
				peer.Addr = a
			}
			id, description := leafText(state, "port-id"), leafText(state, "port-description")
			if leafText(state, "port-id-type") == "MAC_ADDRESS" {
				id, description = description, id
			}
			for _, text := range []string{id, description} {
				if text != "" {
					peer.Ports = append(peer.Ports, text)
				}
			}
			for _, c := range children(descend(heard, "capabilities"), "capability") {
				name, _ := withoutModule(leafText(c, "name"))
				on, _ := lookup(descend(c, "state"), "enabled")
				peer.Forwards = peer.Forwards || on == true && (name == "MAC_BRIDGE" || name == "ROUTER")
			}
			n.Ports[at].Neighbors = append(n.Ports[at].Neighbors, peer)
		}
	}
	return nil
}

// withoutModule splits the module off a name: targets send it or not.
func withoutModule(name string) (short string, had bool) {
	if _, after, found := strings.Cut(name, ":"); found {
		return after, true
	}
	return name, false
}

// lookup returns a member of a container, by its name with or without a module.
func lookup(in map[string]any, name string) (any, bool) {
	if v, ok := in[name]; ok {
		return v, true
	}
	for key, v := range in {
		if short, had := withoutModule(key); had && short == name {
			return v, true
		}
	}
	return nil, false
}

func descend(in map[string]any, names ...string) map[string]any {
	for _, name := range names {
		v, _ := lookup(in, name)
		in, _ = v.(map[string]any)
	}
	return in
}

// children returns the entries of a list.
func children(in map[string]any, name string) (list []map[string]any) {
	v, _ := lookup(in, name)
	all, _ := v.([]any)
	for _, one := range all {
		if m, ok := one.(map[string]any); ok {
			list = append(list, m)
		}
	}
	return list
}

func leafText(in map[string]any, names ...string) string {
	v, _ := lookup(descend(in, names[:len(names)-1]...), names[len(names)-1])
	text, _ := v.(string)
	return text
}

// portSpeed parses OpenConfig's identity of a speed: SPEED_100GB, SPEED_2500MB.
func portSpeed(identity string) model.Rate {
	text, _ := withoutModule(identity)
	text, ok := strings.CutPrefix(text, "SPEED_")
	if !ok {
		return 0
	}
	for suffix, unit := range map[string]model.Rate{"GB": model.Gbps, "MB": model.Mbps} {
		if digits, ok := strings.CutSuffix(text, suffix); ok {
			if n, err := strconv.ParseUint(digits, 10, 16); err == nil {
				return model.Rate(n) * unit
			}
		}
	}
	return 0
}

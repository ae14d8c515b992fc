package sonic

import (
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// database answers paths with the tables of one switch.
type database struct {
	fabric *topo.Fabric
	node   *topo.Node
}

// everyPort is the wildcard of SONiC's paths.
const everyPort = "Ethernet*"

// valid reports whether the database has a path. Values of COUNTERS_DB need a round.
func (d *database) valid(db string, path []string) bool {
	switch db {
	case "CONFIG_DB":
		return len(path) == 1 && path[0] == "PORT"
	case "APPL_DB":
		return len(path) == 1 && path[0] == "LLDP_ENTRY_TABLE"
	case "COUNTERS_DB":
		return d.validCounters(path)
	}
	return false
}

func (d *database) validCounters(path []string) bool {
	if len(path) < 2 || len(path) > 3 || len(d.portsOf(path[1])) == 0 {
		return false
	}
	switch path[0] {
	case "PERIODIC_WATERMARKS":
		return len(path) == 3 && path[2] == "PriorityGroups"
	case "COUNTERS":
		// Fields that no port counts have an empty value, as in SONiC.
		return len(path) == 2 || path[2] == "Queues" || path[2] == "Pfcwd" ||
			path[1] != everyPort && strings.HasPrefix(path[2], "SAI_PORT_STAT_")
	}
	return false
}

// portsOf returns the ports that a name means.
func (d *database) portsOf(name string) (list []int) {
	for i := range d.node.Ports {
		if own := d.node.Ports[i].Name; own == name || name == everyPort && strings.HasPrefix(own, "Ethernet") {
			list = append(list, i)
		}
	}
	return list
}

// value returns what a valid path has; r is not nil for COUNTERS_DB.
func (d *database) value(db string, path []string, r *round) any {
	switch db {
	case "CONFIG_DB":
		return d.portTable()
	case "APPL_DB":
		return d.neighborTable()
	}
	ports := d.portsOf(path[1])
	if len(path) == 2 {
		if path[1] != everyPort {
			return table(portCounters(nil, &r.ports[ports[0]]))
		}
		all := map[string]map[string]string{}
		for _, p := range ports {
			all[d.node.Ports[p].Name] = table(portCounters(nil, &r.ports[p]))
		}
		return all
	}
	all := map[string]map[string]string{}
	for _, p := range ports {
		for class := range r.ports[p].Class {
			object, k := d.node.Ports[p].Name+":"+strconv.Itoa(class), &r.ports[p].Class[class]
			switch path[2] {
			case "Queues":
				all[object] = table(queueCounters(nil, k))
			case "PriorityGroups":
				all[object] = table(groupCounters(nil, k))
			}
		}
	}
	if strings.HasPrefix(path[2], "SAI_") {
		return table(portCounters(nil, &r.ports[ports[0]]))[path[2]]
	}
	return all // Pfcwd has no entry: a simulated switch has no watchdog
}

// portTable is PORT of CONFIG_DB.
func (d *database) portTable() map[string]map[string]string {
	t := map[string]map[string]string{}
	for i := range d.node.Ports {
		p := &d.node.Ports[i]
		t[p.Name] = map[string]string{
			"alias": "etp" + strconv.Itoa(i+1), "index": strconv.Itoa(i + 1), "admin_status": "up",
			"speed": strconv.FormatInt(int64(p.Rate/model.Mbps), 10),
		}
	}
	return t
}

// neighborTable is LLDP_ENTRY_TABLE of APPL_DB. As SONiC's lldpd does, a switch announces its
// alias as the port id, and the interface's name as the description; a host its interface.
func (d *database) neighborTable() map[string]map[string]string {
	t := map[string]map[string]string{}
	for i := range d.node.Ports {
		peer := d.node.Ports[i].Peer
		far := d.fabric.Node(peer.Node)
		entry := map[string]string{
			"lldp_rem_sys_name": far.Name, "lldp_rem_man_addr": far.IPv4.String(),
			"lldp_rem_port_id": d.fabric.Port(peer).Name, "lldp_rem_port_id_subtype": "5", "lldp_rem_port_desc": "",
			"lldp_rem_sys_cap_supported": "80 00", "lldp_rem_sys_cap_enabled": "01 00", // a station
		}
		if far.Role.IsSwitch() {
			entry["lldp_rem_port_id"], entry["lldp_rem_port_id_subtype"] = "etp"+strconv.Itoa(int(peer.Port)), "7"
			entry["lldp_rem_port_desc"] = d.fabric.Port(peer).Name
			entry["lldp_rem_sys_cap_supported"], entry["lldp_rem_sys_cap_enabled"] = "28 00", "28 00" // bridge, router
		}
		t[d.node.Ports[i].Name] = entry
	}
	return t
}

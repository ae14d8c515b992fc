package runbook

import "github.com/weft-telemetry/weft/analyze/anomaly"

// step is a row of the table, with names such as {port} to fill in. Lines of a command
// are separated by newlines.
type step struct {
	text    string
	on      where
	changes bool

	sonic, eos, cumulus string
	linux               string // of a host, instead
}

// where is the node that a step is done on.
type where uint8

const (
	onSwitch where = iota
	onPeer
	onHost
	eachOfCycle
)

func (t *step) node() string {
	switch t.on {
	case onPeer:
		return "{peer}"
	case onHost:
		return "{host}"
	}
	return "{switch}"
}

// Steps that several causes have.
var (
	pfcCounters = step{
		text:    "see which ports of {switch} receive and send PFC pauses",
		sonic:   "show pfc counters",
		eos:     "show priority-flow-control counters",
		cumulus: "nv show interface counters",
	}
	portPauses = step{
		text:    "see that {port} of {switch} receives PFC pauses",
		sonic:   "show pfc counters",
		eos:     "show priority-flow-control counters",
		cumulus: "ethtool -S {port} | grep -iE 'pause|pfc'",
	}
	watchdog = step{
		text:    "see what the PFC watchdog of {switch} found at {port}",
		sonic:   "show pfcwd stats",
		eos:     "show priority-flow-control counters watchdog",
		cumulus: "nv show interface {port} qos pfc-watchdog",
	}
	watchdogOn = step{
		text: "have the PFC watchdog ignore pauses that {port} receives without end", changes: true,
		sonic:   "sudo config pfcwd start --action drop {port} 200 --restoration-time 400",
		eos:     "configure\ninterface {port}\npriority-flow-control pause watchdog",
		cumulus: "nv set interface {port} qos pfc-watchdog state enable\nnv config apply",
	}
	queues = step{
		text:    "see queue depths and drops of {port}",
		sonic:   "show queue watermark unicast\nshow queue counters {port}",
		eos:     "show interfaces {port} counters queue",
		cumulus: "nv show interface {port} counters",
	}
	ecn = step{
		text:    "compare the ECN thresholds of {switch} with the intended ones",
		sonic:   "show ecn",
		eos:     "show qos interfaces {port}",
		cumulus: "nv show qos congestion-control default-global",
	}
	portErrors = step{
		text:    "look for errors and discards at {port}",
		sonic:   "show interfaces counters errors",
		eos:     "show interfaces {port} counters errors",
		cumulus: "ethtool -S {port} | grep -iE 'err|discard|drop'",
	}
	optics = step{
		text:    "read power and temperature of the optics of {port}",
		sonic:   "show interfaces transceiver eeprom --dom {port}",
		eos:     "show interfaces {port} transceiver",
		cumulus: "sudo ethtool -m {port}",
	}
	peerErrors = step{
		text: "look for errors at the other end, {peer} {peer-port}", on: onPeer,
		sonic:   "show interfaces counters errors",
		eos:     "show interfaces {peer-port} counters errors",
		cumulus: "ethtool -S {peer-port} | grep -iE 'err|discard|drop'",
	}
	shutdown = step{
		text: "take {port} out of service", changes: true,
		sonic:   "sudo config interface shutdown {port}",
		eos:     "configure\ninterface {port}\nshutdown",
		cumulus: "nv set interface {port} link state down\nnv config apply",
	}
	linkStatus = step{
		text:    "see whether {port} has a link, and which neighbour",
		sonic:   "show interfaces status {port}\nshow lldp table",
		eos:     "show interfaces {port} status\nshow lldp neighbors {port}",
		cumulus: "nv show interface {port} link\nsudo lldpctl {port}",
	}
	routeEntry = step{
		text:    "compare the route to {address} on {switch} with the intended one",
		sonic:   "show {route} {address}",
		eos:     "show {route} {address}",
		cumulus: "sudo vtysh -c 'show {route} {address}'",
	}
	bgpPeers = step{
		text:    "see whether {switch} has all its BGP sessions; weft routes {switch} --drift lists the routes that are not as intended",
		sonic:   "show ip bgp summary",
		eos:     "show ip bgp summary",
		cumulus: "sudo vtysh -c 'show ip bgp summary'",
	}
	cycleRoutes = step{
		text: "compare the route to {address} on {switch} with the intended one", on: eachOfCycle,
		sonic: routeEntry.sonic, eos: routeEntry.eos, cumulus: routeEntry.cumulus,
	}
	drain = step{
		text: "drain {switch} until its table is right", changes: true,
		sonic:   "sudo config bgp shutdown all",
		eos:     "configure\nmaintenance\nunit System\nquiesce",
		cumulus: "nv set router bgp graceful-shutdown on\nnv config apply",
	}
	switchDrops = step{
		text:    "read the drop counters of {switch}",
		sonic:   "show dropcounters counts",
		eos:     "show hardware counter drop",
		cumulus: "nv show interface counters",
	}
	hostPauses = step{
		text: "see pauses, discards and PCIe stalls of the NIC of {host}", on: onHost,
		linux: "ethtool -S {host-port} | grep -iE 'pause|discard|out_of_buffer|pci'",
	}
)

// table has the steps of every cause, in the order in which an operator does them: what
// only shows comes before what changes something.
var table = [anomaly.NumCauses][]step{
	anomaly.Storm:        {portPauses, watchdog, pfcCounters, hostPauses, watchdogOn, shutdown},
	anomaly.SlowReceiver: {portPauses, queues, pfcCounters, hostPauses},
	anomaly.Deadlock: {
		pfcCounters, watchdog, cycleRoutes, watchdogOn,
		{
			text: "break the cycle: take {port} down and up again", changes: true,
			sonic:   "sudo config interface shutdown {port}\nsudo config interface startup {port}",
			eos:     "configure\ninterface {port}\nshutdown\nno shutdown",
			cumulus: "sudo ip link set {port} down\nsudo ip link set {port} up",
		},
	},
	anomaly.Loop:       {cycleRoutes, switchDrops, drain},
	anomaly.WrongRoute: {routeEntry, bgpPeers, switchDrops, drain},
	anomaly.Blackhole: {
		routeEntry,
		{
			text:    "see whether {switch} has a neighbour entry for {address}",
			sonic:   "ip neigh show {address}",
			eos:     "show arp {address}",
			cumulus: "ip neigh show {address}",
		},
		switchDrops, drain,
	},
	anomaly.Loss:       {portErrors, optics, peerErrors, switchDrops, shutdown},
	anomaly.DeadLink:   {linkStatus, optics, peerErrors, switchDrops, shutdown},
	anomaly.Incast:     {queues, ecn, pfcCounters},
	anomaly.Contention: {queues, ecn, switchDrops},
	anomaly.Stall:      {portPauses, pfcCounters, watchdog},
	anomaly.Imbalance: {
		{
			text:    "compare the load of the ports of {switch}",
			sonic:   "show interfaces counters",
			eos:     "show interfaces counters rates",
			cumulus: "nv show interface counters",
		},
		{
			text:    "compare the ECMP hash fields and seed of {switch} with those of the next tier",
			sonic:   "show switch-hash global",
			eos:     "show running-config section load-sharing",
			cumulus: "nv show system forwarding",
		},
	},
}

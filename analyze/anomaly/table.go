package anomaly

// Placeholders of sentences and remedies: {victim} is the slow flow, {port} the
// initial port, {switch} its switch and {host} its peer, {culprits} a clause
// about the flows that congest it, {detail} the detail in brackets or nothing,
// {evidence} the last piece of evidence, {ports} the size of a deadlock cycle,
// {observed} how often it was seen, {trigger} and {fault} clauses about what
// triggered it and which route closes it. Headlines of causes have {location},
// {senders}, the hosts of the culprits, and {congest}, the verb that fits them.

// Type is the anomaly of a diagnosis. Types ascend by gravity.
type Type uint8

// Anomalies. None says that nothing was found; the confidence of such a verdict
// says whether there was enough evidence.
const (
	None              Type = iota
	FlowContention         // flows share a queue on the victim's path; no port is paused
	PFCBackpressure        // PFC spreads from a queue that flows congest
	PFCStorm               // PFC spreads from a host
	DeadlockInLoop         // a deadlock cycle that flows triggered at one of its queues
	DeadlockOutOfLoop      // a deadlock cycle that something outside of it triggered
	numTypes
)

const deadlock = "{victim} is blocked by a PFC deadlock cycle of {ports} ports ({observed}){trigger}{fault}."

const breakCycle = "break the deadlock: reset one port of the cycle or flush its queue; " +
	"then remove the cyclic buffer dependency from the routes (weft topo check)"

var types = [numTypes]typeRow{
	None: {
		Row: Row{
			Name: "none", Title: "No anomaly", Remedy: "none; if it recurs, check the hosts at both ends",
			Doc: "docs/diagnosis.md#verdicts",
		},
		sentence: "{victim} is slow, but the switches report no cause: {evidence}.",
	},
	FlowContention: {
		Row:      Row{Name: "flow-contention", Title: "Flow contention", Doc: "docs/diagnosis.md#verdicts"},
		sentence: "{victim} is queued at {port}; {culprits}.",
		incident: Contention,
	},
	PFCBackpressure: {
		Row:      Row{Name: "pfc-backpressure", Title: "PFC backpressure", Doc: "docs/diagnosis.md#verdicts"},
		sentence: "{victim} is throttled by PFC from {port}; {culprits}.",
		incident: Incast, pfc: true, brief: true,
	},
	PFCStorm: {
		Row:      Row{Name: "pfc-storm", Title: "PFC storm", Doc: "docs/diagnosis.md#verdicts"},
		sentence: "{victim} is throttled by PFC pause frames from {host}{detail}.",
		incident: Storm, byDetail: map[Detail]Cause{DrainsSlowly: SlowReceiver}, atHost: true, pfc: true,
	},
	DeadlockInLoop: {
		Row: Row{
			Name: "deadlock-in-loop", Title: "PFC deadlock, triggered in its cycle", Remedy: breakCycle,
			Doc: "docs/diagnosis.md#verdicts",
		},
		sentence: deadlock, incident: Deadlock, pfc: true,
	},
	DeadlockOutOfLoop: {
		Row: Row{
			Name: "deadlock-out-of-loop", Title: "PFC deadlock, triggered from outside its cycle", Remedy: breakCycle,
			Doc: "docs/diagnosis.md#verdicts",
		},
		sentence: deadlock, incident: Deadlock, pfc: true,
	},
}

// RootCause is what triggered the anomaly of a diagnosis.
type RootCause uint8

// Root causes.
const (
	NoRootCause     RootCause = iota
	ContendingFlows           // that together sent more than a link carries
	HostInjection             // a host that sent PFC pause frames
	numRoots
)

var roots = [numRoots]rootRow{
	NoRootCause: {Row: Row{Name: "none", Title: "Unknown root cause", Doc: "docs/diagnosis.md#verdicts"}},
	ContendingFlows: {
		Row:     Row{Name: "flow-contention", Title: "Contending flows", Doc: "docs/diagnosis.md#verdicts"},
		trigger: "; triggered at {port}: {culprits}",
	},
	HostInjection: {
		Row:     Row{Name: "host-pfc-injection", Title: "PFC pause frames from a host", Doc: "docs/diagnosis.md#verdicts"},
		trigger: "; triggered by PFC pause frames from {host}",
	},
}

// Detail is how the root cause came about.
type Detail uint8

// Details.
const (
	UnknownDetail   Detail = iota
	MicroBurst             // short flows at line rate that start together
	PeriodicBurst          // bursts that recur
	ECMPImbalance          // one of several equal-cost paths carries far more than its share
	PriorityTraffic        // another traffic class takes the link
	DrainsSlowly           // a host receives more than it drains
	NICStorm               // a host that sends pause frames without a gap
	numDetails
)

var details = [numDetails]detailRow{
	UnknownDetail: {
		Row: Row{
			Name: "unknown", Title: "Unknown", Doc: "docs/diagnosis.md#verdicts",
			Remedy: "rate-limit the heaviest of these flows or move them to other paths",
		},
		mayRecur: true,
	},
	MicroBurst: {
		Row: Row{
			Name: "micro-burst", Title: "Micro-burst", Doc: "docs/diagnosis.md#verdicts",
			Remedy: "stagger the senders or limit how many answer at once; " +
				"receiver-driven windows or a lower ECN threshold at this port absorb such bursts",
		},
		mayRecur: true,
	},
	PeriodicBurst: {
		Row: Row{
			Name: "periodic-burst", Title: "Periodic bursts", Doc: "docs/diagnosis.md#verdicts",
			Remedy: "rate-limit the senders of the bursts and identify them: a low-rate attack shows the same pattern",
		},
		winsMerges: true,
	},
	ECMPImbalance: {
		Row: Row{
			Name: "ecmp-imbalance", Title: "ECMP imbalance", Doc: "docs/diagnosis.md#verdicts",
			Remedy: "rebalance the flows at {switch}: change the hash seed, add entropy in source ports, or use adaptive routing",
		},
	},
	PriorityTraffic: {
		Row: Row{
			Name: "priority", Title: "Other traffic classes", Doc: "docs/diagnosis.md#verdicts",
			Remedy: "give the flow's class a larger share of {port}, or move the traffic of the other classes",
		},
	},
	DrainsSlowly: {
		Row: Row{
			Name: "slow-receiver", Title: "Slow receiver", Doc: "docs/diagnosis.md#verdicts",
			Remedy: "find out why {host} drains slowly (PCIe, memory, CPU load); until then move its load to other hosts",
		},
		winsMerges: true,
	},
	NICStorm: {
		Row: Row{
			Name: "nic-storm", Title: "NIC storm", Doc: "docs/diagnosis.md#verdicts",
			Remedy: "take {host} out of service: disable its port or have the PFC watchdog ignore its pause frames, " +
				"and reset or replace its NIC",
		},
	},
}

// Cause is what is wrong in an incident. Causes ascend by how much they
// explain: a loop fills queues and discards packets, so congestion and loss on
// it are its consequences, never the reverse.
type Cause uint8

// Causes of incidents.
const (
	Imbalance    Cause = iota // equal-cost ports share the load unevenly
	Contention                // flows share a queue
	Stall                     // packets are stuck in queues that PFC pauses
	Loss                      // packets are lost at random
	DeadLink                  // a link delivers nothing
	Incast                    // flows, most often from many senders to one, congest a queue and PFC spreads from it
	SlowReceiver              // a host receives more than it drains
	Blackhole                 // all packets of certain flows are lost
	WrongRoute                // a switch deviates from the intended routes
	Deadlock                  // a cyclic buffer dependency: paused queues wait for each other
	Storm                     // a host pauses its switch port without end
	Loop                      // a forwarding loop
	NumCauses                 // the number of causes
)

// misrouted are what wrong routes can lead to.
var misrouted = []Cause{Imbalance, Contention, Stall, Loss, DeadLink, Incast, SlowReceiver, Blackhole, Deadlock, Storm}

var causes = [NumCauses]causeRow{
	Imbalance: {
		Row: Row{
			Name: "imbalance", Title: "ECMP imbalance", Doc: "docs/incidents.md#causes",
			Remedy: "change the hash seed of the switch, or spread the heavy flows over more connections",
		},
		headline: "equal-cost ports of {location} share the load unevenly",
		severity: Warning, family: LoadSharing, sources: []Source{Flowsets, Labels}, fabricWide: true,
	},
	Contention: {
		Row: Row{
			Name: "contention", Title: "Flow contention", Doc: "docs/incidents.md#causes",
			Remedy: "spread the flows over time or over paths; this is load, not a fault",
		},
		headline: "{senders} {congest} {location}",
		severity: Notice, family: Pausing, sources: []Source{Epochs, Labels}, perPort: true,
		explains: []Cause{DeadLink}, // a congested or paused queue delivers nothing for a while, like a dead link
	},
	Stall: {
		Row: Row{
			Name: "stall", Title: "Packets stuck in paused queues", Doc: "docs/incidents.md#causes",
			Remedy: "find what pauses the port: diagnose a flow that is stuck there (weft diagnose)",
		},
		headline: "PFC keeps {location} paused",
		severity: Warning, family: Pausing, sources: []Source{Epochs, Labels}, explains: []Cause{DeadLink},
	},
	Loss: {
		Row: Row{
			Name: "loss", Title: "Silent packet loss", Doc: "docs/incidents.md#causes",
			Remedy: "take the link or switch out of service and test optics, cables and buffers",
		},
		headline: "packets are lost at {location} without a drop counter",
		severity: Critical, family: PacketLoss, sources: []Source{Flowsets, Traces, Probes},
	},
	DeadLink: {
		Row: Row{
			Name: "dead-link", Title: "Dead link", Doc: "docs/incidents.md#causes",
			Remedy: "drain the link and replace the cable or the optics",
		},
		headline: "{location} delivers nothing",
		severity: Critical, family: PacketLoss, sources: []Source{Flowsets, Traces, Probes},
	},
	Incast: {
		Row: Row{
			Name: "incast", Title: "Incast", Doc: "docs/incidents.md#causes",
			Remedy: "limit the senders (smaller windows, staggered starts), or check ECN thresholds at the receiver's switch",
		},
		headline: "{senders} {congest} {location}",
		severity: Warning, family: Pausing, sources: []Source{Epochs, Labels}, explains: []Cause{DeadLink, Imbalance},
	},
	SlowReceiver: {
		Row: Row{
			Name: "slow-receiver", Title: "Slow receiver", Doc: "docs/incidents.md#causes",
			Remedy: "check the receiving host: PCIe, memory, cache misses of its NIC",
		},
		headline: "{location} receives more than it drains",
		severity: Warning, family: Pausing, sources: []Source{Epochs, Labels}, explains: []Cause{DeadLink, Imbalance},
	},
	Blackhole: {
		Row: Row{
			Name: "blackhole", Title: "Black hole", Doc: "docs/incidents.md#causes",
			Remedy: "compare the switch's forwarding table with the intended routes and rewrite the entry",
		},
		headline: "{location} drops all packets of certain flows",
		severity: Critical, family: PacketLoss, sources: []Source{Flowsets, Traces, Probes},
	},
	WrongRoute: {
		Row: Row{
			Name: "wrong-route", Title: "Wrong route", Doc: "docs/incidents.md#causes",
			Remedy: "restore the intended route on the switch",
		},
		headline: "{location} deviates from the intended routes",
		severity: Critical, family: Forwarding, sources: []Source{Flowsets, Traces}, explains: misrouted,
	},
	Deadlock: {
		Row: Row{
			Name: "deadlock", Title: "PFC deadlock", Doc: "docs/incidents.md#causes",
			Remedy: "drain the cycle: restore the intended routes, then reset the pauses of one port of the cycle",
		},
		headline: "paused queues wait for each other at {location}",
		severity: Critical, family: Pausing, sources: []Source{Epochs, Labels},
		explains: []Cause{DeadLink, Imbalance, Loss}, // a watchdog or a reset discards what its queues hold
	},
	Storm: {
		Row: Row{
			Name: "storm", Title: "PFC storm", Doc: "docs/incidents.md#causes",
			Remedy: "isolate the host: disable its port or PFC on it, then replace its NIC or firmware",
		},
		headline: "{location} pauses its switch port without end",
		severity: Critical, family: Pausing, sources: []Source{Epochs, Labels}, explains: []Cause{DeadLink, Imbalance},
	},
	Loop: {
		Row: Row{
			Name: "loop", Title: "Forwarding loop", Doc: "docs/incidents.md#causes",
			Remedy: "restore the intended routes on the switches of the loop",
		},
		headline: "packets loop at {location}",
		severity: Critical, family: Forwarding, sources: []Source{Flowsets, Traces}, explains: misrouted,
	},
}

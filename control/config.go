package control

import (
	"time"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/analyze/routeview"
	"github.com/weft-telemetry/weft/control/flowfindings"
	"github.com/weft-telemetry/weft/control/flowreduce"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/control/portwatch"
	"github.com/weft-telemetry/weft/control/probe"
	"github.com/weft-telemetry/weft/control/rootcause"
	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

// Config is the configuration of a Controller.
type Config struct {
	Intent   *topo.Intent
	ListPlan ListPlan
	// Epoch is the wall's time at which the fabric's clocks show 0.
	Epoch time.Time

	Flows     flowwatch.Config
	Ports     portwatch.Config
	Traces    tracewatch.Config
	Causes    rootcause.Config
	Probes    probe.Config
	Incidents incident.Config
	Findings  flowfindings.Config // bounds the log of flow findings
	Reduction flowreduce.Config   // of flows that are stored

	// SampleInterval is how often ports are sampled for the store.
	SampleInterval time.Duration
	// BalanceSlots is over how many slots ECMP balance is evaluated.
	BalanceSlots int
	// LossShare is the least share of a link's packets, and LossPackets the least
	// number in one slot, whose loss is an incident.
	LossShare   float64
	LossPackets uint64
	// StallShare is the share of a slot that a port must be paused for missing
	// packets to count as stuck there, not lost.
	StallShare float64
	// DeepQueue is the depth from which on a queue is evidence.
	DeepQueue model.Bytes
	// SilentAfter is after how long without any report a switch is silent.
	SilentAfter time.Duration
	// VerdictTimeout is how long a client's diagnosis request waits for its verdict,
	// by the fabric's clock.
	VerdictTimeout time.Duration
	// SelfPolling says that hosts poll about their slow flows by themselves, and not
	// on request: a client's diagnosis request waits for their polls, if they poll at
	// all.
	SelfPolling bool
	// Passive requests no further evidence for incidents: marks, probes, polls and
	// more labels add packets to the fabric, and change what is observed.
	Passive bool
	// TimeWindow is how far the time of a report may be from the collector's clock; 0:
	// their clocks are unrelated.
	TimeWindow time.Duration
	// LastDiagnosis is the number of the last diagnosis of an earlier controller,
	// after which numbers continue. That of the last incident is in Incidents.
	LastDiagnosis uint64
	// Forward, if not nil, takes what is decoded: nothing is analysed here.
	Forward Forwarder
	// Routes is about the routes that switches have by BGP.
	Routes routeview.Config
	// Jobs run on the fabric; incidents name the jobs that they affect.
	Jobs []Job
}

// DefaultConfig suits flowsets of 10 ms.
func DefaultConfig(in *topo.Intent) Config {
	f := in.At(0).Fabric()
	return Config{
		Intent: in, ListPlan: DefaultListPlan(f),
		Flows:          flowwatch.DefaultConfig(in),
		Ports:          portwatch.Config{States: coverage.DefaultConfig(f), Window: 10 * time.Millisecond, KeepWindows: 100},
		Traces:         tracewatch.DefaultConfig(in),
		Causes:         rootcause.DefaultConfig(in),
		Probes:         probe.DefaultConfig(),
		Incidents:      incident.DefaultConfig(),
		Findings:       flowfindings.DefaultConfig(),
		Reduction:      flowreduce.DefaultConfig(),
		Routes:         routeview.DefaultConfig(),
		SampleInterval: time.Millisecond, BalanceSlots: 2, LossShare: 1e-3, LossPackets: 3, StallShare: 0.2, DeepQueue: 20 * model.KB,
		SilentAfter: 100 * time.Millisecond,
		// Switches take a tenth of a second to export their epochs.
		VerdictTimeout: 400 * time.Millisecond,
	}
}

// Devices is what the controller can ask of the fabric over its management
// network.
type Devices interface {
	portwatch.Fabric
	tracewatch.Marker
	probe.Injector
	// PollFlow has a flow's source host poll the fabric about it, and reports
	// whether it does.
	PollFlow(flow model.FlowKey) bool
	// Counters appends the counters of switch ports, as gNMI or SNMP report them.
	Counters(list []PortCounters) []PortCounters
}

// PortCounters is what a port has counted since it came up.
type PortCounters struct {
	Port     model.Port
	At       model.Time    // by the switch's clock; 0: now
	Packets  uint64        // sent; 0: not known
	Bytes    uint64        // sent
	Discards uint64        // packets, buffer full (RFC 2863)
	Paused   time.Duration // by PFC, of the most paused class
}

// Output receives what a controller makes. Both are called from the goroutine that
// calls the controller, and must not block.
type Output struct {
	// Records receives records; the batch is the controller's again afterwards.
	Records func(b *record.Batch)
	// Incident receives every incident that is new or has changed. It must not
	// keep it.
	Incident func(in *incident.Incident)
	// Panic receives every panic that was recovered; it may be nil.
	Panic func(p *Panic)
}

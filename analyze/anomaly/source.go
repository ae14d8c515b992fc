package anomaly

// Source is a kind of telemetry that gives evidence.
type Source uint8

// Sources.
const (
	Flowsets   Source = iota // counters of every flow, slot by slot
	Traces                   // mirrored packets
	Labels                   // queue depths and latencies carried by packets
	Epochs                   // epoch telemetry of switches that were polled about a slow flow
	Probes                   // active probes
	Counters                 // port counters of the switches
	Routes                   // of switches, by BGP
	NumSources               // the number of sources
)

var sourceNames = [NumSources]string{"flowsets", "traces", "labels", "epochs", "probes", "counters", "routes"}

// String returns the source's name.
func (s Source) String() string { return sourceNames[s] }

// MarshalText returns the source's name.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Severity is how much an incident matters.
type Severity uint8

// Severities.
const (
	Notice   Severity = iota // normal background congestion of a busy fabric
	Warning                  // degrades performance
	Critical                 // loses packets or stalls traffic
)

// String returns the severity's name.
func (s Severity) String() string { return [...]string{"notice", "warning", "critical"}[s] }

// MarshalText returns the severity's name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Family groups causes that can be the same fault, seen by different sources.
type Family uint8

// Families.
const (
	LoadSharing Family = iota // load and queues without PFC
	Pausing                   // PFC
	PacketLoss                // missing packets
	Forwarding                // packets that take a wrong route
)

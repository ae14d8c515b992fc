package record

import (
	"encoding/json"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Port names one port of one node, and the node at the other end.
type Port struct {
	Node string       `json:"node"`
	Port model.PortID `json:"port"`
	Peer string       `json:"peer,omitempty"`
}

// FlowSlot is the counters of a flow in one slot, from the flowsets on its path.
type FlowSlot struct {
	Time    time.Time     `json:"time"` // start of the slot
	Slot    time.Duration `json:"slot_ns"`
	Flow    model.FlowKey `json:"flow"`
	Src     string        `json:"src"` // hosts; empty if outside the fabric
	Dst     string        `json:"dst"`
	Packets uint64        `json:"packets"` // maximum over the switches
	Bytes   uint64        `json:"bytes"`
	Exact   bool          `json:"exact"` // all counts were decoded, none estimated
	// Samples is how many packet samples the counts are estimated from; 0: they are not
	// from samples.
	Samples uint64 `json:"samples,omitempty"`
	// Partial says that other flows of the slot are only in sums: see docs/store.md.
	Partial bool      `json:"partial,omitempty"`
	Path    []FlowHop `json:"path"`
}

// FlowHop is a flow's count at one switch.
type FlowHop struct {
	Switch  string `json:"switch"`
	Packets uint64 `json:"packets"`
}

// Loss is the packets that one flow lost between two switches in one slot.
type Loss struct {
	Time    time.Time     `json:"time"`
	Flow    model.FlowKey `json:"flow"`
	From    string        `json:"from"`
	To      string        `json:"to,omitempty"` // empty: the next hop is unknown
	Packets uint64        `json:"packets"`
	Sent    uint64        `json:"sent"`
	Pattern string        `json:"pattern"`
}

// PortSample is the state of a port at one instant, or the means of a rollup.
type PortSample struct {
	Time  time.Time    `json:"time"`
	Node  string       `json:"node"`
	Port  model.PortID `json:"port"`
	Queue model.Bytes  `json:"queue_bytes"`
	// QueueMax is the longest queue of the samples in a rollup, which a mean
	// hides. A single sample may leave it 0; a rollup then uses Queue.
	QueueMax model.Bytes   `json:"queue_max_bytes"`
	Latency  time.Duration `json:"latency_ns"` // of the switch, by its own clock
	Load     model.Rate    `json:"load_bps"`
	Paused   float64       `json:"paused"` // share of the time that PFC paused it
	Samples  uint64        `json:"samples"`
}

// Trace is one packet's path through the fabric.
type Trace struct {
	Time        time.Time     `json:"time"` // at its first hop
	ID          uint64        `json:"id,string"`
	Flow        model.FlowKey `json:"flow"`
	End         string        `json:"end"`
	Why         string        `json:"why"` // reasons why it was mirrored
	Latency     time.Duration `json:"latency_ns"`
	LostMirrors int           `json:"lost_mirrors"`
	Hops        []TraceHop    `json:"hops"`
	Frame       []byte        `json:"frame,omitempty"` // its first bytes, at the first switch
}

// TraceHop is a packet at one switch.
type TraceHop struct {
	Time   time.Time    `json:"time"` // by the switch's clock
	Switch string       `json:"switch"`
	In     model.PortID `json:"in,omitempty"`
	Out    model.PortID `json:"out,omitempty"`
	TTL    uint8        `json:"ttl"`
	DSCP   uint8        `json:"dscp"`
	ECN    uint8        `json:"ecn"`
	Depth  uint8        `json:"depth"` // IP headers
}

// Counter is one period of a counter.
type Counter struct {
	Time    time.Time     `json:"time"`
	Period  time.Duration `json:"period_ns"`
	Name    string        `json:"name"`
	Packets uint64        `json:"packets"`
	Bytes   uint64        `json:"bytes"`
	Flows   float64       `json:"flows"` // distinct flows, estimated
}

// Diagnosis is a verdict about a slow flow. Body is the whole verdict with its
// provenance graph, as the API returns it.
type Diagnosis struct {
	Time       time.Time       `json:"time"`
	ID         string          `json:"id"`
	Anomaly    string          `json:"anomaly"`
	RootCause  string          `json:"root_cause"`
	Initial    Port            `json:"initial_port"`
	Victim     model.FlowKey   `json:"victim"`
	Confidence float64         `json:"confidence"`
	Body       json.RawMessage `json:"body"`
}

// Incident is the current state of an incident; a later one of the same ID
// replaces it.
type Incident struct {
	ID       string          `json:"id"`
	Begin    time.Time       `json:"begin"`
	Updated  time.Time       `json:"updated"`
	End      time.Time       `json:"end,omitzero"` // zero: still open
	Cause    string          `json:"cause"`
	Severity string          `json:"severity"`
	Location string          `json:"location"`
	Summary  string          `json:"summary"`
	Body     json.RawMessage `json:"body"`
}

// Batch is a set of records that a store writes atomically.
type Batch struct {
	Flows     []FlowSlot
	Losses    []Loss
	Ports     []PortSample
	Traces    []Trace
	Counters  []Counter
	Diagnoses []Diagnosis
	Incidents []Incident
}

// Append appends the records of another batch.
func (b *Batch) Append(o *Batch) {
	b.Flows = append(b.Flows, o.Flows...)
	b.Losses = append(b.Losses, o.Losses...)
	b.Ports = append(b.Ports, o.Ports...)
	b.Traces = append(b.Traces, o.Traces...)
	b.Counters = append(b.Counters, o.Counters...)
	b.Diagnoses = append(b.Diagnoses, o.Diagnoses...)
	b.Incidents = append(b.Incidents, o.Incidents...)
}

// Len returns the number of records.
func (b *Batch) Len() int {
	return len(b.Flows) + len(b.Losses) + len(b.Ports) + len(b.Traces) +
		len(b.Counters) + len(b.Diagnoses) + len(b.Incidents)
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	*b = Batch{
		b.Flows[:0], b.Losses[:0], b.Ports[:0], b.Traces[:0],
		b.Counters[:0], b.Diagnoses[:0], b.Incidents[:0],
	}
}

// Query selects records of one kind, newest first. A zero field matches any.
type Query struct {
	From, To time.Time // From is inclusive, To exclusive
	Node     string    // where it happened, or on its path
	Port     model.PortID
	Flow     model.FlowKey
	Ends     FlowEnds // of the flow, if its key is only partly known
	Name     string   // of a counter; the id of a diagnosis, trace or incident
	End      string   // of a trace
	Why      string   // of a trace: why its packet was mirrored
	// MinLatency is the least latency of a trace.
	MinLatency time.Duration
	// Limit is the maximum number of records of one page; 0 is the store's limit,
	// which no page exceeds.
	Limit int
	// After is the Next of the previous page, to continue after it.
	After string
	// Step requests a series of ports or counters in steps of at least this
	// duration, from the matching rollup.
	Step time.Duration
}

// FlowEnds are addresses and ports that a flow must have; zero matches any.
type FlowEnds struct {
	Src, Dst         model.Addr
	SrcPort, DstPort uint16
}

// Match reports whether a flow has them.
func (e *FlowEnds) Match(k *model.FlowKey) bool {
	return (e.Src == model.Addr{} || e.Src == k.Src) && (e.Dst == model.Addr{} || e.Dst == k.Dst) &&
		(e.SrcPort == 0 || e.SrcPort == k.SrcPort) && (e.DstPort == 0 || e.DstPort == k.DstPort)
}

// Page is one page of results. Next is empty on the last page.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

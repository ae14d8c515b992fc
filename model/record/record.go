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

// FlowSlot is what a flow did in one slot, as the flowsets of its way say.
type FlowSlot struct {
	Time    time.Time     `json:"time"` // the slot's begin
	Slot    time.Duration `json:"slot_ns"`
	Flow    model.FlowKey `json:"flow"`
	Src     string        `json:"src"` // hosts; empty outside of the fabric
	Dst     string        `json:"dst"`
	Packets uint64        `json:"packets"` // the most that one switch counted
	Bytes   uint64        `json:"bytes"`
	Exact   bool          `json:"exact"` // every count was decoded, not estimated
	Path    []FlowHop     `json:"path"`
}

// FlowHop is a flow's count at one switch.
type FlowHop struct {
	Switch  string `json:"switch"`
	Packets uint64 `json:"packets"`
}

// Loss is what one flow lost between two switches in one slot.
type Loss struct {
	Time    time.Time     `json:"time"`
	Flow    model.FlowKey `json:"flow"`
	From    string        `json:"from"`
	To      string        `json:"to,omitempty"` // empty: not known where it should have gone
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
	// QueueMax is the deepest queue of what the record stands for, which a mean
	// hides. A single sample may leave it 0; a rollup counts Queue then.
	QueueMax model.Bytes   `json:"queue_max_bytes"`
	Latency  time.Duration `json:"latency_ns"` // through the switch, by its own clock
	Load     model.Rate    `json:"load_bps"`
	Paused   float64       `json:"paused"` // share of the time that PFC kept it from sending
	Samples  uint64        `json:"samples"`
}

// Trace is one packet's way through the fabric.
type Trace struct {
	Time    time.Time     `json:"time"` // of its first hop
	ID      uint64        `json:"id,string"`
	Flow    model.FlowKey `json:"flow"`
	End     string        `json:"end"`
	Why     string        `json:"why"` // it was mirrored and kept
	Latency time.Duration `json:"latency_ns"`
	Lost    int           `json:"lost_mirrors"`
	Hops    []TraceHop    `json:"hops"`
	Frame   []byte        `json:"frame,omitempty"` // its first bytes, as the first switch saw them
}

// TraceHop is a packet as one switch saw it.
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
	Flows   float64       `json:"flows"` // different ones, estimated
}

// Diagnosis is a verdict about a slow flow. Body is the verdict whole, with its
// provenance graph, as the API gives it.
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

// Incident is the newest state of an incident; a later one of the same ID takes
// its place.
type Incident struct {
	ID       string          `json:"id"`
	Begin    time.Time       `json:"begin"`
	Updated  time.Time       `json:"updated"`
	End      time.Time       `json:"end,omitzero"` // zero: it goes on
	Cause    string          `json:"cause"`
	Severity string          `json:"severity"`
	Place    string          `json:"place"`
	Summary  string          `json:"summary"`
	Body     json.RawMessage `json:"body"`
}

// Batch is what a store takes at once: all of it is kept, or none.
type Batch struct {
	Flows     []FlowSlot
	Losses    []Loss
	Ports     []PortSample
	Traces    []Trace
	Counters  []Counter
	Diagnoses []Diagnosis
	Incidents []Incident
}

// Len is the number of records.
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

// Query asks for records of one kind, newest first. A zero field asks for any.
type Query struct {
	From, To time.Time // From is in, To is not
	Node     string    // that it happened at, or passed
	Port     model.PortID
	Flow     model.FlowKey
	Ends     Ends   // of the flow, where not all of it is known
	Name     string // of a counter; the id of a diagnosis, trace or incident
	// Limit is the most records of one answer; 0 is the store's own limit, and
	// no answer is longer than that.
	Limit int
	// After is the Next of the answer before, to go on behind it.
	After string
	// Step asks for a series of ports or counters in steps of at least so long, from the
	// rollup that fits.
	Step time.Duration
}

// Ends are addresses and ports that a flow must have; what is zero may be any.
type Ends struct {
	Src, Dst         model.Addr
	SrcPort, DstPort uint16
}

// Fit tells whether a flow has them.
func (e *Ends) Fit(k *model.FlowKey) bool {
	return (e.Src == model.Addr{} || e.Src == k.Src) && (e.Dst == model.Addr{} || e.Dst == k.Dst) &&
		(e.SrcPort == 0 || e.SrcPort == k.SrcPort) && (e.DstPort == 0 || e.DstPort == k.DstPort)
}

// Page is one answer. Next is empty where there is no more.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}
